"""Checks of the engine's arguments. Every operation calls them before it does anything else.

Python does not enforce annotations, but the code below the entry points relies on them. An integer
stored in a REAL column comes back as a float and breaks its row's digest; an unpaired surrogate or
an integer of more than 64 bits makes SQLite's parameter binding raise an error of its own. So each
operation checks the types of its arguments once, with the functions here. A value of a compatible
type is converted (1 to 1.0, a list to a tuple); any other value raises `InvalidInput`, which names
the field and the rule. Rules that a type cannot express (lengths, choices) are in `validate.py`
and are applied by the module that stores the value.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from store.errors import BankNameInvalid, InvalidInput
from store.model import (
    KINDS,
    MODES,
    AgentProfile,
    DocumentHead,
    Evidence,
    Filters,
    Kind,
    NewCard,
    NewDocument,
    NewMemory,
    NewRisk,
    NewTask,
    Provenance,
    Query,
    SourceFile,
    SyncedFile,
)
from store.validate import (
    LIST_LIMIT,
    check_finite,
    check_range,
    check_weight,
    integer,
    plain_json,
    plain_query,
    storable_text,
)

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
F = TypeVar("F", bound=Callable[..., Any])

PAGE_LIMIT: Final = 5_000
OFFSET_LIMIT: Final = 2**31
PASSAGES_LIMIT: Final = 20  # each costs a tenth of a second at most
# Each metadata member and each word of a filter becomes a condition in SQL. SQLite allows about
# 1,000 of them in one expression.
FILTER_LIMIT: Final = 200

# The fields that contain another Struct, or a list of them, in any argument.
_PARTS: Final[Mapping[str, type[Struct]]] = {
    "provenance": Provenance,
    "filters": Filters,
    "evidence": Evidence,
    "cards": NewCard,
    "tasks": NewTask,
    "risks": NewRisk,
    "events": NewMemory,
    "profiles": AgentProfile,
    "files": SyncedFile,
    "file": SourceFile,
    "document": NewDocument,
    "head": DocumentHead,
}
_CHOICES: Final[Mapping[str, Sequence[str]]] = {"kind": KINDS, "kinds": KINDS, "mode": MODES}
# The name in msgspec's messages for each type, and ours.
_TYPE_NAMES: Final = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a JSON object",
}
_EXPECTED: Final = re.compile(r"Expected `(\w+)(?: \| null)?`,")
_STEPS: Final = re.compile(r"[.\[]")
_POSITION: Final = re.compile(r"\[\d{1,20}+\]$")
_PLACE: Final = re.compile(r" - at `(?:key` in `)?\$\.?(.*)`$")
_NO_FILTERS: Final = Filters()


# --- one value --------------------------------------------------------------------------------


def bank_argument(value: str) -> str:
    """The name of a bank, as a string that SQLite can bind. `BankNameInvalid` if it is not one."""
    try:
        return storable_text("bank", value)
    except InvalidInput as error:
        raise BankNameInvalid(error.rule) from None


def optional_text(field: str, value: str | None) -> str | None:
    return None if value is None else storable_text(field, value)


def optional_integer(field: str, value: int | None) -> int | None:
    return None if value is None else integer(field, value)


def texts(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """Strings: ids of items, names of sources."""
    return tuple(
        storable_text(f"{field}[{position}]", value)
        for position, value in enumerate(listed(field, values))
    )


def listed(field: str, values: Iterable[T]) -> Sequence[T]:
    """The values as a list or tuple. A string is not a list of strings."""
    given: Any = values
    if isinstance(given, list | tuple):
        return cast("Sequence[T]", given)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise InvalidInput(field, "must be a list")
    return tuple(cast("Iterable[T]", given))


def kinds_argument(values: Sequence[Kind]) -> tuple[Kind, ...]:
    """Kinds of items; () means all of them."""
    if values == ():
        return ()
    try:
        return msgspec.convert(listed("kinds", values), tuple[Kind, ...])
    except msgspec.ValidationError as error:
        raise _invalid(error, "kinds") from None


def page_arguments(limit: int, offset: int = 0) -> tuple[int, int]:
    """The size of a page and the number of entries before it."""
    limit, offset = integer("limit", limit), integer("offset", offset)
    check_range("limit", limit, 1, PAGE_LIMIT)
    check_range("offset", offset, 0, OFFSET_LIMIT)
    return limit, offset


def flag(field: str, value: bool) -> bool:
    if not isinstance(cast(Any, value), bool):
        raise InvalidInput(field, "must be true or false")
    return value


def byte_string(field: str, value: bytes) -> bytes:
    if not isinstance(cast(Any, value), bytes):
        raise InvalidInput(field, "must be bytes")
    return value


def json_object(field: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object that JSON can represent."""
    if not isinstance(cast(Any, value), Mapping):
        raise InvalidInput(field, "must be a JSON object")
    return cast("Mapping[str, Any]", plain_json(field, value))


def path_argument(field: str, value: Path) -> Path:
    """The path of a file. The file need not exist."""
    if not isinstance(cast(Any, value), Path):
        raise InvalidInput(field, "must be a path")
    try:
        encoded = os.fsencode(value)
    except UnicodeEncodeError:
        encoded = b"\x00"
    if not value.name:
        raise InvalidInput(field, "must name a file")
    if b"\x00" in encoded:
        raise InvalidInput(field, "must be a path that a file can have")
    return value


def callback(field: str, value: F | None) -> F | None:
    if value is not None and not callable(cast(Any, value)):
        raise InvalidInput(field, "must be a function")
    return value


# --- Structs ----------------------------------------------------------------------------------


def checked(kind: type[S], value: S, place: str = "") -> S:
    """The value, with every field of the type that its annotation names.

    `place` is the path of the value in the operation's arguments; errors begin with it.
    """
    return _converted(kind, _plain_fields(kind, value, place), place)


def checked_list(kind: type[S], values: Sequence[S], place: str) -> tuple[S, ...]:
    """The values, each of them checked."""
    return tuple(
        checked(kind, value, f"{place}[{position}]")
        for position, value in enumerate(listed(place, values))
    )


def checked_filters(filters: Filters, place: str = "filters") -> Filters:
    """Filters that SQL can apply."""
    if filters is _NO_FILTERS or filters == _NO_FILTERS:
        return _NO_FILTERS
    if not isinstance(cast(Any, filters), Filters):
        raise InvalidInput(place, "must be a Filters")
    fields = asdict(filters)
    metadata = fields.pop("metadata")
    _make_plain(fields, place)
    plain = _converted(Filters, fields, place)
    for name in ("sources", "categories", "statuses", "levels", "tags"):
        if len(getattr(plain, name)) > LIST_LIMIT:
            raise InvalidInput(f"{place}.{name}", f"must not have more than {LIST_LIMIT} entries")
    if len((plain.contains or "").split()) > FILTER_LIMIT:
        raise InvalidInput(f"{place}.contains", f"must not have more than {FILTER_LIMIT} words")
    if metadata == {}:
        return plain
    members = _wanted_members(metadata, f"{place}.metadata")
    return msgspec.structs.replace(plain, metadata=members)


def _wanted_members(metadata: Any, field: str) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        raise InvalidInput(field, "must be a JSON object")
    wanted = cast("Mapping[Any, Any]", metadata)
    if len(wanted) > FILTER_LIMIT:
        raise InvalidInput(field, f"must not name more than {FILTER_LIMIT} members")
    return {
        # A number too large to be stored is allowed here: no item has it, so nothing is found.
        storable_text(field, name): value
        if isinstance(value, int)
        else plain_json(f"{field}.{name}", value)
        for name, value in wanted.items()
    }


def checked_query(query: Query) -> Query:
    """A query that can be run. Any string is a valid question; see `validate.plain_query`."""
    if not isinstance(cast(Any, query), Query):
        raise InvalidInput("query", "must be a Query")
    fields = asdict(query)
    fields["bank"] = bank_argument(query.bank)
    fields["text"] = _question("text", query.text)
    if query.keywords is not None:
        fields["keywords"] = _question("keywords", query.keywords)
    filters = fields.pop("filters")
    _make_plain(fields, "")
    fields["filters"] = checked_filters(filters)
    plain = _converted(Query, fields, "")
    check_range("limit", plain.limit, 1, PAGE_LIMIT)
    check_range("passages", plain.passages, 0, PASSAGES_LIMIT)
    check_weight("keyword_weight", plain.keyword_weight)
    check_weight("vector_weight", plain.vector_weight)
    return plain


def _question(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(field, "must be a string")
    return plain_query(value)


# --- helpers ----------------------------------------------------------------------------------


def _converted(kind: type[S], fields: dict[str, Any], place: str) -> S:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise _invalid(error, place) from None


def _plain_fields(kind: type[Struct], value: Any, place: str) -> dict[str, Any]:
    """The fields of a Struct, ready for `msgspec.convert`."""
    if not isinstance(value, kind):
        raise InvalidInput(place or _noun(kind), f"must be a {kind.__name__}")
    fields = asdict(value)
    _make_plain(fields, place)
    return fields


def _make_plain(fields: dict[str, Any], place: str) -> None:
    """Check the members that `msgspec.convert` would accept as they are, and make them plain.

    msgspec does not look into Structs that already have the right class, and it accepts strings
    that cannot be stored, NaN and -0.0.
    """
    for name, member in fields.items():
        if member is None:
            continue
        if type(member) is str:
            if not member.isascii() or "\x00" in member:
                storable_text(_within(place, name), member)
        elif name in _PARTS:
            fields[name] = _plain_part(_PARTS[name], member, _within(place, name))
        else:
            fields[name] = _plain_member(member, place, name)


def _plain_part(kind: type[Struct], member: Any, place: str) -> Any:
    if isinstance(member, list | tuple):
        members = cast("Sequence[Any]", member)
        return [_plain_fields(kind, each, f"{place}[{at}]") for at, each in enumerate(members)]
    return _plain_fields(kind, member, place)


def _plain_member(member: Any, place: str, name: str) -> Any:
    if isinstance(member, str):  # a subclass: a member of an enum, for instance
        return storable_text(_within(place, name), member)
    if isinstance(member, float):
        check_finite(_within(place, name), member)
        # msgspec turns an int into a float where a float is wanted, but never a float into an int.
        return int(member) if member.is_integer() else float(member)
    if isinstance(member, list | tuple):
        members = cast("Sequence[Any]", member)
        return [_plain_member(each, place, f"{name}[{at}]") for at, each in enumerate(members)]
    if isinstance(member, Mapping):
        return plain_json(_within(place, name), member)
    if isinstance(member, set | frozenset):  # msgspec would take it, in no particular order
        raise InvalidInput(_within(place, name), "must be a list")
    return member


def _within(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _noun(kind: type[Struct]) -> str:
    """The name of an argument of this type: `memory` for a `NewMemory`."""
    return kind.__name__.removeprefix("New").lower()


def _invalid(error: msgspec.ValidationError, place: str) -> InvalidInput:
    """msgspec's error as ours: the field's path and the rule in plain words."""
    message = str(error)
    found = _PLACE.search(message)
    inner = found.group(1) if found else ""
    field = f"{place}{inner}" if not place or inner.startswith("[") else _within(place, inner)
    field = field.removesuffix(".")
    expected = _EXPECTED.match(message)
    choices = _CHOICES.get(_STEPS.split(_POSITION.sub("", field))[-1])
    if message.startswith("Invalid enum value") and choices is not None:
        return InvalidInput(field, f"must be one of {', '.join(choices)}")
    if expected is not None:
        return InvalidInput(field, f"must be {_TYPE_NAMES.get(expected.group(1), 'valid')}")
    if message.startswith(("Expected `int`", "Number out of range")):
        return InvalidInput(field, "must be a number of at most 64 bits")
    return InvalidInput(field, f"must be valid: {message.split(' - at ')[0]}")
