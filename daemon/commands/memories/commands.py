"""Commands about single memories: add, search, recent, list, show, edit, forget, undo and stats.

A command becomes an operation of `daemon.memory.memory_operations`, which the daemon executes. A
daemon is started if none runs, as `recalld stdio` does, so that the next command finds it and its
loaded model. Standard library only: a search should take little longer than the daemon does.
"""

import argparse
import json
import os
import sys
from types import SimpleNamespace
from typing import Any, Final

from daemon.bridge import attach
from daemon.commands.execution import Request, execute_in_daemon
from daemon.commands.memories import report
from daemon.commands.progress_bar import ProgressBar
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, OK, UNAVAILABLE, USAGE, Exit

DEFAULT_BANK: Final = "default"
#: The argument that means standard input.
STREAM: Final = "-"
KINDS: Final = ("memory", "event", "card", "task", "risk", "narrative", "skill", "chunk")


# --- arguments -------------------------------------------------------------------------------


def add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the memory; - reads stdin")
    parser.add_argument("--tag", **_repeatable("T", "tag of the memory; repeatable"))
    parser.add_argument("--source", metavar="NAME", help="source of the memory; cli by default")
    parser.add_argument(
        "--lines", action="store_true", help="with -: each line of stdin is a memory"
    )
    _common(parser, "recalld add 'We release on Fridays' --tag release", "recalld add - < note.txt")


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", metavar="QUERY", nargs="+", help="a question or words; - for stdin"
    )
    parser.add_argument("-n", "--limit", type=_count, default=10, help="number of results (10)")
    parser.add_argument("--explain", action="store_true", help="show why each result matched")
    parser.add_argument(
        "--mode",
        choices=("hybrid", "keyword", "semantic"),
        default="hybrid",
        help="compare words, meaning, or both (hybrid)",
    )
    parser.add_argument("--min-score", type=_share, metavar="S", help="lowest score, 0 to 1 (0.1)")
    _filters(parser)
    _common(parser, "recalld search 'when do we release?'", "recalld search release --explain")


def add_recent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--limit", type=_count, default=10, help="number of memories (10)")
    _filters(parser)
    _common(parser, "recalld recent -n 3")


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--limit", type=_count, default=20, help="memories per page (20)")
    parser.add_argument("--offset", type=_whole, default=0, help="memories to skip")
    parser.add_argument("--kind", choices=KINDS, help="only items of this kind")
    _filters(parser)
    _common(parser, "recalld list --tag release", "recalld list --offset 20")


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="+", help="id of a memory or document; - stdin")
    _common(parser, "recalld show ID")


def add_edit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="id of the memory")
    parser.add_argument("--text", metavar="TEXT", help="new text instead of an editor; - for stdin")
    parser.add_argument("--tag", **_repeatable("T", "replace the tags; repeatable"))
    parser.add_argument("--no-tags", action="store_true", help="remove all tags")
    _common(parser, "recalld edit ID", "recalld edit ID --text 'We release on Mondays'")


def add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ids", metavar="ID", nargs="+", help="id of a memory; - reads ids from stdin"
    )
    _common(parser, "recalld forget ID")


def add_undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("undo", metavar="TOKEN", help="token that forget printed")
    _common(parser, "recalld undo TOKEN")


def add_stats(parser: argparse.ArgumentParser) -> None:
    _common(parser, "recalld stats --bank work")


def _common(parser: argparse.ArgumentParser, *examples: str) -> None:
    parser.add_argument(
        "--bank", metavar="NAME", help="bank to use; auto: the bank of this repository"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")
    parser.epilog = "\n".join(("examples:", *(f"    {example}" for example in examples)))


def _filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tag", **_repeatable("T", "only with this tag; repeatable"))
    parser.add_argument("--source", **_repeatable("NAME", "only of this source; repeatable"))


def _repeatable(metavar: str, about: str) -> dict[str, Any]:
    return {"metavar": metavar, "action": "append", "default": [], "help": about}


def _count(text: str) -> int:
    number = _whole(text)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return number


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return share


# --- commands --------------------------------------------------------------------------------


def add(chosen: SimpleNamespace, settings: Settings) -> int:
    texts = [" ".join(chosen.text)]
    if chosen.text == [STREAM]:
        read = _stdin()
        texts = [line for line in read.splitlines() if line.strip()] if chosen.lines else [read]
    texts = [text.strip() for text in texts]
    if not all(texts) or not texts:
        raise Exit(USAGE, "TEXT: must not be empty")
    request: Request = {"texts": texts, "tags": chosen.tag}
    if chosen.source is not None:
        request["source"] = chosen.source
    return _report("add", request, chosen, settings)


def search(chosen: SimpleNamespace, settings: Settings) -> int:
    query = _stdin().strip() if chosen.query == [STREAM] else " ".join(chosen.query)
    if not query.strip():
        raise Exit(USAGE, "QUERY: must not be empty")
    request: Request = {
        "query": query,
        "limit": chosen.limit,
        "mode": chosen.mode,
        "tags": chosen.tag,
        "sources": chosen.source,
        "explain": chosen.explain,
    }
    if chosen.min_score is not None:
        request["min_score"] = chosen.min_score
    return _report("search", request, chosen, settings)


def recent(chosen: SimpleNamespace, settings: Settings) -> int:
    request = {
        "limit": chosen.limit,
        "tags": chosen.tag,
        "sources": chosen.source,
        "by_date": True,
    }
    return _report("items", request, chosen, settings)


def list_items(chosen: SimpleNamespace, settings: Settings) -> int:
    request: Request = {
        "limit": chosen.limit,
        "offset": chosen.offset,
        "tags": chosen.tag,
        "sources": chosen.source,
    }
    if chosen.kind is not None:
        request["kinds"] = [chosen.kind]
    return _report("items", request, chosen, settings)


def show(chosen: SimpleNamespace, settings: Settings) -> int:
    return _report("show", {"ids": _ids(chosen)}, chosen, settings)


def edit(chosen: SimpleNamespace, settings: Settings) -> int:
    tags: list[str] | None = chosen.tag or ([] if chosen.no_tags else None)
    request: Request = {"id": chosen.id}
    if tags is not None:
        request["tags"] = tags
    if chosen.text is not None:
        request["text"] = _stdin().strip() if chosen.text == STREAM else chosen.text
        if not request["text"].strip():
            raise Exit(USAGE, "--text: must not be empty; `recalld forget` removes a memory")
    elif tags is None:
        from daemon.commands.memories import editor  # starts another program; rarely needed

        old = _perform("show", {"ids": [chosen.id]}, settings, chosen)["items"][0]["text"]
        with editor.edited(old) as draft:
            if draft.text == old:
                sys.stderr.write("recalld: nothing was changed\n")
                return OK
            request |= {"text": draft.text, "expected": old}
            code = _report("change", request, chosen, settings)
            draft.is_saved = True
            return code
    return _report("change", request, chosen, settings)


def forget(chosen: SimpleNamespace, settings: Settings) -> int:
    return _report("forget", {"ids": _ids(chosen)}, chosen, settings)


def undo(chosen: SimpleNamespace, settings: Settings) -> int:
    return _report("undo", {"undo": chosen.undo}, chosen, settings)


def stats(chosen: SimpleNamespace, settings: Settings) -> int:
    return _report("statistics", {}, chosen, settings)


def _ids(chosen: SimpleNamespace) -> list[str]:
    if chosen.ids != [STREAM]:
        return list(chosen.ids)
    ids = _stdin().split()
    if not ids:
        raise Exit(USAGE, "stdin: contains no id")
    return ids


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"stdin: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Exit(USAGE, "stdin: is not UTF-8 text") from None


# --- execution -------------------------------------------------------------------------------


def _report(verb: str, request: Request, chosen: SimpleNamespace, settings: Settings) -> int:
    """Perform an operation and print its result."""
    result = _perform(verb, request, settings, chosen)
    try:
        if chosen.json:
            report.print_plain([json.dumps(result, ensure_ascii=False)])
        else:
            report.write(verb, result)
    except (KeyError, TypeError):
        message = f"the daemon at {settings.socket} does not answer as recalld does"
        raise Exit(UNAVAILABLE, message) from None
    return OK


def _perform(
    verb: str, request: Request, settings: Settings, chosen: SimpleNamespace
) -> dict[str, Any]:
    bank = settings.bank or DEFAULT_BANK
    bar = ProgressBar(verb, is_shown=os.isatty(2) and not chosen.json)
    link = attach.connect_or_start(settings)
    try:
        with link:
            given = {"verb": verb, "bank": bank, **request}
            return execute_in_daemon(link, "bank", given, settings, bar.update)
    finally:
        bar.clear()
