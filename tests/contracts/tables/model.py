"""The vocabulary of the tables: what a document says about a tool, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.contracts.client import Answer, Client

#: A parameter whose document names no default.
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

    `bad` are values this parameter refuses beyond those of the wrong type; `accepts` are types it
    takes beyond its own (a document's "string or list").
    """

    name: str
    type: str
    required: bool = False
    default: Any = NONE
    enum: tuple[str, ...] = ()
    bad: tuple[Any, ...] = ()
    accepts: tuple[str, ...] = ()
    #: False where a schema says more than the document's one word for the type.
    typed: bool = True


@dataclass(frozen=True)
class Tool:
    """A documented tool.

    `result` maps each documented field (dotted, `[]` for members of a list) to its types;
    `ours` names fields we add. `arguments` is a call that works after `given` has run.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Mapping[str, str] | str
    arguments: Mapping[str, Any]
    given: Callable[[Client], Mapping[str, Any] | None] | None = None
    ours: frozenset[str] = frozenset()
    read_only: bool = False


@dataclass(frozen=True)
class Dialect:
    """A document: its tools, and how it says no.

    `refused` takes an answer that says no in a result, checks its form, and gives the message.
    `observe` gives what must not change when a call is refused.
    """

    name: str
    tools: tuple[Tool, ...]
    refused: Callable[[Answer], str]
    observe: Callable[[Client], Any]
    extras: Mapping[str, Any] = field(default_factory=dict)


def missing_and_strange(result: Any, tool: Tool) -> tuple[list[str], list[str]]:
    """Documented fields that are absent or of the wrong type, and fields nobody documented."""
    assert not isinstance(tool.result, str)
    documented = tool.result
    wrong: list[str] = []
    seen: set[str] = set()

    def walk(value: Any, path: str) -> None:
        if path in documented:
            seen.add(path)
            if not any(TYPES[name](value) for name in documented[path].split("|")):
                wrong.append(f"{path} is {value!r}, not {documented[path]}")
        elif path and path not in tool.ours:
            strange.append(path)
        if path in tool.ours:
            return
        if isinstance(value, dict) and (
            not path or any(p.startswith(f"{path}.") for p in documented)
        ):
            for name, member in value.items():
                walk(member, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for member in value:
                walk(member, f"{path}[]")

    strange: list[str] = []
    walk(result, "")
    wrong += [f"{path} is missing" for path in documented if path not in seen]
    return wrong, strange
