"""F: newline framing: line ends, split writes, size limits, and bytes outside frames."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from typing import Any

from conformance.check import NotApplicable, case, cases_of, fail, need
from conformance.client.frames import Frame, dump, key, show
from conformance.client.peer import Peer
from conformance.client.results import result_of, text_of
from conformance.client.stdio import resident_bytes
from conformance.client.wire import Closed, WireError
from conformance.context import Context


def accepted(ctx: Context, raw: bytes, id: Any, *, peer: Peer | None = None) -> Frame:
    """Send a line that the server must answer with a result."""
    peer = peer or ctx.peer
    peer.send_raw(raw)
    frame = peer.reply(id)
    need(frame.kind == "result", f"{show(raw, 120)} was refused: {show(frame.raw)}")
    return frame


def basic(peer: Peer, id: Any, **params: Any) -> bytes:
    message = peer.build(peer.basic, params or None, id=id)
    raw = dump(message)
    peer.expect(message, raw)
    return raw


# -- frame boundaries -----------------------------------------------------------------------------


@case("F01a")
def _newline_in_a_name(ctx: Context) -> None:
    for method in ("no\nsuch\nmethod", "no\r\nsuch"):
        frame = ctx.peer.call(method)
        need(frame.kind == "error", f"{method!r} was answered with {show(frame.raw)}")
        need(b"\r" not in frame.raw, "a raw CR inside a frame")


def came_back(ctx: Context, text: str, peer: Peer | None = None) -> None:
    peer = peer or ctx.peer
    params = ctx.echo(text)
    result = result_of(peer.call("tools/call", params), "tools/call")
    told = text_of(result)
    need(text in told, f"{show(text.encode(), 60)} came back as {show(told.encode(), 100)}")


@case("F01b")
def _newline_in_a_text(ctx: Context) -> None:
    came_back(ctx, "one\ntwo\r\nthree\rfour\u2028five\u0085six")


@case("F05")
def _crlf(ctx: Context) -> None:
    accepted(ctx, basic(ctx.peer, 5001) + b"\r\n", 5001)


@case("F06")
def _blank_lines(ctx: Context) -> None:
    for blank in (b"", b"   \t ", b"\r"):
        ctx.peer.expect_silence(blank)


@case("F07a")
def _lone_cr(ctx: Context) -> None:
    raw = basic(ctx.peer, 5002).replace(b'"jsonrpc"', b'\r"jsonrpc"', 1)
    accepted(ctx, raw + b"\n", 5002)


@case("F07b")
def _unicode_line_ends(ctx: Context) -> None:
    id = "a\u2028b\u0085c\u2029d"
    frame = accepted(ctx, basic(ctx.peer, id) + b"\n", id)
    need(frame.id == id, f"the id came back as {frame.id!r}")


@case("F07c")
def _form_feed(ctx: Context) -> None:
    raw = basic(ctx.peer, 5003).replace(b'"jsonrpc"', b'\x0b\x0c"jsonrpc"', 1)
    ctx.peer.expect_error(raw, (-32700,), may_echo=5003)


@case("F08")
def _byte_by_byte(ctx: Context) -> None:
    peer = ctx.peer
    raw = basic(peer, 5004) + b"\n"
    for position in range(len(raw)):
        peer.wire.send(raw[position : position + 1], timeout=ctx.timeout)
        time.sleep(0.0002)
    need(peer.reply(5004).kind == "result", "a frame sent byte by byte was refused")


def split(ctx: Context, row: tuple[str, bytes, int]) -> None:
    """Send a frame in two writes, cut inside the given bytes."""
    id, inside, offset = row
    peer = ctx.peer
    message = peer.build(peer.basic, id=id)
    raw = dump(message).replace(rb"\\u00e9", rb"\u00e9")
    peer.expect({**message, "id": "ab\u00e9" if b"u00e9" in inside else id}, raw)
    cut = raw.index(inside) + offset
    peer.send_raw(raw[:cut])
    time.sleep(0.03)
    peer.send_raw(raw[cut:] + b"\n")
    wanted = "ab\u00e9" if b"u00e9" in inside else id
    need(peer.reply(wanted).kind == "result", "a frame sent in two pieces was refused")


cases_of(
    (
        ("F09a", ("x\U0001f600y", "\U0001f600".encode(), 2)),
        ("F09b", ("ab\\u00e9", rb"\u00e9", 3)),
    ),
    split,
)


@case("F10")
def _many_in_one_write(ctx: Context) -> None:
    peer = ctx.peer
    ids = [f"many-{number}" for number in range(500)]
    peer.send_raw(b"".join(basic(peer, id) + b"\n" for id in ids))
    seen: list[Any] = []
    while len(seen) < len(ids):
        frame = peer.wait(lambda f: f.kind in ("result", "error"), ctx.timeout)
        if frame is None:
            fail(f"{len(seen)} of {len(ids)} frames in one write were answered")
        seen.append(frame.id)
    need(
        sorted(map(str, seen)) == sorted(ids), "one frame was answered twice and another not at all"
    )


@case("F33")
def _white_space_around(ctx: Context) -> None:
    accepted(ctx, b" \t " + basic(ctx.peer, 5005) + b"  \t\n", 5005)


@case("F34")
def _escaped_names(ctx: Context) -> None:
    raw = basic(ctx.peer, 5006).replace(b'"method"', b'"m\\u0065thod"', 1)
    accepted(ctx, raw + b"\n", 5006)


# -- size limits ----------------------------------------------------------------------------------


def large(ctx: Context, size: int) -> None:
    peer = ctx.peer
    id = f"large-{size}"
    accepted(ctx, basic(peer, id, _meta={"conform/pad": "p" * size}) + b"\n", id)


cases_of((("F11a", 100 * 1024), ("F11b", 1024 * 1024)), large)


def _endless(ctx: Context, megabytes: int) -> tuple[Peer, int | None, int | None]:
    """Send a line of this size; return the peer and the server's memory before and at the peak."""
    peer = ctx.fresh()
    peer.marker()
    pid = peer.wire.pid
    before = worst = resident_bytes(pid)
    head = dump(peer.build(peer.basic, id="endless"))[:-1] + b',"x":"'
    peer.send_raw(head)
    block = b"e" * (1024 * 1024)
    for _ in range(megabytes):
        try:
            peer.wire.send(block, timeout=ctx.timeout)
        except Closed as error:
            fail(f"{error} in the middle of a line of {megabytes} MiB")
        now = resident_bytes(pid)
        worst = max(worst, now) if worst is not None and now is not None else worst
    return peer, before, worst


@case("F12a")
def _over_limit(ctx: Context) -> None:
    peer, _, _ = _endless(ctx, 40)
    peer.send_raw(b'"}\n')
    frame = peer.wait(lambda f: f.kind in ("result", "error"), 2 * ctx.timeout)
    if frame is None:
        fail("no answer to a line of 40 MiB")
    if frame.kind == "error":
        need(frame.code in (-32600, -32700), f"a line of 40 MiB gave {frame.code!r}")
    need(not [f for f in peer.marker() if f.kind == "error"], "several errors for one long line")


@case("F12b")
def _over_limit_memory(ctx: Context) -> None:
    peer, before, worst = _endless(ctx, 64)
    if before is None or worst is None:
        raise NotApplicable("the memory of the server process is unknown on this system")
    grown = (worst - before) / 2**20
    need(grown < 40, f"a line of 64 MiB without LF made the server grow by {grown:.0f} MiB")
    peer.send_raw(b'"}\n')
    peer.marker(max(ctx.timeout, 10))


@case("F14")
def _unterminated_last_line(ctx: Context) -> None:
    peer = ctx.fresh()
    peer.marker()
    peer.send_raw(basic(peer, 5007))
    peer.wire.half_close()
    need(peer.wire.wait_for_end(ctx.timeout), "the server hangs on a last line without LF")
    with contextlib.suppress(Closed):
        while (frame := peer.next(0.5)) is not None:
            known = frame.kind in ("notification", "error") or key(frame.id) == key(5007)
            need(known, f"an unexpected response to a last line without LF: {show(frame.raw)}")


# -- output of the server -------------------------------------------------------------------------


@case("F02a")
def _locale(ctx: Context) -> None:
    env = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    peer = ctx.open(ctx.adopt(ctx.stdio().start(env=env)))
    id = "né-\u4e16\U0001f600"
    frame = accepted(ctx, basic(peer, id) + b"\n", id, peer=peer)
    need(frame.problem is None, f"in the C locale the server's output {frame.problem}")
    if ctx.has_role("echo"):
        came_back(ctx, "ünï \u4e16\u754c \U0001f600", peer)


@case("F03b")
def _printing_tool(ctx: Context) -> None:
    role = ctx.role("print")
    peer = ctx.fresh()
    noise = "conform noise on stdout"
    peer.tool(role.tool, role.arguments(text=noise))
    for frame in peer.marker() + peer.inbox:
        need(frame.problem is None, f"a tool's print reached the wire: {show(frame.raw)}")
    peer.marker()


@case("F04")
def _unread_stderr(ctx: Context) -> None:
    peer = ctx.open(ctx.adopt(ctx.stdio().start(drain_stderr=False)))
    for _ in range(40):
        peer.send_raw(b'{"jsonrpc":"2.0","method":7}\n' * 50)
        peer.marker()


@case("F28")
def _no_interleaving(ctx: Context) -> None:
    text = "interleave" * 10_000
    peer = ctx.peer
    ids = [peer.request("tools/call", ctx.echo(f"{number}-{text}")) for number in range(30)]
    for number, id in enumerate(ids):
        result = result_of(peer.reply(id), "tools/call")
        need(f"{number}-{text}" in text_of(result), f"answer {number} is damaged")


@case("F29")
def _slow_drip(ctx: Context) -> None:
    peer = ctx.peer
    text = "drip" * 100_000
    id = peer.request("tools/call", ctx.echo(text))
    time.sleep(0.3)
    need(text in text_of(result_of(peer.reply(id), "tools/call")), "a long answer is damaged")


@case("F27")
def _slow_reader(ctx: Context) -> None:
    peer = ctx.fresh()
    peer.marker()
    before = resident_bytes(peer.wire.pid)
    text = "q" * 20_000
    ids = [f"flood-{number}" for number in range(150)]
    sent = 0
    backlog = b""
    for id in ids:
        message = peer.build("tools/call", ctx.echo(text), id=id)
        raw = dump(message) + b"\n"
        peer.expect(message, raw)
        taken = peer.wire.send(raw, timeout=0.2, reading=False)
        sent += 1
        if taken < len(raw):
            backlog = raw[taken:]
            break
    time.sleep(0.1)
    worst = resident_bytes(peer.wire.pid)
    if before is not None and worst is not None:
        grown = (worst - before) / 2**20
        need(grown < 64, f"a client that does not read made the server grow by {grown:.0f} MiB")
    if backlog:
        peer.send_raw(backlog)
    for id in ids[:sent]:
        peer.reply(id)


# -- stdin and stdout -----------------------------------------------------------------------------


def _from_file(ctx: Context, content: bytes) -> tuple[Peer, int | None]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        wire = ctx.stdio().start(stdin=file.fileno())
    peer = ctx.adopt(wire)
    wire.half_close()
    return peer, wire.wait_exit(max(ctx.timeout, 3 * ctx.facts.startup_seconds + 2))


@case("F30a")
def _regular_file(ctx: Context) -> None:
    scratch = Peer(ctx.peer.wire, ctx.revision, ctx)
    opening = (
        b""
        if ctx.modern
        else dump(
            scratch.build(
                "initialize",
                {
                    "protocolVersion": ctx.revision,
                    "capabilities": {},
                    "clientInfo": {"name": "c", "version": "1"},
                },
                id="open",
            )
        )
        + b"\n"
    )
    peer, status = _from_file(ctx, opening + basic(scratch, "file") + b"\n")
    need(status == 0, f"with a file for stdin the server exits with {status!r}")
    seen = []
    with contextlib.suppress(WireError):
        while (frame := peer.next(0.5)) is not None:
            seen.append(frame.id)
    need("file" in seen, "a request in a file was not answered")


@case("F30b")
def _null_device(ctx: Context) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        wire = ctx.stdio().start(stdin=null)
    finally:
        os.close(null)
    ctx.adopt(wire)
    wire.half_close()
    status = wire.wait_exit(max(ctx.timeout, 3 * ctx.facts.startup_seconds + 2))
    need(status == 0, f"with the null device for stdin the server exits with {status!r}")


@case("F32")
def _broken_pipe(ctx: Context) -> None:
    wire = ctx.stdio().start()
    peer = ctx.open(ctx.adopt(wire))
    peer.marker()
    wire.close_output()
    raw = basic(peer, 5008) + b"\n"
    with contextlib.suppress(WireError):
        for _ in range(20):
            wire.send(raw, timeout=0.2, reading=False)
    wire.half_close()
    status = wire.wait_exit(ctx.timeout)
    need(status is not None, "the server keeps running after stdout was closed")
    need(wire.stderr_bytes < 256 * 1024, f"{wire.stderr_bytes} bytes on stderr")
