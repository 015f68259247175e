"""`recalld ctx`: the command line of Context Harness.

The commands read `ctx.toml`, write its translation to `config.toml` in a folder beside the database
that the file names, and run as ordinary recalld commands in that folder. A running `ctx serve mcp`
performs them; without one they run in this process.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from daemon.bridge import attach
from daemon.commands import source, tool
from daemon.commands.client import DaemonRefusedError
from daemon.commands.client import call_tool as call_in_daemon
from daemon.commands.ctx import connector, maintenance
from daemon.commands.ctx.configuration import find, read
from daemon.commands.ctx.toml_writing import write_toml
from daemon.commands.execution import LocalRunner, execute
from daemon.commands.output import print_lines
from daemon.config import Settings, load
from daemon.exit_codes import CANNOT_CREATE, OK, USAGE, Exit

if TYPE_CHECKING:
    import argparse

EXAMPLE: Final = """\
[db]
path = "./data/ctx.sqlite"

[chunking]
max_tokens = 700

[embedding]
provider = "local"

[retrieval]
final_limit = 12

[server]
bind = "127.0.0.1:7331"

[connectors.filesystem]
root = "./docs"
include_globs = ["**/*.md", "**/*.txt"]
"""
_CONNECT_SECONDS: Final = 5.0


class Callbacks(SimpleNamespace):
    """The parts that import the engine; `daemon.cli` provides them."""

    administer_source: LocalRunner
    administer_bank: LocalRunner
    #: The lines of a completion script.
    complete: Callable[[str], list[str]]
    #: Calls a Context Harness tool in this process.
    call_tool: Callable[[Settings, str, Mapping[str, Any]], dict[str, Any]]
    serve: Callable[[Settings], int]


_SYNC_OPTIONS: Final = {
    "full": "read every file, also unchanged ones",
    "dry-run": "list the changes, apply none",
    "allow-deletions": "apply deletions that the last sync withheld",
    "no-progress": "show no progress",
}


def add_arguments(parser: "argparse.ArgumentParser") -> None:

    parser.add_argument("--config", metavar="PATH", help="ctx.toml; ./config/ctx.toml by default")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)

    def verb(name: str, about: str) -> "argparse.ArgumentParser":
        added = verbs.add_parser(name, help=about, description=about)
        _config(added)
        return added

    verb("init", "create the store; writes an example of ctx.toml if there is none")
    verb("sources", "list the connectors and their state")
    verb("stats", "show counts of documents by source")
    sync = verb("sync", "index the documents of one connector, or of all")
    sync.add_argument("connector", nargs="?", default="all", help="all, TYPE or TYPE:NAME")
    for option, purpose in _SYNC_OPTIONS.items():
        sync.add_argument(f"--{option}", action="store_true", help=purpose)
    sync.add_argument(
        "--progress", choices=("human", "json"), default="human", help="form of progress"
    )
    for option, which in (("since", "at or after"), ("until", "at or before")):
        sync.add_argument(
            f"--{option}", type=source.moment, metavar="TIME", help=f"files changed {which} TIME"
        )
    sync.add_argument("--limit", type=int, metavar="N", help="at most N changed documents")
    search = verb("search", "search the documents")
    search.add_argument("query", help="search query")
    search.add_argument(
        "--mode",
        choices=("keyword", "semantic", "hybrid"),
        default="keyword",
        help="compare words, meaning, or both (keyword)",
    )
    search.add_argument("--source", help="only documents of this source")
    search.add_argument("--since", metavar="TIME", help="only documents changed since then")
    search.add_argument("--limit", type=int, help="number of results")
    search.add_argument("--explain", action="store_true", help="show the parts of each score")
    search.add_argument("--json", action="store_true", help="print JSON")
    get = verb("get", "print a document")
    get.add_argument("id", help="id of a document")
    get.add_argument("--json", action="store_true", help="print JSON")
    embed = verb("embed", "compute the vectors that are missing, or all of them")
    embed.add_argument("what", choices=("pending", "rebuild"), help="which vectors")
    index = verb("index", "show the state of the index, or build it again")
    index.add_argument("what", choices=("status", "rebuild"), help="what to do")
    export = verb("export", "write documents and chunks as JSON, for the search of a static site")
    export.add_argument("--output", metavar="FILE", help="file; standard output by default")
    completions = verb("completions", "print a script for tab completion")
    completions.add_argument("shell", choices=("bash", "zsh", "fish"), help="shell")
    serve = verb("serve", "run the server")
    protocols = serve.add_subparsers(dest="protocol", metavar="PROTOCOL", required=True)
    _config(protocols.add_parser("mcp", help="HTTP: MCP and REST"))
    connectors = verbs.add_parser("connector", help="write and test Lua connectors")
    _config(connectors)
    connector.add_arguments(connectors)
    tools = verbs.add_parser("tool", help="write, test and list Lua tools")
    _config(tools)
    tool.add_arguments(tools, dest="tool_verb")


def _config(parser: "argparse.ArgumentParser") -> None:
    import argparse

    # Suppressed, so that a value before the command is kept.
    parser.add_argument(
        "--config", metavar="PATH", default=argparse.SUPPRESS, help="path of ctx.toml"
    )


def run(given: Any, callbacks: Callbacks) -> int:
    """Run one command."""
    if given.verb == "completions":
        print_lines(callbacks.complete(given.shell))
        return OK
    path = find(given.config, os.environ)
    if given.verb == "init" and not path.exists():
        _write_example(path)
    settings = prepare(path)
    match given.verb:
        case "serve":
            return callbacks.serve(settings)
        case "init":
            return _init(settings, callbacks)
        case "sources":
            return _sources(settings, callbacks)
        case "sync":
            return _sync(given, settings, callbacks)
        case "search":
            return _search(given, settings, callbacks)
        case "get":
            return _get(given, settings, callbacks)
        case "stats":
            return _stats(settings, callbacks)
        case "embed" | "index" as verb:
            perform = maintenance.on_bank(settings, callbacks.administer_bank)
            act = maintenance.embed if verb == "embed" else maintenance.index
            return act(given.what, perform)
        case "export":
            perform = maintenance.on_bank(settings, callbacks.administer_bank)
            return maintenance.export(given.output, perform)
        case "connector":
            return connector.run(given, settings)
        case _:
            given.verb = given.tool_verb
            return tool.run(given, settings)


def prepare(path: Path) -> Settings:
    """Translate a `ctx.toml`; the settings of the folder that belongs to it."""
    found = read(path, os.environ)
    for warning in found.warnings:
        sys.stderr.write(f"recalld: warning: {warning}\n")
    environment = {**os.environ, "RECALLD_HOME": str(found.home)}
    key = os.environ.get("OPENAI_API_KEY", "")
    if "embedding" in found.tables and key:
        environment.setdefault("RECALLD_EMBEDDING_KEY", key)
    note = f"Written by `recalld ctx` from {path.absolute()}; changes are overwritten."
    _replace(found.home / "config.toml", write_toml(found.tables, note))
    return load({}, environment)


def _replace(path: Path, text: str) -> None:
    """Write the file if its content differs; a reader never sees a half of it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_file() and path.read_text() == text:
            return
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(text)
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None


def _write_example(path: Path) -> None:
    _replace(path, EXAMPLE)
    sys.stderr.write(f"recalld: wrote an example of {path}\n")


def _init(settings: Settings, callbacks: Callbacks) -> int:
    execute("source", {"verb": "list"}, settings, callbacks.administer_source, _silent)
    print_lines([f"initialized {settings.directories.data}"])
    return OK


def _sources(settings: Settings, callbacks: Callbacks) -> int:
    request = {"verb": "list"}
    found = execute("source", request, settings, callbacks.administer_source, _silent)
    for each in found["sources"]:
        state = "OK" if each["healthy"] else f"NOT HEALTHY: {each['last_error'] or 'never synced'}"
        print_lines([f"{each['name']:20} {each['kind']:12} {state}"])
    if not found["sources"]:
        sys.stderr.write("recalld: the file configures no connector\n")
    return OK


def _sync(given: Any, settings: Settings, callbacks: Callbacks) -> int:
    names = _chosen(given.connector, settings)
    worst = OK
    for name in names:
        options = SimpleNamespace(
            verb="sync",
            name=name,
            json=False,
            dry_run=given.dry_run,
            full=given.full,
            allow_deletions=given.allow_deletions,
            no_vectors=False,
            since=given.since,
            until=given.until,
            limit=given.limit,
            progress="none" if given.no_progress else _form(given.progress),
        )
        code = source.run(options, settings, callbacks.administer_source)
        worst = max(worst, code)
    return worst


def _form(progress: str) -> str:
    return "json" if progress == "json" else "auto"


def _chosen(connector: str, settings: Settings) -> list[str]:
    """The sources that `all`, `TYPE` or `TYPE:NAME` mean."""
    known = sorted(settings.sources)
    if connector == "all":
        return known
    name = connector.replace(":", "-")
    found = [each for each in known if each == name or each.startswith(f"{name}-")]
    if not found:
        listed = ", ".join(known) or "none is configured"
        raise Exit(USAGE, f"there is no connector {connector!r}; known: {listed}")
    return found


def _call(
    settings: Settings, callbacks: Callbacks, name: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call a tool in the running server, else in this process."""
    link = attach.connect(settings.socket, _CONNECT_SECONDS)
    if link is None:
        return callbacks.call_tool(settings, name, arguments)
    link.close()
    try:
        return call_in_daemon(settings.socket, name, arguments)
    except DaemonRefusedError as refused:
        raise Exit(USAGE, str(refused)) from None


def _search(given: Any, settings: Settings, callbacks: Callbacks) -> int:
    arguments: dict[str, Any] = {"query": given.query, "mode": given.mode}
    if given.limit is not None:
        arguments["limit"] = given.limit
    if given.source is not None:
        arguments["source"] = given.source.replace(":", "-")
    if given.since is not None:
        arguments["since"] = given.since
    if given.explain:
        arguments["explain"] = True
    found = _call(settings, callbacks, "search", arguments)
    if given.json:
        print_lines([json.dumps(found, ensure_ascii=False)])
        return OK
    for number, row in enumerate(found["results"], 1):
        print_lines(
            [
                f"{number}. [{row['score']:.2f}] {row['title']}  ({row['source']}: "
                f"{row['source_id']})",
                f"   {' '.join(str(row['snippet']).split())}",
                f"   id: {row['id']}",
            ]
        )
        if "score_parts" in row:
            parts = ", ".join(f"{name} {value:.3f}" for name, value in row["score_parts"].items())
            print_lines([f"   score: {parts}"])
    if not found["results"]:
        sys.stderr.write("recalld: nothing was found\n")
    return OK


def _get(given: Any, settings: Settings, callbacks: Callbacks) -> int:
    found = _call(settings, callbacks, "get", {"id": given.id})
    if given.json:
        print_lines([json.dumps(found, ensure_ascii=False)])
        return OK
    heads = ("title", "source", "source_id", "source_url", "updated_at", "id")
    print_lines([f"{key}: {found[key]}" for key in heads if found.get(key)])
    print_lines(["", str(found["body"])])
    return OK


def _stats(settings: Settings, callbacks: Callbacks) -> int:
    found = _call(settings, callbacks, "sources", {})["sources"]
    total = sum(each["doc_count"] for each in found)
    size = sum(
        each.stat().st_size for each in settings.directories.data.rglob("*") if each.is_file()
    )
    print_lines([f"documents  {total}", f"size       {size / 1024 / 1024:.1f} MiB", ""])
    for each in found:
        synced = each.get("last_sync") or "never"
        print_lines([f"{each['name']:20} {each['doc_count']:8} documents, last sync {synced}"])
    return OK


def _silent(_done: int, _total: int, _message: str) -> None:
    """These commands show no progress."""
