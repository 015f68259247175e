"""The rules for values that may be stored, each as a function that raises `InvalidInput`.

A text is accepted only if it comes back byte-identical. SQLite's `length()` and FTS5 stop at
U+0000, an unpaired surrogate cannot be encoded, and SQLite stores NaN as NULL; so these values
are refused.
"""

import math
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import orjson

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
WEIGHT_LIMIT: Final = 1e6
QUERY_LIMIT: Final = 65_536  # characters; the rest of a query is ignored


def storable_text(field: str, value: Any) -> str:
    """A text that SQLite can bind. A subclass of `str` (a member of an enum) becomes a `str`."""
    if not isinstance(value, str):
        raise InvalidInput(field, "must be a string")
    _size(field, value)
    return value if type(value) is str else str.__str__(value)


def finite_float(field: str, value: Any) -> float:
    """A finite number as a REAL column returns it: 1 becomes 1.0, and -0.0 becomes 0.0."""
    if type(value) is float and math.isfinite(value) and value != 0.0:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, "must be a number")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidInput(field, "must be a number of at most 64 bits") from None
    check_finite(field, number)
    return number + 0.0


def integer(field: str, value: Any) -> int:
    """A number as an INTEGER column returns it: 2.0 becomes 2, and 2.5 is refused."""
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float):
        check_finite(field, value)
        value = int(value) if value.is_integer() else None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, "must be a whole number")
    if not -(2**63) <= value < 2**63:
        raise InvalidInput(field, "must be a whole number of at most 64 bits")
    return int(value)


def check_text(field: str, value: str, *, limit: int = TEXT_LIMIT, empty: bool = True) -> None:
    """Check that a text can be stored and is at most `limit` bytes of UTF-8."""
    size = _size(field, value)
    if size > limit:
        raise TextTooLong(field, size, limit)
    if not empty and not value.strip():
        raise InvalidInput(field, "must not be empty")


def _size(field: str, value: str) -> int:
    """The size of a text in bytes of UTF-8. Raises `TextNotStorable` if it has no UTF-8 form."""
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise TextNotStorable(field, "must not contain an unpaired surrogate") from None
    if "\x00" in value:
        raise TextNotStorable(field, "must not contain U+0000")
    return size


def check_labels(**labels: str | None) -> None:
    """Check short texts (titles, names, foreign ids). Each keyword is the name of a field."""
    for field, value in labels.items():
        if value is not None:
            check_text(field, value, limit=SHORT_LIMIT)


def check_list(field: str, values: Iterable[str], *, limit: int = SHORT_LIMIT) -> None:
    for position, value in enumerate(values):
        if position >= LIST_LIMIT:
            raise InvalidInput(field, f"must not have more than {LIST_LIMIT} entries")
        check_text(f"{field}[{position}]", value, limit=limit)


def check_share(field: str, value: float | None) -> None:
    """Check that a number is from 0 to 1."""
    if value is None:
        return
    check_finite(field, value)
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(field, "must be from 0 to 1")


def check_weight(field: str, value: float | None) -> None:
    """Check the weight of one side of a hybrid search. Only the ratio of the two weights counts."""
    if value is not None and not 0.0 <= value <= WEIGHT_LIMIT:
        raise InvalidInput(field, f"must be from 0 to {WEIGHT_LIMIT:g}")


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
    """The value as JSON. Raises `InvalidInput` naming the member that JSON cannot represent."""
    if not value:
        return "{}" if isinstance(value, Mapping) else "[]"
    encoded = orjson.dumps(plain_json(field, value))
    if len(encoded) > METADATA_LIMIT:
        raise TextTooLong(field, len(encoded), METADATA_LIMIT)
    return encoded.decode()


def plain_json(field: str, value: Any, depth: int = 0) -> Any:
    """The same value in JSON's own types. Raises `InvalidInput` naming the member that has none."""
    if depth > DEPTH_LIMIT:
        raise InvalidInput(field, f"must not be nested more than {DEPTH_LIMIT} deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        check_text(field, value)
        return value if type(value) is str else storable_text(field, value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidInput(field, "must contain only whole numbers of at most 64 bits")
        return value if type(value) is int else int(value)
    if isinstance(value, float):
        check_finite(field, value)
        return value if type(value) is float else float(value)
    if isinstance(value, Mapping):
        return _plain_object(field, cast("Mapping[Any, Any]", value), depth)
    if isinstance(value, list | tuple):
        return [plain_json(field, member, depth + 1) for member in cast(Any, value)]
    raise InvalidInput(field, "must consist of JSON values")


def _plain_object(field: str, value: Mapping[Any, Any], depth: int) -> Mapping[str, Any]:
    plain: dict[str, Any] = {}
    is_plain = type(value) is dict
    for key, member in value.items():
        if not isinstance(key, str):
            raise InvalidInput(field, "must have strings as keys")
        check_text(field, key)
        name = key if type(key) is str else storable_text(field, key)
        plain[name] = plain_json(f"{field}.{key}"[:200], member, depth + 1)
        is_plain = is_plain and name is key and plain[name] is member
    return value if is_plain else plain


def plain_query(text: str) -> str:
    """The query in a form that can be encoded.

    Any string is accepted: characters that cannot be stored are replaced, because no item can
    contain them. Characters beyond `QUERY_LIMIT` are ignored.
    """
    text = text[:QUERY_LIMIT]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\x00", " ")


def bank_name(name: str) -> str:
    """The name in Unicode normal form C. A name is never used as a path, so few are refused.

    Names are neither trimmed nor case-folded: "Work" and "work" are two banks.
    """
    try:
        check_text("bank", name)
    except InvalidInput as error:
        raise BankNameInvalid(error.rule) from None
    name = unicodedata.normalize("NFC", name)
    if not 1 <= len(name) <= BANK_NAME_LIMIT:
        raise BankNameInvalid(f"must have from 1 to {BANK_NAME_LIMIT} characters")
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name):
        raise BankNameInvalid("must not contain control characters or line breaks")
    return name
