"""The reference server's name and its way of saying no."""

from __future__ import annotations

from typing import Any

INFO = {"name": "conform-reference", "version": "1.0"}


class RpcError(Exception):
    """An error to answer with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def as_error(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.data is not None:
            error["data"] = self.data
        return error
