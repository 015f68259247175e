"""The parser's child process: reads requests on stdin and answers on stdout, one at a time.

A request is the name of a parser and the bytes of a file; an answer is the text and the title, or a
reason. Each is a MessagePack value behind its length in four bytes. The process limits its own
memory, CPU time and output files; the parent limits the wall time and kills it.
"""

import os
import resource
import sys
from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from daemon.sources.parsers.parsed import LARGEST_TEXT, Parsed, Unparsable

MEMORY_BYTES: Final = 512 * 1024 * 1024
FILE_SECONDS: Final = 30


class Request(msgspec.Struct, array_like=True):
    parser: str
    content: bytes


class Answer(msgspec.Struct, array_like=True):
    """`problem` is empty if the file was parsed."""

    text: str = ""
    title: str = ""
    problem: str = ""


def parse(parser: str, content: bytes) -> Parsed:
    """Parse a file in this process."""
    from daemon.sources.parsers import html, notebook, office, pdf, plain

    def text(content: bytes) -> str:
        known = plain.decode_known(content)
        return plain.detect(content) if known is None else known

    parsers: dict[str, Callable[[bytes], Parsed]] = {
        "text": lambda content: Parsed(text=text(content)),
        "html": lambda content: html.parse_html(text(content)),
        "pdf": pdf.parse_pdf,
        "docx": office.parse_docx,
        "pptx": office.parse_pptx,
        "xlsx": office.parse_xlsx,
        "notebook": notebook.parse_notebook,
    }
    parsed = parsers[parser](content)
    clean = parsed.text.replace("\0", "").encode("utf-8", "replace").decode()
    return Parsed(text=plain.storable(clean), title=parsed.title.replace("\0", ""))


def main() -> None:
    _limit()
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # A stray print of a library must not end up among the answers.
    os.dup2(2, 1)
    decoder = msgspec.msgpack.Decoder(Request)
    while (request := _read(source)) is not None:
        answer = _answer(decoder.decode(request))
        body = msgspec.msgpack.encode(answer)
        sink.write(len(body).to_bytes(4, "big") + body)
        sink.flush()
        if answer.problem.startswith("needs more"):
            return  # fragmented memory; the next file gets a new process


def _answer(request: Request) -> Answer:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + FILE_SECONDS + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    try:
        parsed = parse(request.parser, request.content)
    except Unparsable as reason:
        return Answer(problem=str(reason))
    except MemoryError:
        return Answer(problem=f"needs more than {MEMORY_BYTES} bytes of memory")
    except RecursionError:
        return Answer(problem="is nested too deeply")
    except Exception as error:  # noqa: BLE001  (a broken file must cost one answer only)
        return Answer(problem=f"cannot be parsed ({type(error).__name__})")
    return Answer(text=parsed.text, title=parsed.title)


def _read(source: BinaryIO) -> bytes | None:
    head = source.read(4)
    return source.read(int.from_bytes(head, "big")) if len(head) == 4 else None


def _limit() -> None:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    except (ValueError, OSError):
        if sys.platform == "linux":
            raise
        # macOS refuses this limit. The limits of time and of the answer still hold.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.nice(5)
    assert LARGEST_TEXT < MEMORY_BYTES
    sys.setrecursionlimit(2000)


if __name__ == "__main__":
    main()
