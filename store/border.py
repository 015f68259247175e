"""The border: a value that comes in is what its type says, before anything is done with it.

Types are promises that nobody keeps at run time. Below the border they are relied on: a whole
number in a column of reals would come back as another value than was written (and its row would
be called damaged), half a surrogate pair stops SQLite's binding with an error of its own, and so
does a number of more than 64 bits. So each verb's arguments are held against its signature, once,
here; a value that is nearly right (1 for 1.0, a list for a tuple) is put right, and any other is
`InvalidInput` naming the field. What a type cannot say (limits, choices) stays with its noun.
"""

import inspect
import operator
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from store.errors import BankNameInvalid, InvalidInput
from store.model import Filters, NewMemory, Query
from store.validate import LIST_LIMIT, plain_json, plain_text, real, whole

T = TypeVar("T")
C = TypeVar("C")

# Each member and word of a filter is a condition, and SQLite joins no more than a thousand.
FILTER_LIMIT: Final = 200

# Takes a field's name and its value, gives the value to go on with.
_Check = Callable[[str, Any], Any]


def typed(kind: type[T], value: T) -> T:
    """A value with every field as its type says, or `InvalidInput` naming the one that is not."""
    return cast(T, _struct(cast(Any, kind))("", value))


def guarded(kind: type[C]) -> type[C]:
    """The class with its public verbs refusing arguments that are not what their types say."""
    for name in dir(kind):
        verb = inspect.getattr_static(kind, name)
        if not name.startswith("_") and inspect.isfunction(verb):
            setattr(kind, name, _guard(verb))
    return kind


def _guard(verb: Callable[..., Any]) -> Callable[..., Any]:
    hints = get_type_hints(verb)
    names = list(inspect.signature(verb).parameters)[1:]
    checks = {name: _argument(hints[name]) for name in names}
    # A bank goes by its name: as `bank` beside other things, as `name` in the verbs about banks.
    for name in ("bank",) if "bank" in checks else ("name", "new_name"):
        if hints.get(name) is str:
            checks[name] = _bank
    ordered = list(checks.items())

    def plain(given: tuple[Any, ...], named: dict[str, Any]) -> Iterable[Any]:
        for name, value in named.items():
            if name in checks:
                named[name] = checks[name](name, value)
        known = [check(name, value) for (name, check), value in zip(ordered, given, strict=False)]
        return (*known, *given[len(known) :])

    if inspect.iscoroutinefunction(verb):

        @wraps(verb)
        async def checked(self: Any, *given: Any, **named: Any) -> Any:
            return await verb(self, *plain(given, named), **named)

        return checked

    @wraps(verb)
    def checked_at_once(self: Any, *given: Any, **named: Any) -> Any:
        return verb(self, *plain(given, named), **named)

    return checked_at_once


def _argument(hint: Any) -> _Check:
    """The check of an argument. What a verb is about gives its fields their names."""
    if _is_struct(hint) and hint is not Filters:
        check = _check_of(hint)
        return lambda _, value: check("", value)
    return _check_of(hint)


@cache
def _check_of(hint: Any) -> _Check:
    """How a value of this type is checked."""
    if hint is NewMemory:
        return _new_memory
    if _is_struct(hint):
        return _struct(hint)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = [_check_of(each) for each in arguments if each is not types.NoneType]
        return lambda field, value: None if value is None else inner(field, value)
    if origin is Literal:
        return _choice(arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _row([_check_of(each) for each in arguments])
    if origin in (tuple, list, Sequence):
        return _list(_check_of(arguments[0]), Sequence)
    if origin is Iterable:
        return _list(_check_of(arguments[0]), Iterable)
    if origin is Mapping:
        return _mapping
    if origin is Callable:
        return _function
    raise TypeError(f"the border has no check for {hint!r}")  # seen when the program starts


@cache
def _struct(kind: Any) -> _Check:
    hints = get_type_hints(kind)
    own = _OWN.get(kind, {})
    fields = [
        (field.name, field.default, own.get(field.name) or _check_of(hints[field.name]))
        for field in msgspec.structs.fields(kind)
    ]

    def check(place: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise InvalidInput(place or _spelled(kind), f"must be a {kind.__name__}")
        changed: dict[str, Any] = {}
        for name, default, check_field in fields:
            given = getattr(value, name)
            if given is default:
                continue
            try:
                plain = check_field(name, given)
            except InvalidInput as error:
                raise error.within(place) if place else error from None
            if plain is not given:
                changed[name] = plain
        return msgspec.structs.replace(value, **changed) if changed else value

    return check


def _spelled(kind: type) -> str:
    """What a value of this type is called when it has no other name: `NewMemory`, a memory."""
    return kind.__name__.removeprefix("New").lower()


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _list(check: _Check, shape: Any) -> _Check:
    def check_list(field: str, value: Any) -> Any:
        if not isinstance(value, shape) or isinstance(value, str | bytes | Mapping):
            raise InvalidInput(field, "must be a list")
        given = cast("Iterable[Any]", value)
        plain = tuple(check(f"{field}[{position}]", each) for position, each in enumerate(given))
        is_plain = isinstance(given, tuple) and all(map(operator.is_, plain, given))
        return given if is_plain else plain

    return check_list


def _row(checks: list[_Check]) -> _Check:
    def check_row(field: str, value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(cast(Any, value)) != len(checks):
            raise InvalidInput(field, f"must be a list of {len(checks)}")
        pairs = enumerate(zip(checks, cast(Any, value), strict=True))
        return tuple(check(f"{field}[{position}]", each) for position, (check, each) in pairs)

    return check_row


def _choice(choices: tuple[Any, ...]) -> _Check:
    def check_choice(field: str, value: Any) -> Any:
        # By equality: what cannot be hashed is no choice either.
        for choice in choices:
            if isinstance(value, str) and value == choice:
                return choice
        raise InvalidInput(field, f"must be one of {', '.join(choices)}")

    return check_choice


def _new_memory(field: str, value: Any) -> Any:
    """Only that it is one: its fields are held against their types by `memories.prepare`."""
    if not isinstance(value, NewMemory):
        raise InvalidInput(field or "memory", "must be a NewMemory")
    return value


def _mapping(field: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidInput(field, "must be a JSON object")
    return plain_json(field, value)


def _wanted(field: str, value: Any) -> Any:
    """Metadata to be compared with: a number too large to be stored may be asked for in vain."""
    if not isinstance(value, Mapping):
        raise InvalidInput(field, "must be a JSON object")
    if len(cast(Any, value)) > FILTER_LIMIT:
        raise InvalidInput(field, f"must not name more than {FILTER_LIMIT} members")
    return {
        plain_text(field, name): wanted
        if isinstance(wanted, int)
        else plain_json(f"{field}.{name}", wanted)
        for name, wanted in cast("Mapping[Any, Any]", value).items()
    }


def _words(field: str, value: Any) -> Any:
    if value is not None and len(plain_text(field, value).split()) > FILTER_LIMIT:
        raise InvalidInput(field, f"must not have more than {FILTER_LIMIT} words")
    return value


def _some(field: str, value: Any) -> Any:
    chosen = _check_of(tuple[str, ...])(field, value)
    if len(chosen) > LIST_LIMIT:
        raise InvalidInput(field, f"must not have more than {LIST_LIMIT} entries")
    return chosen


def _bank(field: str, value: Any) -> Any:
    try:
        return plain_text(field, value)
    except InvalidInput as error:
        raise BankNameInvalid(error.rule) from None


def _question(field: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise InvalidInput(field, "must be a text")
    return value


def _keywords(field: str, value: Any) -> Any:
    return None if value is None else _question(field, value)


def _flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, "must be true or false")
    return value


def _bytes(field: str, value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidInput(field, "must be bytes")
    return value


def _path(field: str, value: Any) -> Path:
    if not isinstance(value, Path):
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


def _function(field: str, value: Any) -> Any:
    if not callable(value):
        raise InvalidInput(field, "must be a function")
    return value


def _as_it_is(_: str, value: Any) -> Any:
    return value


_SIMPLE: Final[dict[Any, _Check]] = {
    str: plain_text,
    int: whole,
    float: real,
    bool: _flag,
    bytes: _bytes,
    Path: _path,
    Any: _as_it_is,
}
_OWN: Final[dict[Any, dict[str, _Check]]] = {
    # Any string is a question; see `validate.plain_query`.
    Filters: {
        "metadata": _wanted,
        "contains": _words,
        **dict.fromkeys(("sources", "categories", "statuses", "levels"), _some),
    },
    Query: {"bank": _bank, "text": _question, "keywords": _keywords},
}
