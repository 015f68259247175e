"""F13, H05, H21, H35 to H37: raw HTTP requests that no client library would send."""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import json
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Any

from conformance.check import Failed, NotApplicable, case, early, need
from conformance.client.http_headers import headers_for
from conformance.client.streamable_http import Reply
from conformance.context import Context
from conformance.suites.http_requests import basic, code, endpoint, post, status

DRIBBLE = 0.2
"""Seconds between one byte of a slow request and the next."""


class _Kept(io.BufferedReader):
    """A file on which close() does nothing: http.client closes it after one response."""

    def close(self) -> None:
        pass

    def really_close(self) -> None:
        super().close()


class Line:
    """One TCP connection: sends raw bytes and reads responses."""

    def __init__(self, ctx: Context) -> None:
        where = endpoint(ctx)
        self._ctx = ctx
        self.socket = where.raw_socket(where.timeout + 5)
        self._reader = _Kept(self.socket.makefile("rb", buffering=0))

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """The file from which `http.client` reads a response."""
        return self._reader

    def send(self, data: bytes) -> None:
        self._ctx.record(True, data)
        self.socket.sendall(data)

    def answer(self) -> Reply:
        """Read the next response."""
        response = http.client.HTTPResponse(self)  # type: ignore[arg-type]  # HTTPResponse only calls makefile
        try:
            response.begin()
            reply = Reply(response)
        except http.client.HTTPException as error:
            raise ConnectionError(f"no answer that is HTTP: {error!r}") from error
        self._ctx.record(False, b"%d %s" % (reply.status, reply.body))
        return reply

    def ended(self, seconds: float) -> bool:
        """Whether the server closes the connection in time; bytes before that are ignored."""
        until = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            while (left := until - time.monotonic()) > 0:
                self.socket.settimeout(left)
                try:
                    if not self._reader.read1(65536):
                        return True
                except OSError as error:
                    if isinstance(error, TimeoutError):
                        raise
                    return True
        return False

    def close(self) -> None:
        self._reader.really_close()
        self.socket.close()


@contextlib.contextmanager
def _line(ctx: Context) -> Iterator[Line]:
    line = Line(ctx)
    try:
        yield line
    finally:
        line.close()


def _head(ctx: Context, *more: str, version: str = "HTTP/1.1") -> bytes:
    """The head of a POST of `basic`, without a header that gives the length of the body."""
    where = endpoint(ctx)
    headers = where.signed(headers_for(basic(ctx), None, None))
    lines = [f"POST {where.path} {version}", f"Host: {where.host}:{where.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, *more, "", ""]).encode("latin-1")


def _body(ctx: Context, id: Any = 1) -> bytes:
    return json.dumps(basic(ctx, id)).encode()


def _post(ctx: Context, id: Any = 1, *more: str) -> bytes:
    body = _body(ctx, id)
    return _head(ctx, f"Content-Length: {len(body)}", *more) + body


def _chunked(body: bytes) -> bytes:
    half = len(body) // 2
    parts = (body[:half], body[half:])
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _served(line: Line, id: Any = 1) -> Reply:
    reply = line.answer()
    status(reply, 200)
    messages = reply.messages()
    need(messages and messages[-1].get("id") == id, f"the answer to {id!r} is {reply.body[:100]!r}")
    return reply


# -- listening address ----------------------------------------------------------------------------


@case("H05")
def _bound(ctx: Context) -> None:
    where = endpoint(ctx)
    try:
        address = ipaddress.ip_address(socket.gethostbyname(where.host))
    except (OSError, ValueError) as error:
        raise NotApplicable(f"{where.host} has no address: {error}") from error
    if not address.is_loopback:
        raise NotApplicable(f"{where.host} is not this machine")
    # Only a server that listens on all interfaces accepts connections on every 127/8 address.
    other = "127.0.0.2" if str(address) != "127.0.0.2" else "127.0.0.3"
    try:
        socket.create_connection((other, where.port), where.timeout).close()
    except OSError:
        return
    need(False, f"the server also answers at {other}, so it listens on all interfaces")


# -- heads ----------------------------------------------------------------------------------------


@case("H21")
def _repeated(ctx: Context) -> None:
    with _line(ctx) as line:
        line.send(_post(ctx, 1, "Mcp-Method: tools/list"))
        reply = line.answer()
        status(reply, 400)
        code(reply, -32020)


@case("F13")
def _too_large(ctx: Context) -> None:
    with _line(ctx) as line:
        line.socket.settimeout(ctx.timeout)
        line.send(_head(ctx, f"Content-Length: {10**12}") + b"{")
        status(line.answer(), 413)


# -- slow clients ---------------------------------------------------------------------------------


def _dribble(ctx: Context, name: str, start: bytes, rest: bytes) -> None:
    """Send the rest byte by byte; fail unless the server times the request out."""
    patience = ctx.settings.dribble_seconds
    until = time.monotonic() + patience
    with _line(ctx) as line:
        line.socket.sendall(start)
        sent = 0
        while time.monotonic() < until:
            need(sent < len(rest), "the request was sent completely before the timeout")
            ready, _, _ = select.select([line.socket], [], [], DRIBBLE)
            if ready:
                return  # status 408, or closed without a response
            try:
                line.socket.sendall(rest[sent : sent + 1])
            except OSError:
                return
            sent += 1
    need(False, f"after {patience:g} seconds the server was still waiting for {name}")


def _long_wait(ctx: Context, name: str, start: bytes, rest: bytes) -> Future[None]:
    future: Future[None] = Future()

    def watch() -> None:
        try:
            _dribble(ctx, name, start, rest)
            future.set_result(None)
        except (Failed, OSError) as error:  # the case that waits for this future raises it
            future.set_exception(error)

    Thread(target=watch, daemon=True).start()
    return future


@early("H35a", "H35b")
def _begin(ctx: Context) -> None:
    """Start both waits in the background; each may take half a minute."""
    if ctx.long_waits:
        return
    head = _head(ctx)[:-2]
    ctx.long_waits["head"] = _long_wait(ctx, "the rest of a head", head, b"X-Slow: " + b"x" * 2000)
    whole = _head(ctx, "Content-Length: 5000") + b"{"
    ctx.long_waits["body"] = _long_wait(ctx, "the rest of a body", whole, b" " * 4000)


def _slow(ctx: Context, name: str) -> None:
    _begin(ctx)
    began = time.monotonic()
    for _ in range(5):  # other clients are served meanwhile
        status(post(ctx, basic(ctx)), 200)
    spent = time.monotonic() - began
    need(spent < ctx.timeout, f"meanwhile five requests of another client took {spent:.1f} s")
    ctx.long_waits[name].result(timeout=ctx.settings.dribble_seconds + ctx.timeout)


@case("H35a")
def _slow_head(ctx: Context) -> None:
    _slow(ctx, "head")


@case("H35b")
def _slow_body(ctx: Context) -> None:
    _slow(ctx, "body")


# -- features of HTTP/1.1 -------------------------------------------------------------------------


@case("H36a")
def _keep_alive(ctx: Context) -> None:
    with _line(ctx) as line:
        for id in ("one", "two"):
            line.send(_post(ctx, id))
            _served(line, id)


@case("H36b")
def _pipelined(ctx: Context) -> None:
    with _line(ctx) as line:
        line.send(_post(ctx, "one") + _post(ctx, "two") + _post(ctx, "three"))
        for id in ("one", "two", "three"):
            _served(line, id)


@case("H36c")
def _in_chunks(ctx: Context) -> None:
    with _line(ctx) as line:
        line.send(_head(ctx, "Transfer-Encoding: chunked") + _chunked(_body(ctx)))
        _served(line)


@case("H36d")
def _expected(ctx: Context) -> None:
    body = _body(ctx)
    with _line(ctx) as line:
        line.send(_head(ctx, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        select.select([line.socket], [], [], 1.0)  # a server may wait for the body first
        line.send(body)
        _served(line)


@case("H36e")
def _older(ctx: Context) -> None:
    body = _body(ctx)
    with _line(ctx) as line:
        line.send(_head(ctx, f"Content-Length: {len(body)}", version="HTTP/1.0") + body)
        coding = _served(line).headers.get("transfer-encoding")
        need(coding is None, f"an HTTP/1.0 client was answered with {coding}")


# -- end of a request -----------------------------------------------------------------------------


@case("H37a")
def _two_lengths(ctx: Context) -> None:
    body = _body(ctx)
    with _line(ctx) as line:
        lengths = (f"Content-Length: {len(body)}", f"Content-Length: {len(body) + 40}")
        line.send(_head(ctx, *lengths) + body)
        status(line.answer(), 400)
        # Check soon: later an idle timeout could close it.
        need(
            line.ended(min(2.0, ctx.timeout)),
            "the connection stays open after two different lengths",
        )


@case("H37b")
def _length_and_chunks(ctx: Context) -> None:
    chunks = _chunked(_body(ctx))
    both = (f"Content-Length: {len(chunks)}", "Transfer-Encoding: chunked")
    with _line(ctx) as line:
        line.send(_head(ctx, *both) + chunks)
        need(line.answer().status < 500, "the server failed with a 5xx status")
        try:
            line.send(_post(ctx, "second"))
            again = line.answer()
        except OSError:
            return  # closed, as required
        need(False, f"after a length and chunks, the next request was answered with {again.status}")
