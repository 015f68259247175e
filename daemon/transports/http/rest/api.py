"""The REST API for memories under `/api/v1`: routing, arguments, versions and statuses.

`daemon.api` defines the operations. A page (a request with an `Origin`) that changes something must
send `X-Recalld-Request`, which a form or an image of another site cannot do.
"""

from typing import Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from daemon.api.bulk import ExportFile
from daemon.api.operation import PREFIX, BoundOperation
from daemon.api.registry import ApiOperations
from daemon.tools.authority import Principal
from daemon.tools.errors import ArgumentsRefused
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import (
    CLOSE,
    Receive,
    Refusal,
    Scope,
    Send,
    headers_of,
    only,
    reply,
)
from daemon.transports.http.rest.calls import RestCalls
from daemon.transports.http.rest.file_response import send_file
from daemon.transports.http.router import Route

#: The header that a page must send with a request that changes something.
REQUEST_HEADER: Final = "x-recalld-request"
#: A query has at most this many parameters.
MOST_PARAMETERS: Final = 200


class _Versioned(Struct):
    version: str


class Api:
    """The endpoint of all paths under `/api/v1`."""

    def __init__(self, operations: ApiOperations, calls: RestCalls) -> None:
        self._operations = operations
        self._calls = calls

    def fallback(self) -> dict[str, Route]:
        verbs = ("GET", "POST", "PATCH", "DELETE")
        return {"/api/": Route(f"{PREFIX}/…", self._call, verbs)}

    async def _call(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        bound, members = self._find(scope)
        operation = bound.operation
        access.route = PREFIX + operation.path
        headers = headers_of(scope)
        if operation.verb != "GET" and "origin" in headers and REQUEST_HEADER not in headers:
            raise Refusal(403, "a page must send the header X-Recalld-Request: 1", headers=[CLOSE])
        if operation.for_owner and not principal.is_owner:
            raise Refusal(403, "this operation is for the owner")
        version = only(headers, "if-match")
        extra = {"if_match": version} if version is not None and operation.has_version else {}
        try:
            if operation.takes_body:
                body = await self._read_body(headers, receive, access)
                arguments = bound.from_body(members, body, extra)
            else:
                query = query_of(scope)
                arguments = bound.from_query(members, query, extra)
        except ArgumentsRefused as refused:
            raise Refusal(400, str(refused)) from None
        # A person who types a search reads several times a second; the limiter is for agents.
        is_limited = not (operation.spec.read_only and principal.is_owner)
        answer = await self._calls.run(
            bound.tool,
            arguments,
            headers,
            principal,
            access,
            is_limited=is_limited,
            is_long=operation.is_long,
        )
        if operation.has_file:
            await send_file(send, msgspec.json.decode(answer, type=ExportFile))
            return
        found: list[tuple[bytes, bytes]] = []
        if operation.has_version:
            version = msgspec.json.decode(answer, type=_Versioned).version
            found.append((b"etag", f'"{version}"'.encode()))
        await reply(send, operation.status, answer, found)

    def _find(self, scope: Scope) -> tuple[BoundOperation, dict[str, str]]:
        try:
            # The raw path, because a name may contain an escaped slash.
            found = self._operations.find(scope["raw_path"].decode("ascii"))
        except (UnicodeDecodeError, ValueError):
            raise Refusal(400, "the path is not valid UTF-8") from None
        if found is None:
            raise Refusal(404, "nothing is served at this path")
        verbs, members = found
        operation = verbs.get(scope["method"])
        if operation is None:
            allowed = [*verbs, *(["HEAD"] if "GET" in verbs else []), "OPTIONS"]
            allow = (b"allow", ", ".join(allowed).encode())
            text = f"{scope['method']} is not allowed here; see the Allow header"
            raise Refusal(405, text, headers=[allow, CLOSE])
        return self._operations.bind(operation), members

    async def _read_body(
        self, headers: dict[str, list[str]], receive: Receive, access: AccessRecord
    ) -> bytes:
        if headers.get("content-length") == ["0"] or (
            "content-length" not in headers and "transfer-encoding" not in headers
        ):
            return b"{}"
        return await self._calls.read_arguments(headers, receive, access)


def query_of(scope: Scope) -> list[tuple[str, str]]:
    """The parameters of the query, in their order."""
    try:
        return parse_qsl(
            scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
    except (UnicodeDecodeError, ValueError):
        raise Refusal(400, "the query is not valid, or has too many parameters") from None
