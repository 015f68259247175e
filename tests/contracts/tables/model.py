"""The types of the tables: a dialect, its tools and their parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.contracts.client import Answer, Client

#: The default of a parameter for which the document names none.
NONE: Final = object()

#: JSON types as documents name them.
TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


@dataclass(frozen=True)
class Parameter:
    """One row of a document's parameter table.

    `bad` lists invalid values of the right type. `accepts` lists further JSON types that the
    parameter accepts (a document's "string or list").
    """

    name: str
    type: str
    required: bool = False
    default: Any = NONE
    enum: tuple[str, ...] = ()
    bad: tuple[Any, ...] = ()
    accepts: tuple[str, ...] = ()
    #: False where the listed schema is more precise than the document's one-word type.
    typed: bool = True


@dataclass(frozen=True)
class Tool:
    """A documented tool.

    `result` maps each documented field (dotted, `[]` for members of a list) to its types.
    `additional` names fields that recalld adds. `prepare` stores the data that a valid call needs
    and may return further arguments; `arguments` are valid after it has run.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Mapping[str, str] | str
    arguments: Mapping[str, Any]
    prepare: Callable[[Client], Mapping[str, Any] | None] | None = None
    additional: frozenset[str] = frozenset()
    read_only: bool = False


@dataclass(frozen=True)
class Dialect:
    """A dialect: its tools and the form of its errors.

    `refusal_message` checks the form of an error result and returns its message. `snapshot` returns
    data that a rejected call must not change.
    """

    name: str
    tools: tuple[Tool, ...]
    refusal_message: Callable[[Answer], str]
    snapshot: Callable[[Client], Any]
    #: False for a dialect that saves the tokens of output schemas; its results are structured too.
    has_output_schemas: bool = True


def check_fields(result: Any, tool: Tool) -> tuple[list[str], list[str]]:
    """Return documented fields that are missing or of the wrong type, and undocumented fields."""
    assert not isinstance(tool.result, str)
    documented = tool.result
    wrong: list[str] = []
    seen: set[str] = set()

    def walk(value: Any, path: str) -> None:
        if path in documented:
            seen.add(path)
            if not any(TYPES[name](value) for name in documented[path].split("|")):
                wrong.append(f"{path} is {value!r}, not {documented[path]}")
        elif path and path not in tool.additional:
            undocumented.append(path)
        if path in tool.additional:
            return
        if isinstance(value, dict) and (
            not path or any(p.startswith(f"{path}.") for p in documented)
        ):
            for name, member in value.items():
                walk(member, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for member in value:
                walk(member, f"{path}[]")

    undocumented: list[str] = []
    walk(result, "")
    wrong += [f"{path} is missing" for path in documented if path not in seen]
    return wrong, undocumented
