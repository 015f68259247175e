"""What may be stored: every rule about values, in one place, checked before anything is written.

A text is kept only if it comes back byte-identical. SQLite's `length()` and FTS stop at U+0000,
half a surrogate pair cannot be encoded, and NaN becomes NULL without a word; so these are refused.
"""

import math
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from store.errors import (
    BankNameInvalid,
    InvalidInput,
    NumberNotFinite,
    TextNotStorable,
    TextTooLong,
)
from store.model import METADATA_LIMIT, SHORT_LIMIT, TEXT_LIMIT

DEPTH_LIMIT: Final = 32
TIME_LIMIT: Final = 253_402_300_800_000  # the year 10000, in unix milliseconds
BANK_NAME_LIMIT: Final = 256
LIST_LIMIT: Final = 1_000
QUERY_LIMIT: Final = 65_536  # characters of a query that are looked at


def check_text(field: str, value: str, *, limit: int = TEXT_LIMIT, empty: bool = True) -> None:
    """A text that can be kept and given back as it is."""
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise TextNotStorable(field, "must not hold half a surrogate pair") from None
    if "\x00" in value:
        raise TextNotStorable(field, "must not hold U+0000")
    if size > limit:
        raise TextTooLong(field, size, limit)
    if not empty and not value.strip():
        raise InvalidInput(field, "must not be empty")


def check_labels(**labels: str | None) -> None:
    """Short texts: titles, names, ids of others. The keyword is the field's name."""
    for field, value in labels.items():
        if value is not None:
            check_text(field, value, limit=SHORT_LIMIT)


def check_list(field: str, values: Iterable[str], *, limit: int = SHORT_LIMIT) -> None:
    for position, value in enumerate(values):
        if position >= LIST_LIMIT:
            raise InvalidInput(field, f"must not have more than {LIST_LIMIT} entries")
        check_text(f"{field}[{position}]", value, limit=limit)


def check_share(field: str, value: float | None) -> None:
    """A number from 0 to 1."""
    if value is None:
        return
    check_finite(field, value)
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(field, "must be from 0 to 1")


def check_finite(field: str, value: float | None) -> None:
    if value is not None and not math.isfinite(value):
        raise NumberNotFinite(field)


def check_time(field: str, value: int | None) -> None:
    if value is not None and not -TIME_LIMIT < value < TIME_LIMIT:
        raise InvalidInput(field, "must be unix milliseconds of a year from -6058 to 9999")


def check_choice(field: str, value: str, choices: Iterable[str]) -> None:
    choices = tuple(choices)
    if value not in choices:
        raise InvalidInput(field, f"must be one of {', '.join(choices)}")


def check_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(field, f"must be from {least} to {most}")


def encode_json(field: str, value: Mapping[str, Any] | list[Any] | tuple[Any, ...]) -> str:
    """JSON that decodes to the same value, or an error that says which part cannot."""
    if not value:
        return "{}" if isinstance(value, Mapping) else "[]"
    _check_json(field, value, 0)
    encoded = msgspec.json.encode(value)
    if len(encoded) > METADATA_LIMIT:
        raise TextTooLong(field, len(encoded), METADATA_LIMIT)
    return encoded.decode()


def _check_json(field: str, value: Any, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise InvalidInput(field, f"must not be nested more than {DEPTH_LIMIT} deep")
    if isinstance(value, str):
        check_text(field, value)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidInput(field, "must hold whole numbers of at most 64 bits")
    elif isinstance(value, float):
        check_finite(field, value)
    elif isinstance(value, Mapping):
        for key in cast(Any, value):
            if not isinstance(key, str):
                raise InvalidInput(field, "must have texts as keys")
            check_text(field, key)
            _check_json(f"{field}.{key}"[:200], value[key], depth + 1)
    elif isinstance(value, list | tuple):
        for member in cast(Any, value):
            _check_json(field, member, depth + 1)
    elif value is not None:
        raise InvalidInput(field, "must be made of JSON values")


def plain_query(text: str) -> str:
    """A query that can be encoded. Any string is one; what could not be stored asks for nothing."""
    text = text[:QUERY_LIMIT]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\x00", " ")


def bank_name(name: str) -> str:
    """The name in its one spelling (NFC). A name is never a path, so most signs may be in it.

    Nothing is trimmed and no case is folded: "Work" and "work" are two banks.
    """
    try:
        check_text("bank", name)
    except InvalidInput as error:
        raise BankNameInvalid(error.rule) from None
    name = unicodedata.normalize("NFC", name)
    if not 1 <= len(name) <= BANK_NAME_LIMIT:
        raise BankNameInvalid(f"must have from 1 to {BANK_NAME_LIMIT} characters")
    if any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") for sign in name):
        raise BankNameInvalid("must not hold control characters or line breaks")
    return name
