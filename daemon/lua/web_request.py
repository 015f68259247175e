"""HTTP requests of scripts, limited to allowed hosts.

A host is allowed if a rule equals it (`api.example.com`, `api.example.com:8443`), covers its
subdomains (`*.example.com`), or is `*`. An address of this machine, a link-local address and other
special addresses are reached only if a rule names that host itself, never through a name that
happens to resolve to them. Every redirect is checked again, and the connection is made to the
address that was checked.
"""

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import anyio
import anyio.to_thread
from msgspec import Struct

MOST_BYTES: Final = 8 * 1024 * 1024
MOST_REDIRECTS: Final = 10
#: Requests of all scripts that may run at the same time.
_CONCURRENT: Final = 16
_CHUNK: Final = 64 * 1024
_REDIRECTS: Final = (301, 302, 303, 307, 308)

_limiter: Final = anyio.CapacityLimiter(_CONCURRENT)


class RequestRefused(Exception):
    """The request was not made, or failed; the message is the reason."""


class WebRequest(Struct, frozen=True, kw_only=True):
    """A request as a script gives it."""

    method: str
    url: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    parameters: Mapping[str, str] = {}
    seconds: float = 30.0
    is_json: bool = False


async def perform(request: WebRequest, rules: tuple[str, ...]) -> dict[str, Any]:
    """The response as a table: status, ok, headers, body."""
    if not rules:
        raise RequestRefused("is off; allow_hosts lists the hosts that a script may reach")
    url = request.url
    if request.parameters:
        url += ("&" if "?" in url else "?") + urlencode(request.parameters)
    deadline = time.monotonic() + max(0.1, request.seconds)
    work = partial(_follow, request, url, rules, deadline)
    # A cancelled call leaves its thread to end by the deadline.
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=_limiter)


def _follow(
    request: WebRequest, url: str, rules: tuple[str, ...], deadline: float
) -> dict[str, Any]:
    method, body = request.method, request.body
    for _ in range(MOST_REDIRECTS + 1):
        try:
            answer = _once(request, method, url, body, rules, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            kind = "timed out" if isinstance(error, TimeoutError) else str(error)
            raise RequestRefused(f"{urlsplit(url).hostname or url[:80]}: {kind}") from None
        location = answer["headers"].get("location")
        if answer["status"] not in _REDIRECTS or not location:
            return answer
        url = urljoin(url, location)
        if answer["status"] == 303 or (answer["status"] in (301, 302) and method == "POST"):
            method, body = "GET", b""
    raise RequestRefused(f"more than {MOST_REDIRECTS} redirects")


def _once(
    request: WebRequest,
    method: str,
    url: str,
    body: bytes,
    rules: tuple[str, ...],
    deadline: float,
) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestRefused("only http and https addresses are possible")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = _checked_address(parts.hostname, port, rules)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"user-agent": "recalld", "accept-encoding": "identity"}
    if request.is_json:
        headers["content-type"] = "application/json"
    first = urlsplit(request.url)
    is_same_host = (first.hostname, first.scheme) == (parts.hostname, parts.scheme)
    for name, value in request.headers.items():
        if is_same_host or name.lower() not in ("authorization", "cookie"):
            headers[name.lower()] = value
    connection = _connect(parts.scheme, parts.hostname, port, address, deadline)
    try:
        connection.request(method, target, body or None, headers)
        response = connection.getresponse()
        found = _read(response, connection, deadline)
        return {
            "status": response.status,
            "ok": 200 <= response.status < 300,
            "headers": {name.lower(): value for name, value in response.getheaders()},
            "body": found,
        }
    finally:
        connection.close()


def _connect(
    scheme: str, host: str, port: int, address: str, deadline: float
) -> http.client.HTTPConnection:
    """A connection to the checked address; the name is used for TLS and the Host header only."""
    link = socket.create_connection((address, port), timeout=_left(deadline))
    connection = http.client.HTTPConnection(host, port, timeout=_left(deadline))
    if scheme == "https":
        connection.default_port = 443
        try:
            link = ssl.create_default_context().wrap_socket(link, server_hostname=host)
        except BaseException:
            link.close()
            raise
    connection.sock = link
    return connection


def _read(
    response: http.client.HTTPResponse, connection: http.client.HTTPConnection, deadline: float
) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if connection.sock is not None:
            connection.sock.settimeout(_left(deadline))
        part = response.read1(_CHUNK)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MOST_BYTES:
            raise RequestRefused(f"the response is larger than {MOST_BYTES} bytes")
        parts.append(part)
        _left(deadline)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _checked_address(host: str, port: int, rules: tuple[str, ...]) -> str:
    """The address to connect to; raises `RequestRefused` unless the rules allow it."""
    host = host.lower().rstrip(".")
    rule = next((rule for rule in rules if _covers(rule.lower(), host, port)), None)
    if rule is None:
        raise RequestRefused(f"the host {host} is not in allow_hosts")
    is_named = rule.lower() in (host, f"{host}:{port}", f"[{host}]", f"[{host}]:{port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise RequestRefused(f"the host {host} has no address") from None
    may_be_special = is_named and (_is_address(host) or host == "localhost")
    for *_, place in found:
        address = str(place[0])
        if may_be_special or not _is_special(address):
            return address
    raise RequestRefused(f"the host {host} is an address of this machine or a link-local one")


def _covers(rule: str, host: str, port: int) -> bool:
    if rule in ("*", host, f"{host}:{port}", f"[{host}]", f"[{host}]:{port}"):
        return True
    return rule.startswith("*.") and host.endswith(rule[1:])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_special(address: str) -> bool:
    """Whether an address is this machine, link-local, multicast, unspecified or reserved."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is not None:
            found = inner
    return (
        found.is_loopback
        or found.is_link_local
        or found.is_multicast
        or found.is_unspecified
        or found.is_reserved
    )
