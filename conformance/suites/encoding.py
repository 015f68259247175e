"""F15 to F21: text encoding: UTF-8 edge cases and strings that must round-trip unchanged."""

from __future__ import annotations

from conformance.check import case, cases_of, need
from conformance.client.frames import show
from conformance.context import Context
from conformance.suites.framing import basic, came_back

BAD = "INSERT"


def spoiled(ctx: Context, insert: bytes, id: int) -> bytes:
    """The basic request with these bytes inside a string that servers may ignore."""
    raw = basic(ctx.peer, id, _meta={"conform/pad": BAD})
    return raw.replace(BAD.encode(), insert)


def not_text(ctx: Context, inserts: tuple[bytes, ...]) -> None:
    for insert in inserts:
        ctx.peer.expect_error(spoiled(ctx, insert, 5101), (-32700,), may_echo=5101)


cases_of(
    (
        ("F15b", (b"\xff", b"\x80", b"a\xe9b")),
        ("F15c", (b"\xc0\xaf", b"\xe0\x80\xaf")),
        ("F15d", (b"\xe2\x82", b"\xf0\x9f\x98")),
        ("F16", (b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80")),
        ("F19a", (b"a\x00b",)),
        ("F20", (b"a\tb", b"a\x01b", b"a\x1fb")),
    ),
    not_text,
)


@case("F15a")
def _invalid_byte_is_not_ignored(ctx: Context) -> None:
    frames = ctx.peer.probe(spoiled(ctx, b"\xff\xfe", 5102))
    answers = [f for f in frames if f.kind in ("result", "error")]
    need(answers, "a frame that is not UTF-8 was dropped silently")
    need(len(answers) == 1, f"a frame that is not UTF-8 was answered {len(answers)} times")


@case("F17")
def _byte_order_mark(ctx: Context) -> None:
    raw = b"\xef\xbb\xbf" + basic(ctx.peer, 5103)
    answers = [f for f in ctx.peer.probe(raw) if f.kind in ("result", "error")]
    need(answers, "a frame with a byte order mark was dropped silently")
    if answers[0].kind == "error":
        need(answers[0].code == -32700, f"it was rejected with {answers[0].code!r}")


def escaped(ctx: Context, inserts: tuple[bytes, ...]) -> None:
    """A legal escape that some servers cannot store: any answer passes if it is valid JSON."""
    for insert in inserts:
        raw = spoiled(ctx, insert, 5104)
        answers = [f for f in ctx.peer.probe(raw) if f.kind in ("result", "error", "invalid")]
        need(answers, f"{show(insert)} in a string was dropped silently")
        need(answers[0].problem is None, f"the answer {answers[0].problem}: {show(answers[0].raw)}")


cases_of(
    (
        ("F18", (rb"\ud800", rb"\udc00\ud800")),
        ("F19b", (rb"a\u0000b",)),
    ),
    escaped,
)


def unchanged(ctx: Context, text: str) -> None:
    came_back(ctx, text)


cases_of(
    (
        (
            "F21a",
            "e\u0301 \u00e9 \u0639\u0631\u0628\u064a \u202etfel \U0001f469\u200d\U0001f467 \ufb01",
        ),
        ("F21b", "\U0001f600" * 100_000),
        ("F21c", 'quote " backslash \\ slash / \b\f\t'),
        ("T22", "bell \u0007 escape \u001b[31m null-ish \u0001 delete \u007f"),
    ),
    unchanged,
)
