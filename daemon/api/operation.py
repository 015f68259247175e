"""An operation of the REST API: a tool with an HTTP method and a path.

The members of the path template, the query and the body together form the arguments, so an
operation is decoded, authorised, limited and recorded like any other tool call. GET and DELETE take
their other arguments from the query, POST and PATCH from the JSON body.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, get_type_hints

import msgspec
from msgspec import Struct

from daemon.tools.answer_size import ANSWER_BYTES
from daemon.tools.bound_tool import BoundTool
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import ToolSpec
from protocol.lifecycle import explain
from protocol.mcp import error_result

PREFIX: Final = "/api/v1"
Verb = Literal["GET", "POST", "PATCH", "DELETE"]

_MEMBER: Final = re.compile(r"\{(\w+)\}")
_encoder: Final = msgspec.json.Encoder()

#: The API reports refusals as HTTP errors, so the text of a refusal is its reason alone.
API: Final = Dialect(name="api", refuse=error_result)


class Operation(Struct, frozen=True, kw_only=True, eq=False):
    """One operation. `path` is relative to `/api/v1`; `tag` groups operations in documents."""

    verb: Verb
    path: str
    tag: str
    spec: ToolSpec
    #: The status of a success.
    status: int = 200
    #: An example of the body, for the OpenAPI document.
    example: Mapping[str, Any] | None = None
    #: Whether only the owner may call it, whatever bank it names.
    for_owner: bool = False
    #: Whether it may take longer than `limits.call_seconds`.
    is_long: bool = False
    #: Whether the result names a file, which is the body of the response.
    has_file: bool = False
    #: Whether the result has a version, which `ETag` repeats and `If-Match` may require.
    has_version: bool = False

    @property
    def members(self) -> tuple[str, ...]:
        """The names in the path template, in order."""
        return tuple(_MEMBER.findall(self.path))

    @property
    def takes_body(self) -> bool:
        return self.verb in ("POST", "PATCH")


def operation(
    verb: Verb,
    path: str,
    run: Callable[..., Any],
    *,
    service: Any,
    tag: str,
    status: int = 200,
    example: Mapping[str, Any] | None = None,
    for_owner: bool = False,
    has_version: bool = False,
    has_file: bool = False,
    is_long: bool = False,
    reads: bool | None = None,
    destroys: bool | None = None,
    idempotent: bool = False,
    fields: Mapping[str, str] | None = None,
) -> Operation:
    """The operation that a function `run(service, arguments, context)` performs.

    Its name and its docstring are the name and the description of the operation, and its type hints
    are the types of the arguments and of the result. `fields` maps engine fields to arguments.
    """
    hints = get_type_hints(run)
    arguments: type[Struct] = hints[list(inspect.signature(run).parameters)[1]]
    is_reading = verb == "GET" if reads is None else reads
    return Operation(
        verb=verb,
        path=path,
        tag=tag,
        status=status,
        example=example,
        for_owner=for_owner,
        has_version=has_version,
        has_file=has_file,
        is_long=is_long,
        spec=ToolSpec(
            name=run.__name__,
            description=" ".join(inspect.cleandoc(run.__doc__ or "").split()),
            arguments=arguments,
            run=partial(run, service),
            output=hints["return"],
            read_only=is_reading,
            destructive=verb == "DELETE" if destroys is None else destroys,
            idempotent=idempotent,
            fields=fields or {},
            uses_bank="bank" in arguments.__struct_fields__,
        ),
    )


class BoundOperation:
    """An operation ready to be called."""

    __slots__ = ("_lists", "operation", "tool")

    def __init__(self, operation: Operation, answer_bytes: int = ANSWER_BYTES) -> None:
        self.operation = operation
        self.tool = BoundTool(operation.spec, API, answer_bytes)
        self._lists = _list_fields(operation.spec.arguments)

    def from_query(
        self,
        members: Mapping[str, str],
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
    ) -> bytes:
        """The arguments of a GET or DELETE as JSON. Text becomes numbers where a number is due."""
        given: dict[str, Any] = {}
        for name, value in query:
            if name in members:
                raise ArgumentsRefused(f"{name}: is part of the path")
            if name in self._lists:
                given.setdefault(name, []).append(value)
            elif name in given:
                raise ArgumentsRefused(f"{name}: must not be repeated")
            else:
                given[name] = value
        kind = self.operation.spec.arguments
        try:
            typed = msgspec.convert({**given, **members, **headers}, kind, strict=False)
        except (msgspec.ValidationError, ValueError) as error:
            raise ArgumentsRefused(explain(error, kind)) from None
        return _encoder.encode(typed)

    def from_body(
        self, members: Mapping[str, str], body: bytes, headers: Mapping[str, str]
    ) -> bytes:
        """The arguments of a POST or PATCH as JSON."""
        try:
            given = msgspec.json.decode(body or b"{}", type=dict[str, msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError, ValueError):
            raise ArgumentsRefused("the body must be a JSON object") from None
        for name in members:
            if name in given:
                raise ArgumentsRefused(f"{name}: is part of the path")
        for name in headers:
            if name in given:
                raise ArgumentsRefused(f"{name}: is given by a header")
        return _encoder.encode({**given, **members, **headers})


def _list_fields(arguments: type[Struct]) -> frozenset[str]:
    """The fields that a query may repeat."""
    schema = msgspec.json.schema(arguments)
    properties = next(iter(schema["$defs"].values()))["properties"]
    return frozenset(name for name, entry in properties.items() if entry.get("type") == "array")
