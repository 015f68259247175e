"""A caller over HTTP without an MCP session: a principal and the name of its client.

Modern requests and REST calls come from visitors. A visitor has a window of the rate limiter, and a
stored session as the provenance of the memories it writes.
"""

from typing import Any

import anyio

from daemon.rpc.limiter import SlidingWindow
from daemon.rpc.sessions import SessionKeeper
from daemon.tools.authority import Principal


class Visitor:
    """`key` is its key in the rate limiter; `bank` is used by tools whose arguments name none."""

    def __init__(
        self,
        principal: Principal,
        client: str,
        *,
        key: str,
        window: SlidingWindow | None,
        bank: str,
        keeper: SessionKeeper,
    ) -> None:
        self.principal = principal
        self.client = client
        self.key = key
        self.window = window
        self.bank = bank
        self.log_level: str | None = None
        self.listens = 0
        self.session_id: str | None = None
        self._keeper = keeper
        self._opening = anyio.Lock()

    def describe(self) -> dict[str, Any]:
        """The client, for the list of connected clients."""
        return {
            "client": self.client or self.principal.name,
            "version": None,
            "bank": self.bank,
            "dialects": "",
            "transport": "http",
            "session": self.session_id,
        }

    async def session(self) -> str:
        """The id of the stored session, created and committed when first needed."""
        async with self._opening:
            if self.session_id is None:
                with anyio.CancelScope(shield=True):
                    await self._open()
        assert self.session_id is not None
        self._keeper.mark_seen(self.session_id)
        return self.session_id

    async def _open(self) -> None:
        self.session_id = await self._keeper.open(
            resume=None,
            transport="http",
            client_name=self.client or None,
            client_version=None,
            bank=self.bank,
        )
