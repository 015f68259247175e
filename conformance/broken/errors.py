"""Name of the reference server, and its JSON-RPC errors."""

from __future__ import annotations

from typing import Any

INFO = {"name": "conform-reference", "version": "1.0"}


class RpcError(Exception):
    """A JSON-RPC error response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def as_error(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.data is not None:
            error["data"] = self.data
        return error
