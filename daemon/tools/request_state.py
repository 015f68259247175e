"""Signed request state (`requestState`) that a client carries between the rounds of a call.

A modern tool that asks the client something keeps no state between rounds: its state travels inside
the answer. It is signed with a key of this process, for one purpose and a limited time, so that a
client can neither alter it nor use it elsewhere.
"""

import base64
import hmac
import secrets
from hashlib import blake2b
from typing import Any, Final

import msgspec

from protocol.errors import Fault, ProtocolError

LIFETIME_SECONDS: Final = 600.0
_TAG_BYTES: Final = 24


class Seal:
    """Signs and verifies states; one per process."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def close(self, purpose: str, payload: Any, now: float) -> str:
        body = msgspec.json.encode([purpose, now + LIFETIME_SECONDS, payload])
        return base64.urlsafe_b64encode(self._tag(body) + body).decode()

    def open(self, purpose: str, state: str, now: float) -> Any:
        """The payload signed for this purpose; raises `ProtocolError` for any other state."""
        try:
            sealed = base64.b64decode(state.encode(), altchars=b"-_", validate=True)
        except ValueError:
            raise _refused() from None
        tag, body = sealed[:_TAG_BYTES], sealed[_TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(body)):
            raise _refused()
        sealed_for, until, payload = msgspec.json.decode(body, type=tuple[str, float, Any])
        if sealed_for != purpose or now > until:
            raise _refused()
        return payload

    def _tag(self, body: bytes) -> bytes:
        return blake2b(body, key=self._key, digest_size=_TAG_BYTES).digest()


def _refused() -> ProtocolError:
    return ProtocolError(Fault.INVALID_PARAMS, "requestState: not one that we gave out, or expired")
