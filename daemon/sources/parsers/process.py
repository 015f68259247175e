"""The parent's side of the parser: plain text here, everything else in a child process.

The child is started at the first file that needs it, reused, restarted after 200 files, and killed
when a file takes too long. Whatever happens to it costs one file.
"""

import struct
import sys
from contextlib import suppress
from subprocess import DEVNULL
from typing import Final

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from daemon.sources.formats import Format
from daemon.sources.parsers import plain
from daemon.sources.parsers.parsed import Parsed, Unparsable

FILE_SECONDS: Final = 30.0
FILES_PER_CHILD: Final = 200
LARGEST_ANSWER: Final = 64 * 1024 * 1024
_START: Final = "from daemon.sources.parsers.child import main; main()"


class Parser:
    """Parses files, one at a time. Use it as a context manager; it ends its child."""

    def __init__(self, seconds: float = FILE_SECONDS) -> None:
        self._seconds = seconds
        self._child: Process | None = None
        self._answers: BufferedByteReceiveStream | None = None
        self._parsed = 0
        self._turn = anyio.Lock()

    async def __aenter__(self) -> "Parser":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def parse(self, format: Format, content: bytes) -> Parsed:
        """The text of a file; raises `Unparsable` with the reason if it has none."""
        if format.parser == "text":
            text = plain.decode_known(content)
            if text is not None:
                return Parsed(text=text)
        elif not content:
            raise Unparsable("is empty")
        async with self._turn:
            return await self._parse_in_child(format.parser, content)

    async def close(self) -> None:
        child, self._child, self._answers = self._child, None, None
        if child is not None:
            with anyio.CancelScope(shield=True):
                with suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
                await child.aclose()

    async def _parse_in_child(self, parser: str, content: bytes) -> Parsed:
        if self._parsed >= FILES_PER_CHILD:
            await self.close()
        request = msgspec.msgpack.encode((parser, content))
        try:
            with anyio.fail_after(self._seconds):
                body = await self._exchange(request)
            text, title, problem = msgspec.msgpack.decode(body, type=tuple[str, str, str])
        except TimeoutError:
            await self.close()
            raise Unparsable(f"took longer than {self._seconds:g} s") from None
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, OSError):
            await self.close()
            raise Unparsable("ended the parser") from None
        except msgspec.MsgspecError:
            await self.close()
            raise Unparsable("made the parser answer nonsense") from None
        except BaseException:
            await self.close()  # cancelled: the child may still be busy with this file
            raise
        self._parsed += 1
        if problem:
            raise Unparsable(problem)
        return Parsed(text=text, title=title)

    async def _exchange(self, request: bytes) -> bytes:
        if self._child is None:
            self._child = await anyio.open_process(
                [sys.executable, "-I", "-c", _START], stderr=DEVNULL
            )
            assert self._child.stdout is not None
            self._answers = BufferedByteReceiveStream(self._child.stdout)
            self._parsed = 0
        assert self._child.stdin is not None
        assert self._answers is not None
        await self._child.stdin.send(struct.pack(">I", len(request)) + request)
        (length,) = struct.unpack(">I", await self._answers.receive_exactly(4))
        if length > LARGEST_ANSWER:
            raise OSError("the answer is too large")
        return await self._answers.receive_exactly(length)
