"""Sources of kind `script`: a Lua script lists the documents.

The script sets the global table `connector` and defines `connector.scan(config, context)`, which
returns an array of documents: `source_id` and `body` are required; `title`, `author`, `source_url`,
`content_type`, `metadata_json`, `created_at` and `updated_at` are optional. The array is the whole
source: a document that is missing in it has been deleted.
"""

import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from daemon.config import Settings
from daemon.config.scripts import ScriptEntry, Scripts
from daemon.lua.host import ScriptHost, no_memory
from daemon.lua.process import LuaMissing, ProcessLost, ScriptProcess
from daemon.lua.runner import ScriptLimits
from daemon.lua.sandbox.messages import Failed, Note
from daemon.lua.script import Script, ScriptUnreadable, read_script
from daemon.lua.script_tools import log_note
from daemon.sources.connectors.connector import (
    Connector,
    ConnectorFactory,
    Entry,
    Listed,
    Skipped,
    SourceUnavailable,
    Unlisted,
)
from daemon.sources.definition import Definition, make_definition

RESULT_BYTES: Final = 24 * 1024 * 1024
MEMORY_BYTES: Final = 512 * 1024 * 1024
_TEXTS: Final = ("title", "author", "source_url", "content_type")


def script_connectors(settings: Scripts) -> ConnectorFactory:
    """Opens the connectors of kind `script`, with the rights of `[tools]`."""

    async def open_script(definition: Definition) -> Connector:
        entry = ScriptEntry(
            name=definition.name,
            seconds=float(definition.timeout),
            hosts=definition.allow_hosts or None,
            environment=definition.env or None,
            config=definition.config,
        )
        try:
            script = await anyio.to_thread.run_sync(
                read_script, Path(definition.path), "connector", settings, entry, os.environ
            )
        except ScriptUnreadable as error:
            raise SourceUnavailable(f"{definition.path}: {error}") from None
        return ScriptConnector(definition.name, script)

    return open_script


class ScriptConnector:
    """One run of a script. The scan has a process of its own, because it may take minutes."""

    def __init__(self, name: str, script: Script) -> None:
        self._name = name
        self._script = script

    @property
    def place(self) -> str:
        return ""

    async def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        for position, item in enumerate(await self._scan(), 1):
            entry = _entry(position, item)
            if not under or any(_is_below(entry.source_id, each) for each in under):
                yield entry

    async def read(self, listed: Listed) -> bytes:
        raise SourceUnavailable("a script delivers the text in its listing")

    async def close(self) -> None:
        """Nothing is open between the calls."""

    async def _scan(self) -> list[Any]:
        script = self._script
        limits = ScriptLimits(memory_bytes=MEMORY_BYTES, result_bytes=RESULT_BYTES)
        try:
            process = await ScriptProcess.start(MEMORY_BYTES)
        except (OSError, ProcessLost, LuaMissing, TimeoutError) as error:
            raise SourceUnavailable(f"no script process could be started: {error}") from None

        def listen(note: Note) -> None:
            log_note(self._name, note)

        answer = None
        try:
            with anyio.move_on_after(script.seconds):
                run = script.run("scan", [], limits)
                answer = await process.perform(run, ScriptHost(script, no_memory), listen)
        except ProcessLost as lost:
            raise SourceUnavailable(f"{script.path.name}: {lost}") from None
        finally:
            await process.end()
        if answer is None:
            message = f"{script.path.name}: timed out after {script.seconds:g} seconds"
            raise SourceUnavailable(message)
        if isinstance(answer, Failed):
            raise SourceUnavailable(answer.message)
        found = msgspec.json.decode(answer.result)
        if found in ({}, None):
            return []
        if not isinstance(found, list):
            raise SourceUnavailable(f"{script.path.name}: scan must return an array of documents")
        return cast("list[Any]", found)


class ScanTrial(Struct, kw_only=True):
    """The outcome of one scan that stores nothing."""

    documents: list[Listed] = []
    problems: list[str] = []
    seconds: float = 0.0


async def try_connector(path: Path, settings: Settings) -> ScanTrial:
    """Run the scan of a connector once, with the keys of its source if it is configured."""
    trial, started = ScanTrial(), time.monotonic()
    try:
        connector = await script_connectors(settings.scripts)(_definition_of(path, settings))
        async for entry in connector.entries():
            if isinstance(entry, Listed):
                trial.documents.append(entry)
            else:
                trial.problems.append(f"{entry.source_id}: {entry.reason}")
    except SourceUnavailable as error:
        trial.problems.append(str(error))
    trial.seconds = time.monotonic() - started
    return trial


def _definition_of(path: Path, settings: Settings) -> Definition:
    for name, given in settings.sources.items():
        if given["kind"] == "script" and Path(given["path"]) == path:
            return make_definition(name, given, is_from_file=True)
    return Definition(name=path.stem, kind="script", path=str(path))


def _is_below(source_id: str, path: str) -> bool:
    return source_id == path or source_id.startswith(f"{path.rstrip('/')}/")


def _entry(position: int, item: Any) -> Entry:
    if not isinstance(item, dict):
        return Unlisted(source_id=f"item {position}", reason="is not a table")
    given = cast("dict[str, Any]", item)
    source_id = given.get("source_id")
    if not isinstance(source_id, str) or not source_id.strip():
        return Unlisted(source_id=f"item {position}", reason="source_id: required")
    body = given.get("body")
    if not isinstance(body, str) or not body.strip():
        return Skipped(source_id=source_id, reason="body: required and not empty")
    texts = {key: given[key] for key in _TEXTS if isinstance(given.get(key), str)}
    try:
        return Listed(
            source_id=source_id,
            text=body,
            title=texts.get("title", ""),
            author=texts.get("author"),
            url=texts.get("source_url"),
            content_type=texts.get("content_type", ""),
            metadata=_metadata(given.get("metadata_json")),
            created_at=_milliseconds(given.get("created_at")),
            updated_at=_milliseconds(given.get("updated_at")),
        )
    except ValueError as error:
        return Skipped(source_id=source_id, reason=str(error))


def _metadata(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.MsgspecError, TypeError):
        raise ValueError("metadata_json: must be a JSON object") from None


def _milliseconds(value: Any) -> int | None:
    """A time as RFC 3339, `YYYY-MM-DD HH:MM:SS` in UTC, or Unix seconds."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value * 1000)
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a time such as 2026-11-16T10:30:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
