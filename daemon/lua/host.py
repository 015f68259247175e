"""The functions that a script calls in the daemon: search, get, sources, files and HTTP.

`search`, `get` and `sources` are the tools of the Context Harness dialect, called as the script's
caller would call them: the arguments are checked and the caller's rights apply. Files are limited
to the folder of the script, HTTP to the hosts that the settings allow.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio.to_thread
import msgspec
from msgspec import UNSET, Raw

from daemon.lua.sandbox.messages import MOST_BYTES, Ask, Reply
from daemon.lua.script import Script
from daemon.tools.authority import Forbidden
from daemon.tools.bound_tool import BoundTool
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from protocol.mcp import CallToolResult
from store.errors import InvalidInput, NotFound, StoreError

MOST_FILES: Final = 10_000

Tools = Mapping[str, BoundTool]
#: Calls the tool of this name (search, get or sources); raises `HostRefused`.
Memory = Callable[[str, dict[str, Any]], Awaitable[Any]]


class HostRefused(Exception):
    """A host call is refused; the script sees the message."""


async def no_memory(_name: str, _arguments: dict[str, Any]) -> Any:
    """The memory of a script that is only described."""
    raise HostRefused("there is no memory here")


def memory_of(tools: Tools, context: Context) -> Memory:
    """The memory of a caller: the built-in tools, called with the caller's rights."""

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        tool = tools[name]
        try:
            answer = tool.call(Raw(msgspec.json.encode(arguments)), context)
            if isinstance(answer, Awaitable):
                answer = await answer
        except NotFound as error:
            raise HostRefused(f"document not found: {error.id}") from None
        except InvalidInput as error:
            raise HostRefused(f"{tool.argument_name(error.field)}: {error.rule}") from None
        except (ArgumentsRefused, ToolFailure, Forbidden, StoreError) as error:
            raise HostRefused(str(error)) from None
        if not isinstance(answer, CallToolResult) or answer.structured_content is UNSET:
            raise HostRefused("the tool gave no result")
        return msgspec.json.decode(answer.structured_content)

    return call


class ScriptHost:
    """The host of one run."""

    def __init__(self, script: Script, memory: Memory) -> None:
        self._script = script
        self._memory = memory

    async def __call__(self, ask: Ask) -> Reply:
        work = _FUNCTIONS.get(ask.name)
        if work is None:
            return Reply(error=f"{ask.name}: there is no such function")
        try:
            return Reply(value=await work(self, *ask.arguments))
        except HostRefused as refused:
            return Reply(error=f"{_shown(ask.name)}: {refused}")
        except TypeError:
            return Reply(error=f"{_shown(ask.name)}: wrong number of arguments")

    # --- memory --------------------------------------------------------------------------------

    async def search(self, query: Any, options: Any) -> Any:
        """`context.search(query, options)`, or `context.search(options)` with `query` in it."""
        given = dict(_table("query", query)) if isinstance(query, dict) else {"query": query}
        given |= _table("options", options)
        filters = _table(
            "filters", given.pop("filters", None)
        )  # the form of agents in the original
        if "source" in filters:
            given.setdefault("source", filters["source"])
        found = await self._memory("search", given)
        return found["results"]

    async def get(self, id: Any) -> Any:
        return await self._memory("get", {"id": id})

    async def sources(self) -> Any:
        return (await self._memory("sources", {}))["sources"]

    # --- files ---------------------------------------------------------------------------------

    async def fs_read(self, path: Any) -> Any:
        return await anyio.to_thread.run_sync(_read_inside, self._script.path.parent, path)

    async def fs_list(self, path: Any) -> Any:
        return await anyio.to_thread.run_sync(_list_inside, self._script.path.parent, path)

    # --- HTTP ----------------------------------------------------------------------------------

    async def http(self, method: Any, url: Any, body: Any, options: Any) -> Any:
        from daemon.lua.web_request import RequestRefused, WebRequest, perform  # most use no HTTP

        given = _table("options", options)
        request = WebRequest(
            method=str(method),
            url=str(url),
            body=_body(body),
            headers=_texts("headers", given.get("headers")),
            parameters=_texts("params", given.get("params")),
            seconds=min(float(given.get("timeout") or 30.0), self._script.seconds),
            is_json=isinstance(body, (dict, list)),
        )
        try:
            return await perform(request, self._script.hosts)
        except RequestRefused as refused:
            raise HostRefused(str(refused)) from None


_FUNCTIONS: Final[dict[str, Callable[..., Awaitable[Any]]]] = {
    "search": ScriptHost.search,
    "get": ScriptHost.get,
    "sources": ScriptHost.sources,
    "fs_read": ScriptHost.fs_read,
    "fs_list": ScriptHost.fs_list,
    "http": ScriptHost.http,
}


def _shown(name: str) -> str:
    """The name of a host function as the script writes it."""
    return name.replace("fs_", "fs.") if name != "http" else "http"


def _table(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise HostRefused(f"{name}: must be a table")
    return cast("dict[str, Any]", value)


def _texts(name: str, value: Any) -> dict[str, str]:
    return {str(key): str(entry) for key, entry in _table(name, value).items()}


def _body(body: Any) -> bytes:
    match body:
        case None:
            return b""
        case bytes():
            return body
        case str():
            return body.encode()
        case _:
            return msgspec.json.encode(body)


def _resolve(folder: Path, path: Any) -> Path:
    """The path of a file below the folder, after all links are followed."""
    if not isinstance(path, str) or "\0" in path:
        raise HostRefused("path: must be text")
    try:
        root = folder.resolve(strict=True)
        found = (root / path).resolve(strict=True)
    except (OSError, RuntimeError):
        raise HostRefused(f"{path}: no such file") from None
    if found != root and root not in found.parents:
        raise HostRefused(f"{path}: is outside the script's folder")
    return found


def _read_inside(folder: Path, path: Any) -> bytes:
    found = _resolve(folder, path)
    try:
        # The last component may have been replaced by a link since it was resolved.
        descriptor = os.open(found, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise HostRefused(f"{path}: is not a file")
            data = file.read(MOST_BYTES // 4 + 1)
    except OSError as error:
        raise HostRefused(f"{path}: {error.strerror}") from None
    if len(data) > MOST_BYTES // 4:
        raise HostRefused(f"{path}: is larger than {MOST_BYTES // 4} bytes")
    return data


def _list_inside(folder: Path, path: Any) -> list[dict[str, Any]]:
    found = _resolve(folder, path)
    entries: list[dict[str, Any]] = []
    try:
        with os.scandir(found) as listing:
            for entry in listing:
                if len(entries) == MOST_FILES:
                    raise HostRefused(f"{path}: has more than {MOST_FILES} entries")
                is_folder = entry.is_dir(follow_symlinks=False)
                entries.append({"name": entry.name, "is_dir": is_folder})
    except OSError as error:
        raise HostRefused(f"{path}: {error.strerror}") from None
    return sorted(entries, key=lambda entry: str(entry["name"]))
