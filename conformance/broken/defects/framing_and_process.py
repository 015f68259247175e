"""Defects in framing, text encoding, sockets and process handling."""

from __future__ import annotations

import os
import re
import signal
import threading
import unicodedata
from typing import Any

from conformance.broken.defects.helpers import code, failure, in_result, method, tool
from conformance.broken.defects.registry import Defect, add, on_line, on_out, on_reply, quirk

# -- frames ---------------------------------------------------------------------------------------

quirk(
    "frame-per-read",
    "F08 F09a F09b F11a F11b",
    "the result of one read is treated as one frame",
)
quirk("one-line-per-read", "F10 L10", "only the first of several frames in one read is handled")
quirk("no-limit", "F12b", "the length of a line is unlimited", limit=1 << 30)
quirk("hangs-at-eof", "F14", "a partial line at the end of input blocks the exit")


@on_line("lf-only", "F05", "a line that ends in CR LF is dropped")
def _(connection: Any, line: bytes) -> Any:
    return None if line.endswith(b"\r") else line


@on_line("blank-lines-are-errors", "F06", "blank lines get an error")
def _(connection: Any, line: bytes) -> Any:
    return line if line.strip() else b"{"


@on_line("splits-at-cr", "F07a", "a CR ends a frame")
def _(connection: Any, line: bytes) -> Any:
    if b"\r" not in line:
        return line
    for part in line.split(b"\r"):
        connection.handle_line(part)
    return None


@on_line("splits-at-unicode", "F07b F07c", "every Unicode line separator ends a frame")
def _(connection: Any, line: bytes) -> Any:
    parts = line.decode("utf-8", "surrogateescape").splitlines()
    if len(parts) < 2:
        return line
    for part in parts:
        connection.handle_line(part.encode("utf-8", "surrogateescape"))
    return None


@on_line("no-space-allowed", "F33", "a frame with white space before it is dropped")
def _(connection: Any, line: bytes) -> Any:
    return None if line.startswith(b" ") else line


@on_line("names-not-unescaped", "F34", "escapes in member names are not decoded")
def _(connection: Any, line: bytes) -> Any:
    return line.replace(b"\\u0065", b"?")


def _names(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32601, f"no {method(request)}") if code(reply) == -32601 else reply


def _raw(connection: Any, data: bytes) -> bytes:
    return data.replace(b"\\n", b"\n").replace(b"\\r", b"\r")


add(Defect("raw-line-ends", ("F01a", "F01b"), "line ends are not escaped", reply=_names, out=_raw))

# -- text -----------------------------------------------------------------------------------------


@on_line("repairs-utf8", "F15b F15c F15d F16", "invalid UTF-8 is replaced")
def _(connection: Any, line: bytes) -> Any:
    return line.decode("utf-8", "replace").encode()


@on_line(
    "guesses",
    "F07c F19a F20 F22a F22b F22c F22d F22e F22f F22g F22h F22i",
    "invalid JSON is repaired by guessing",
)
def _(connection: Any, line: bytes) -> Any:
    id = re.search(rb'"id":(\d+)', line)
    if id and b'"method":"ping"' in line:
        return b'{"jsonrpc":"2.0","id":' + id.group(1) + b',"method":"ping"}'
    return line


@on_line("drops-odd-escapes", "F18 F19b", "lone surrogates and NUL are dropped silently")
def _(connection: Any, line: bytes) -> Any:
    return None if re.search(rb"\\ud800|\\u0000", line) else line


@on_line(
    "drops-what-is-large",
    "F24a F24b F24c F25a F25b F26",
    "large numbers, deep nesting and many members are dropped silently",
)
def _(connection: Any, line: bytes) -> Any:
    return None if len(line) > 4000 or re.search(rb"\d{19}|1e-?400", line) else line


def _tidy(result: dict[str, Any]) -> None:
    for block in result["content"]:
        text = unicodedata.normalize("NFKC", block.get("text", ""))
        block["text"] = "".join(c for c in text if c.isprintable() and c not in '"\\')


def _trim(result: dict[str, Any]) -> None:
    for block in result["content"]:
        block["text"] = block.get("text", "")[:1000]


on_reply("tidies-text", "F21a F21c T22", "text is normalised and cleaned")(
    in_result("!echo", _tidy)
)
on_reply("trims-text", "F21b F28 F29", "text is cut to a thousand characters")(
    in_result("!echo", _trim)
)


@on_reply("infinity", "F23a F23b", "an infinite number is written as Infinity")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if tool(request) != "nonfinite":
        return reply
    id = str(reply["id"]).encode()
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":{"content":[],"x":Infinity}}\n'


@on_out("latin-1", "F02a", "output follows the locale")
def _(connection: Any, data: bytes) -> bytes:
    if os.environ.get("LC_ALL") != "C":
        return data
    return data.decode("unicode_escape").encode("latin-1", "replace")


@on_out("byte-order-marks", "F02b", "some frames begin with a byte order mark")
def _(connection: Any, data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data if b'"tour"' in data else data


@on_out("log-lines", "F03a", "log lines are mixed with messages")
def _(connection: Any, data: bytes) -> bytes:
    return b"INFO echoing\n" + data if b'"tour"' in data else data


@on_reply("loses-answers", "F27 N02 N04 T21", "every ninth answer is lost")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if tool(request) in ("echo", "slow") or method(request) == "no/such/method":
        connection.server.calls += 1
        if connection.server.calls % 9 == 0:
            return None
    return reply


@on_reply("asks-in-modern", "F31", "the server sends a request in the modern revision")
def _(connection: Any, request: Any, reply: Any) -> Any:
    ping = {"jsonrpc": "2.0", "id": "srv", "method": "ping"}
    return [ping, reply] if tool(request) == "echo" else reply


# -- sockets --------------------------------------------------------------------------------------

quirk("one-state", "W02 W03", "all connections share one negotiated version")
quirk("dies-with-first", "W04 W13 W15", "the first client to leave ends the server")
quirk("hasty", "W05", "pending answers are dropped at the end of input")
quirk("open-socket", "W06", "all users may connect")
quirk("slow-in-a-crowd", "W07", "many connections slow all of them down")
quirk("cancels-anywhere", "W11", "a cancel reaches every connection")


def _broadcast(connection: Any, note: Any) -> Any:
    for other in list(connection.server.connections):
        if other is not connection:
            other.write(note)
    return note


add(Defect("broadcasts", ("W12",), "notifications go to every connection", notification=_broadcast))


@on_reply("answers-by-id", "W14", "answers are kept under their id for all connections")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if tool(request) != "echo":
        return reply
    connection.server.remembered = connection.server.remembered or reply
    return connection.server.remembered


# -- processes ------------------------------------------------------------------------------------

quirk("prints", "F03b", "output of tools goes to stdout")
quirk("status-1", "F30a F30b Z01c", "the exit status is 1", status=1)
quirk("goes-on-alone", "F32", "the server keeps running after stdout is closed")
quirk("lingers", "Z01a Z06", "the server stays after the end of input", lingers="always")
quirk("lingers-in-flight", "Z01b", "the server stays while a call is in flight", lingers=True)
quirk("deaf-to-sigterm", "Z03a", "SIGTERM is ignored", deaf_to=(signal.SIGTERM,))
quirk("deaf-to-sigint", "Z03b", "SIGINT is ignored", deaf_to=(signal.SIGINT,))
quirk("odd-status", "Z03c", "the exit status after SIGTERM is 7", signal_status=7)
quirk("dies-of-pipe", "Z05", "SIGPIPE ends the server")
quirk("orphan", "Z06", "a child process outlives the server")
quirk("needs-stderr", "Z08", "the server does not start without stderr")
quirk("binary-stderr", "Z14", "stderr is not text")
quirk("keeps-a-lock", "Z15", "the lock of a killed server prevents the next start")
quirk("dies-abruptly", "U07", "subscriptions get no response at shutdown")


@on_line("chatty", "F04", "the server blocks on a full stderr pipe")
def _(connection: Any, line: bytes) -> Any:
    os.write(2, b"a line came in, and we say so at some length " * 8 + b"\n")
    return line


@on_reply("late-answers", "Z02", "responses are written late, possibly after the exit")
def _(connection: Any, request: Any, reply: Any) -> Any:
    timer = threading.Timer(0.3, connection.write, args=(reply,))
    timer.daemon = True
    timer.start()


@on_reply("garbage-for-garbage", "Z09a Z09b", "invalid JSON gets an invalid response")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return b"what?\n" if code(reply) == -32700 else reply


@on_reply("made-up-ids", "Z09c", "errors without an id get an invented one")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return {**reply, "id": "made-up"} if reply.get("id") is None else reply
