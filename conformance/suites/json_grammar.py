"""F22 to F26: edge cases of the JSON grammar: numbers, nesting, large objects."""

from __future__ import annotations

import time

from conformance.check import case, cases_of, need
from conformance.client.frames import show
from conformance.context import Context
from conformance.suites.framing import basic

PAD = '"PAD"'


def with_value(ctx: Context, value: bytes, id: int) -> bytes:
    """The basic request with raw bytes as a value under `_meta`."""
    return basic(ctx.peer, id, _meta={"conform/pad": "PAD"}).replace(PAD.encode(), value)


def not_json(ctx: Context, values: tuple[bytes, ...]) -> None:
    for value in values:
        ctx.peer.expect_error(with_value(ctx, value, 5201), (-32700,), may_echo=5201)


cases_of(
    (
        ("F22a", (b"NaN",)),
        ("F22b", (b"Infinity", b"-Infinity")),
        ("F22c", (b"01", b"-01")),
        ("F22d", (b"+1", b".5", b"1.", b"0x1")),
        ("F22e", (b"[1,]", b'{"a":1,}')),
        ("F22f", (b"/* no */ 1", b"1 // no")),
        ("F22g", (b"'single'",)),
        ("F22h", (b'"bad \\x escape"', b'"\\u12"')),
        ("F22i", (b"True", b"nul", b"undefined")),
    ),
    not_json,
)


@case("F22z")
def _not_ignored(ctx: Context) -> None:
    for value in (b"NaN", b"[1,]", b"01"):
        frames = ctx.peer.probe(with_value(ctx, value, 5202))
        answers = [f for f in frames if f.kind in ("result", "error")]
        need(len(answers) == 1, f"{value.decode()} in a request got {len(answers)} answers")


@case("F23b")
def _no_infinity_out(ctx: Context) -> None:
    role = ctx.role("nonfinite")
    id = ctx.peer.request("tools/call", {"name": role.tool, "arguments": role.arguments()})
    frame = ctx.peer.wait(lambda f: f.kind in ("result", "error", "invalid"), ctx.timeout)
    need(frame is not None, f"no answer to call {id}")
    assert frame is not None
    need(frame.problem is None, f"an infinite number of a tool was sent: {show(frame.raw)}")


def survives(ctx: Context, values: tuple[bytes, ...]) -> None:
    """The server answers with a result or an error, and the connection stays usable."""
    for value in values:
        frames = ctx.peer.probe(with_value(ctx, value, 5203), quiet=5 * ctx.peer.quiet)
        answers = [f for f in frames if f.kind in ("result", "error")]
        need(answers, f"no answer to a request with {show(value, 40)} in it")


cases_of(
    (
        ("F24a", (b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616")),
        ("F24b", (b"1e400", b"-1e400", b"1e-400")),
        ("F24c", (b"9" * 5000,)),
    ),
    survives,
)


def too_deep(ctx: Context, pair: tuple[bytes, bytes]) -> None:
    """Nest 100,000 levels: rejected or served, and the connection stays usable."""
    opening, closing = pair
    value = opening * 100_000 + b"1" + closing * 100_000
    frames = ctx.peer.probe(with_value(ctx, value, 5204), quiet=5 * ctx.peer.quiet)
    answers = [f for f in frames if f.kind in ("result", "error")]
    need(answers, "no answer to a frame with 100,000 levels")
    if answers[0].kind == "error":
        need(
            answers[0].code in (-32700, -32600, -32602), f"it was rejected with {answers[0].code!r}"
        )


cases_of((("F25a", (b"[", b"]")), ("F25b", (b'{"a":', b"}"))), too_deep)


@case("F26")
def _many_members(ctx: Context) -> None:
    members = b",".join(b'"m%d":%d' % (number, number) for number in range(50_000))
    began = time.monotonic()
    survives(ctx, (b"{" + members + b"}",))
    seconds = time.monotonic() - began
    need(seconds < 8, f"an object with 50,000 members took {seconds:.1f} s")
