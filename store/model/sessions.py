"""Sessions of clients, and handles that lead back to them."""

from msgspec import Struct


class Session(Struct, frozen=True, kw_only=True):
    """The session of one client. Times are unix milliseconds, UTC."""

    id: str
    created_at: int
    seen_at: int
    transport: str
    ended_at: int | None = None
    client_name: str | None = None
    client_version: str | None = None
    bank: str | None = None
    source: str | None = None
    agent_role: str | None = None
    calls: int = 0


class Handle(Struct, frozen=True, kw_only=True):
    """The session of a handle, and the state agreed on with its client."""

    session: str
    state: str
