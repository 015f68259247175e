"""The git command, without hooks, prompts, submodules or surprises from the environment."""

import os
import re
import signal
from collections.abc import Sequence
from subprocess import DEVNULL, PIPE
from typing import Final

import anyio

from daemon.sources.connectors.connector import SourceUnavailable

SECONDS: Final = 3600.0
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "protocol.file.allow=user",
    "credential.interactive=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.autoDetach=false",
    "filter.lfs.smudge=cat",
    "core.quotePath=false",
)
_CREDENTIALS: Final = re.compile(r"(?<!\w)(\w++://)[^/@\s]*+@")


def environment() -> dict[str, str]:
    """The environment of git: no variable that changes which repository it works on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "LC_ALL": "C",
    }


def arguments(directory: str, *more: str) -> list[str]:
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    return ["git", "--git-dir", directory, *settings, *more]


async def git(directory: str, *more: str, stdin: bytes = b"") -> bytes:
    """The output of a git command; `SourceUnavailable` with git's last line if it fails."""
    try:
        with anyio.fail_after(SECONDS):
            done = await anyio.run_process(
                arguments(directory, *more),
                input=stdin,
                stdout=PIPE,
                stderr=PIPE,
                check=False,
                env=environment(),
                start_new_session=True,
            )
    except FileNotFoundError:
        raise SourceUnavailable("the command git is not installed") from None
    except TimeoutError:
        raise SourceUnavailable(f"git took longer than {SECONDS:g} s") from None
    if done.returncode != 0:
        raise SourceUnavailable(reason(done.stderr, done.returncode))
    return done.stdout


def reason(stderr: bytes, code: int) -> str:
    """The most telling line of git's messages, without credentials."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    text = told[0] if told else f"git ended with {_code(code)}"
    return without_credentials(text)[:500]


def _code(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def without_credentials(text: str) -> str:
    return _CREDENTIALS.sub(r"\1", text)


async def open_batch(directory: str) -> "BatchReader":
    """`git cat-file --batch`, which stays open for many objects."""
    process = await anyio.open_process(
        arguments(directory, "cat-file", "--batch"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    return BatchReader(process)


class BatchReader:
    """Reads objects by their ids."""

    def __init__(self, process: anyio.abc.Process) -> None:
        from anyio.streams.buffered import BufferedByteReceiveStream

        assert process.stdout is not None
        self._process = process
        self._output = BufferedByteReceiveStream(process.stdout)

    async def read(self, id: str, most: int) -> bytes | None:
        """The content of an object; None if it is missing or has more than `most` bytes."""
        assert self._process.stdin is not None
        await self._process.stdin.send(f"{id}\n".encode())
        head = (await self._output.receive_until(b"\n", 4096)).decode()
        parts: Sequence[str] = head.split()
        if len(parts) != 3:
            return None
        left = int(parts[2])
        is_kept = left <= most
        pieces: list[bytes] = []
        while left:
            piece = await self._output.receive(min(left, 1 << 20))
            left -= len(piece)
            if is_kept:
                pieces.append(piece)
        await self._output.receive_exactly(1)  # the line end after the content
        return b"".join(pieces) if is_kept else None

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()
            await self._process.aclose()
