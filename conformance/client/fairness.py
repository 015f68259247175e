"""Judgements about traffic: honest requests, real answers, and refusals of a rate limiter.

A server is judged by its replies to valid requests. Replies to requests that are malformed on
purpose, lines of plain text and refusals of a rate limiter say nothing about other requirements.
"""

from __future__ import annotations

import re
from typing import Any

from conformance import revisions
from conformance.check import RateLimited
from conformance.client.frames import Frame, parse, show

RATE_LIMIT = re.compile(r"rate.?limit|too many requests|\b429\b", re.IGNORECASE)
HINTS = (
    ("retryAfter", 1.0),
    ("retry_after", 1.0),
    ("retryAfterSeconds", 1.0),
    ("retry_after_seconds", 1.0),
    ("retryAfterMs", 0.001),
    ("retry_after_ms", 0.001),
)
LONGEST_HINT = 60.0
CONCURRENCY = re.compile(r"in flight|concurren|at once|simultaneous", re.IGNORECASE)


def is_answer(frame: Frame) -> bool:
    """Whether a frame may be an answer: not a notification, a request or a line of plain text.

    Plain text (a banner) is the business of F03a.
    """
    if frame.kind in ("notification", "request"):
        return False
    return frame.problem is None or frame.raw.lstrip()[:1] in (b"{", b"[")


def is_honest(message: dict[str, Any], revision: str) -> bool:
    """Whether a request is valid in its revision, so that its reply must have its shape."""
    id, params = message.get("id"), message.get("params", {})
    if isinstance(id, bool) or not isinstance(id, str | int) or not isinstance(params, dict):
        return False
    if not isinstance(message.get("method"), str) or message.get("jsonrpc") != "2.0":
        return False
    if revision not in revisions.MODERN:
        return True
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get(revisions.PROTOCOL_VERSION) != revision:
        return False
    return isinstance(meta.get(revisions.CLIENT_CAPABILITIES), dict)


def is_malformed(data: bytes) -> bool:
    for line in data.split(b"\n"):
        if line.strip():
            value = parse(line.strip()).value
            if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
                return True
            id = value.get("id", 0)
            if isinstance(id, bool) or not isinstance(id, str | int):
                return True
    return False


def raise_rate_limit(frame: Frame) -> None:
    """Raise if an error is the refusal of a rate limiter."""
    message, data = frame.error.get("message"), frame.error.get("data")
    if not (isinstance(message, str) and RATE_LIMIT.search(message)):
        return
    if CONCURRENCY.search(message):
        return  # a limit of calls in flight is no matter of time
    seconds = 1.0
    for name, factor in HINTS:
        hint = data.get(name) if isinstance(data, dict) else None
        if isinstance(hint, int | float) and not isinstance(hint, bool):
            seconds = hint * factor
    if found := re.search(r"(\d+(?:\.\d+)?) ?(ms|s)", message):
        seconds = max(seconds, float(found[1]) * (0.001 if found[2] == "ms" else 1.0))
    raise RateLimited(
        f"refused by a rate limit: {show(frame.raw, 160)}", min(max(seconds, 0.1), LONGEST_HINT)
    )
