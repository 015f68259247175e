"""The parameters that a script declares, as a JSON Schema and as a typed Struct.

Context Harness scripts declare a list: `{{name = "query", type = "string", required = true}}`. A
table by name and a JSON Schema with `properties` are accepted as well. Arguments are decoded by a
Struct that is built from the declaration, so a wrong argument is refused in the same words as one
of a built-in tool.
"""

from functools import partial
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

MOST: Final = 64
_NAME_LENGTH: Final = 64

#: Lua integers have 64 bits.
_Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": _Integer,
    "number": _Integer | float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}


class Misdeclared(Exception):
    """The declaration breaks a rule; the message names the parameter."""


class Parameter(Struct, frozen=True, kw_only=True):
    """One declared parameter."""

    name: str
    type: str = "string"
    required: bool = False
    description: str = ""
    default: Any = UNSET
    enum: list[str | int | float] | UnsetType = UNSET


def read_parameters(declared: Any) -> list[Parameter]:
    """The parameters in the order of their declaration; a table by name is sorted."""
    entries = _entries(declared)
    if len(entries) > MOST:
        raise Misdeclared(f"parameters: a tool has at most {MOST}")
    found: list[Parameter] = []
    for entry in entries:
        found.append(_parameter(entry))
        if found[-1].name in {other.name for other in found[:-1]}:
            raise Misdeclared(f"parameters: {found[-1].name} is declared twice")
    return found


def _entries(declared: Any) -> list[dict[str, Any]]:
    if declared is None or declared in ({}, []):
        return []
    if isinstance(declared, list):
        return [_object(entry) for entry in cast("list[Any]", declared)]
    table = _object(declared)
    properties = table.get("properties")
    if isinstance(properties, dict):
        required: Any = table.get("required") or []
        return [
            {"required": name in required, **_object(entry), "name": name}
            for name, entry in cast("dict[str, Any]", properties).items()
        ]
    if set(table) == {"type"}:  # a JSON Schema of an object without properties
        return []
    return [{**_object(entry), "name": name} for name, entry in table.items()]


def _object(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise Misdeclared("parameters: each one is a table with name, type and description")
    return cast("dict[str, Any]", entry)


def _parameter(entry: dict[str, Any]) -> Parameter:
    name = entry.get("name")
    if not isinstance(name, str) or not 1 <= len(name) <= _NAME_LENGTH or not name.isprintable():
        raise Misdeclared(f"parameters: a name has 1 to {_NAME_LENGTH} printable characters")
    known = {key: entry[key] for key in entry if key in Parameter.__struct_fields__}
    try:
        parameter = msgspec.convert(known, Parameter)
    except msgspec.ValidationError as error:
        raise Misdeclared(f"parameters.{name}: {error}") from None
    if parameter.type not in _TYPES:
        allowed = ", ".join(_TYPES)
        raise Misdeclared(f"parameters.{name}: type {parameter.type!r} is not one of {allowed}")
    if parameter.enum == []:
        raise Misdeclared(f"parameters.{name}: enum is empty")
    if parameter.default is not UNSET:
        try:
            msgspec.convert(parameter.default, _kind(parameter))
        except msgspec.ValidationError as error:
            raise Misdeclared(f"parameters.{name}: default: {error}") from None
    return parameter


def schema(parameters: list[Parameter]) -> dict[str, Any]:
    """The JSON Schema of the arguments."""
    properties: dict[str, Any] = {}
    for parameter in parameters:
        described: dict[str, Any] = {"type": parameter.type}
        if parameter.description:
            described["description"] = parameter.description
        if parameter.enum is not UNSET:
            described["enum"] = parameter.enum
        if parameter.default is not UNSET:
            described["default"] = parameter.default
        properties[parameter.name] = described
    found: dict[str, Any] = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in parameters if parameter.required]
    if required:
        found["required"] = required
    return {**found, "additionalProperties": False}


def arguments_type(parameters: list[Parameter]) -> type[Struct]:
    """A Struct that decodes the arguments.

    Its attributes are not called like the parameters: a parameter may have a name that is no Python
    identifier, and a parameter called `bank` must not select a bank.
    """
    fields: list[Any] = []
    renamed: dict[str, str] = {}
    for position, parameter in enumerate(parameters):
        attribute = f"p{position}"
        renamed[attribute] = parameter.name
        kind = _kind(parameter)
        if parameter.default is not UNSET:
            copy = partial(msgspec.json.decode, msgspec.json.encode(parameter.default))
            fields.append((attribute, kind, msgspec.field(default_factory=copy)))
        elif parameter.required:
            fields.append((attribute, kind))
        else:
            fields.append((attribute, kind | UnsetType, UNSET))
    return msgspec.defstruct(
        "Arguments",
        fields,
        rename=renamed,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _kind(parameter: Parameter) -> Any:
    if parameter.enum is not UNSET:
        whole = [value for value in parameter.enum if isinstance(value, (str, int))]
        if len(whole) == len(parameter.enum):
            return Literal[tuple(whole)]
    return _TYPES[parameter.type]


def as_table(arguments: Struct) -> dict[str, Any]:
    """The arguments under the names of their parameters, without those that are not set."""
    return cast("dict[str, Any]", msgspec.to_builtins(arguments))
