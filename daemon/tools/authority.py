"""Who may do what: one function under all transports.

A caller on stdio or the unix socket is the owner: the kernel says so. A caller over HTTP is what
its token says, or the owner where no token is set and only this machine can connect. A bank named
in an argument selects among the banks a caller was granted; it never grants one. What a caller may
not see is refused alike whether it exists or not.
"""

from typing import Final

from msgspec import Struct


class Principal(Struct, frozen=True, kw_only=True):
    """Somebody we know. `banks` None means all of them."""

    name: str
    banks: frozenset[str] | None = None
    can_write: bool = True

    @property
    def is_owner(self) -> bool:
        return self.banks is None and self.can_write

    def bank(self, default: str) -> str:
        """The bank for tools that name none: the default, or the only one there is."""
        if self.banks is None or default in self.banks or len(self.banks) != 1:
            return default
        return next(iter(self.banks))


OWNER: Final = Principal(name="owner")


class Forbidden(Exception):
    """The caller is known and may not do this."""


def authorise(principal: Principal, bank: str, *, writes: bool) -> None:
    """Raise `Forbidden` unless this caller may read (or write) this bank."""
    if principal.banks is not None and bank not in principal.banks:
        raise Forbidden("this token opens no bank of that name")
    if writes and not principal.can_write:
        raise Forbidden("this token may read, not write")
