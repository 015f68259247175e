"""Tokens that undo bulk changes. The token of a move names the bank that the items went to."""

import secrets

_BANK_ID_LENGTH = 32


def new_token(target: str = "") -> str:
    """A token that cannot be guessed; `target` is the id of the bank of a move."""
    return f"undo_{secrets.token_hex(16)}" + (f"_{target}" if target else "")


def moved_to(token: str) -> str | None:
    """The id of the bank to which the items of this token were moved; None for other tokens."""
    parts = token.split("_")
    is_move = len(parts) == 3 and parts[0] == "undo" and len(parts[2]) == _BANK_ID_LENGTH
    return parts[2] if is_move else None
