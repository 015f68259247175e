"""All operations of the REST API, and the search for the one that a request names."""

from collections.abc import Iterable
from urllib.parse import unquote

from daemon.api import (
    banks,
    bulk,
    documents,
    history,
    knowledge,
    memories,
    overview,
    related,
    searching,
)
from daemon.api.administration import importing
from daemon.api.operation import PREFIX, BoundOperation, Operation
from daemon.tools.answer_size import ANSWER_BYTES
from daemon.tools.toolkit import Toolkit

#: The verbs of each path template, for example {"GET": …, "POST": …}.
Verbs = dict[str, Operation]


class ApiOperations:
    """The operations by path. Templates are compared piece by piece; fixed pieces come first."""

    def __init__(self, operations: Iterable[Operation], answer_bytes: int = ANSWER_BYTES) -> None:
        self._answer_bytes = answer_bytes
        self._by_length: dict[int, dict[tuple[str, ...], Verbs]] = {}
        #: Decoders and schemas are made for operations that are called, not at the start.
        self._bound: dict[str, BoundOperation] = {}
        self.listed: list[Operation] = []
        self.add(operations)

    def add(self, operations: Iterable[Operation]) -> None:
        """Serve more operations."""
        for operation in operations:
            self.listed.append(operation)
            pieces = tuple(operation.path.strip("/").split("/"))
            verbs = self._by_length.setdefault(len(pieces), {}).setdefault(pieces, {})
            verbs[operation.verb] = operation

    def bind(self, operation: Operation) -> BoundOperation:
        """The operation, ready to be called."""
        name = operation.spec.name
        if name not in self._bound:
            self._bound[name] = BoundOperation(operation, self._answer_bytes)
        return self._bound[name]

    def find(self, path: str) -> tuple[Verbs, dict[str, str]] | None:
        """The verbs of a path such as `/api/v1/banks/work`, and the members of its template."""
        if not path.startswith(f"{PREFIX}/"):
            return None
        given = path.removeprefix(f"{PREFIX}/").split("/")
        for pieces, verbs in self._by_length.get(len(given), {}).items():
            members = _members(pieces, given)
            if members is not None:
                return verbs, members
        return None


def _members(pieces: tuple[str, ...], given: list[str]) -> dict[str, str] | None:
    members: dict[str, str] = {}
    for piece, value in zip(pieces, given, strict=True):
        if piece.startswith("{"):
            if not value:
                return None
            members[piece.strip("{}")] = unquote(value, errors="strict")
        elif piece != value:
            return None
    return members


def build(toolkit: Toolkit, more: Iterable[Operation] = ()) -> ApiOperations:
    """The operations over an engine, and `more` of packages that this one does not know."""
    modules = (
        banks, importing, memories, related, bulk, searching, history, overview, documents,
        knowledge,
    )  # fmt: skip
    operations = [each for module in modules for each in module.operations(toolkit)]
    return ApiOperations([*operations, *more], toolkit.answer_bytes)
