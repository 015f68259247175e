"""Parses YAML with ruamel.yaml into typed nodes that carry their positions in the text."""

from typing import Any, Literal

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from daemon.setup.formats.syntax import SyntaxFault, fault_at


class Node(Struct, kw_only=True):
    """A value. `end` is the offset after its last character, without blank lines and comments."""

    kind: Literal["mapping", "sequence", "scalar"]
    start: int
    end: int
    line: int
    column: int
    is_flow: bool = False
    is_null: bool = False
    text: str = ""
    members: "list[tuple[Node, Node]]" = []
    elements: "list[Node]" = []


def load(text: str) -> Any:
    """The data of a file; an empty mapping for a file without a value."""
    try:
        data: Any = YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except MarkedYAMLError as error:
        fault: Any = error
        mark = fault.problem_mark or fault.context_mark
        reason = str(fault.problem or fault.context)
        if mark is None:
            raise fault_at(text, len(text), reason) from None
        raise SyntaxFault(reason, mark.line + 1, mark.column + 1) from None
    except (YAMLError, ValueError) as error:
        raise fault_at(text, 0, str(error).splitlines()[0]) from None
    return {} if data is None else data


def compose(text: str) -> Node | None:
    """The nodes of a text that `load` accepts."""
    root: Any = YAML(pure=True).compose(text)  # pyright: ignore[reportUnknownMemberType]
    return None if root is None else _node(root, text)


def _node(raw: Any, text: str) -> Node:
    start, end = int(raw.start_mark.index), int(raw.end_mark.index)
    is_flow = bool(getattr(raw, "flow_style", False))
    node = Node(
        kind="scalar",
        start=start,
        end=end,
        line=int(raw.start_mark.line) + 1,
        column=int(raw.start_mark.column),
        is_flow=is_flow,
    )
    if raw.id == "mapping":
        node.kind = "mapping"
        node.members = [(_node(key, text), _node(value, text)) for key, value in raw.value]
        if node.members and not is_flow:
            node.end = node.members[-1][1].end
    elif raw.id == "sequence":
        node.kind = "sequence"
        node.elements = [_node(item, text) for item in raw.value]
        if node.elements and not is_flow:
            node.end = node.elements[-1].end
    else:
        node.text = str(raw.value)
        node.is_null = str(raw.tag).endswith(":null")
        if raw.style in ("|", ">") or (start == end and text[:end].endswith("\n")):
            node.end = len(text[:end].rstrip())  # the mark of such a value is on a later line
    return node
