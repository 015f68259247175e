"""Host, Origin and token checks on every route, before the body is read.

Any web page can make a browser send requests to this machine. The browser itself distinguishes them
from the requests of local programs: it sends the Host it believes it talks to (after DNS rebinding,
a foreign name) and the Origin of the page. Both must be on our lists. The token is checked after
that.
"""

import re
from typing import Final

from daemon.tools.authority import OWNER, Principal
from daemon.transports.http.edge.bearer_tokens import Tokens
from daemon.transports.http.edge.messages import CLOSE, RawHeaders, Refusal, Scope

#: The names of the loopback interface.
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_ORIGIN: Final = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
_EVERYONE: Final = "*"

#: The request headers that a page on an allowed origin may send.
_REQUEST_HEADERS: Final = (
    "Authorization, Content-Type, If-Match, Last-Event-ID, MCP-Protocol-Version, Mcp-Method,"
    " Mcp-Name, Mcp-Session-Id, traceparent, X-Awareness-Agent-Role, X-Awareness-Memory-Id,"
    " X-Recalld-Request"
)
_ANSWER_HEADERS: Final = b"ETag, Mcp-Session-Id, Retry-After, WWW-Authenticate"
_PARAM_HEADER: Final = re.compile(r"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+")


class Guard:
    """The allowed hosts, origins and tokens."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        hosts: tuple[str, ...] = (),
        origins: tuple[str, ...] = (),
        tokens: Tokens,
    ) -> None:
        literal = f"[{host}]" if ":" in host else host
        names = [*LOOPBACK, *([literal] if literal not in ("0.0.0.0", "[::]") else [])]
        self._hosts = {f"{name}:{port}" for name in names}
        if port == 80:
            self._hosts |= set(names)
        self._hosts |= {name.lower() for name in hosts}
        self._origins = frozenset(origins)
        self._tokens = tokens

    @property
    def needs_token(self) -> bool:
        return self._tokens.are_needed

    def admit(self, scope: Scope) -> tuple[str | None, str | None]:
        """Check Host and Origin; gives (origin, authorization) or raises a 403 refusal."""
        hosts: list[bytes] = []
        origins: list[bytes] = []
        authorizations: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
            elif name == b"authorization":
                authorizations.append(value)
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self._hosts:
            raise Refusal(
                403, "this Host is not allowed; server.hosts lists further ones", headers=[CLOSE]
            )
        if len(origins) > 1 or len(authorizations) > 1:
            raise Refusal(
                403, "the Origin and Authorization headers must not be repeated", headers=[CLOSE]
            )
        origin = origins[0].decode("latin-1") if origins else None
        if origin is not None and not self._is_allowed(origin):
            raise Refusal(
                403,
                "this Origin is not allowed; server.cors_origins lists further ones",
                headers=[CLOSE],
            )
        return origin, authorizations[0].decode("latin-1") if authorizations else None

    def _is_allowed(self, origin: str) -> bool:
        return (
            _ORIGIN.fullmatch(origin) is not None
            or origin in self._origins
            or _EVERYONE in self._origins
        )

    def identify(self, authorization: str | None) -> Principal | None:
        """The caller; None if a token is required and this one is unknown."""
        if not self._tokens.are_needed:
            return OWNER
        return self._tokens.principal(authorization) if authorization is not None else None

    def cors_headers(self, origin: str | None) -> RawHeaders:
        """The headers that let a page on an allowed origin read the response."""
        if origin is None:
            return []
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _ANSWER_HEADERS),
            (b"vary", b"Origin"),
        ]


def preflight(scope: Scope, allow: bytes) -> RawHeaders:
    """The headers of the answer to a CORS preflight request."""
    asked = b""
    is_private = False
    for name, value in scope["headers"]:
        if name == b"access-control-request-headers":
            asked = value
        elif name == b"access-control-request-private-network":
            is_private = value == b"true"
    extra = [
        name
        for name in (part.strip().lower() for part in asked.decode("latin-1").split(","))
        if _PARAM_HEADER.fullmatch(name)
    ]
    allowed = ", ".join([_REQUEST_HEADERS, *extra])
    headers: RawHeaders = [
        (b"allow", allow),
        (b"access-control-allow-methods", allow),
        (b"access-control-allow-headers", allowed.encode("latin-1")),
        (b"access-control-max-age", b"600"),
    ]
    if is_private:
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers
