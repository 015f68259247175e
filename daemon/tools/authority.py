"""Authorisation of tool calls, shared by all transports.

A caller on stdio or the unix socket is the owner, because the kernel vouches for its user id. A
caller over HTTP has the rights of its token; if no token file is set, only this machine can connect
and every caller is the owner. A bank named in an argument selects among the banks granted to the
caller; it never grants one. A bank that the caller may not see is refused in the same words whether
it exists or not.
"""

from typing import Final

from msgspec import Struct


class Principal(Struct, frozen=True, kw_only=True):
    """An authenticated caller. `banks` is None if it may use every bank."""

    name: str
    banks: frozenset[str] | None = None
    can_write: bool = True

    @property
    def is_owner(self) -> bool:
        return self.banks is None and self.can_write

    def bank(self, default: str) -> str:
        """The bank for tools that name none: the default, or the only bank granted."""
        if self.banks is None or default in self.banks or len(self.banks) != 1:
            return default
        return next(iter(self.banks))


OWNER: Final = Principal(name="owner")


class Forbidden(Exception):
    """The caller is authenticated but lacks the right to do this."""


def authorise(principal: Principal, bank: str, *, writes: bool) -> None:
    """Raise `Forbidden` unless the caller may read (or write) this bank."""
    if principal.banks is not None and bank not in principal.banks:
        raise Forbidden("this token opens no bank of that name")
    if writes and not principal.can_write:
        raise Forbidden("this token may read, not write")
