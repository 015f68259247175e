"""`recalld tool`: writes an example of a Lua tool, runs a tool once, and lists the tools.

These commands need no daemon. They use the same script processes and limits as the daemon. `test`
searches no memory unless a daemon runs: `context.search` then asks that daemon.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.dialect_names import DIALECTS, chosen
from daemon.exit_codes import CANNOT_CREATE, DEGRADED, OK, USAGE, Exit

if TYPE_CHECKING:
    import argparse

TEMPLATE: Final = """\
-- {name}: a Lua tool for recalld. Edit it, then try it:
--   recalld tool test {file} --param query=authentication

tool = {{
  name = "{name}",
  description = "Finds documents and returns their titles",
  parameters = {{
    {{ name = "query", type = "string", required = true, description = "Search query" }},
    {{ name = "limit", type = "integer", default = 5, description = "Max results" }},
  }},
}}

function tool.execute(params, context)
  local titles = json.array()
  for _, row in ipairs(context.search(params.query, {{ mode = "hybrid", limit = params.limit }})) do
    titles[#titles + 1] = row.title
  end
  log.info("found", #titles)
  return {{ titles = titles }}
end
"""


def add_arguments(parser: "argparse.ArgumentParser", dest: str = "verb") -> None:
    verbs = parser.add_subparsers(dest=dest, metavar="VERB", required=True)
    init = verbs.add_parser("init", help="write an example of a tool")
    init.add_argument("name", metavar="NAME", help="name of the tool")
    init.add_argument(
        "--dir", metavar="PATH", dest="folder", help="folder; tools.dir, else the current one"
    )
    test = verbs.add_parser("test", help="run a tool once and print result, time and memory")
    test.add_argument("file", metavar="FILE", help="Lua file")
    test.add_argument(
        "--param",
        metavar="K=V",
        action="append",
        dest="params",
        default=[],
        help="argument; the value is JSON, else text; repeatable",
    )
    test.add_argument("--json", action="store_true", help="print JSON")
    listing = verbs.add_parser("list", help="list the built-in and the Lua tools")
    listing.add_argument("--json", action="store_true", help="print JSON")


def run(given: Any, settings: Settings) -> int:
    """Run one of the verbs."""
    match given.verb:
        case "init":
            return init(settings, given.name, given.folder)
        case "test":
            return test(settings, Path(given.file), given.params, as_json=given.json)
        case _:
            return show(settings, as_json=given.json)


def init(settings: Settings, name: str, folder: str | None) -> int:
    """Write a tool that works; an existing file is left alone."""
    from daemon.config.scripts import NAME, NAME_RULE

    if NAME.fullmatch(name) is None:
        raise Exit(USAGE, f"{name!r}: a name {NAME_RULE}")
    where = Path(folder) if folder else settings.scripts.dir or Path()
    path = where / f"{name}.lua"
    text = TEMPLATE.format(name=name, file=path)
    try:
        where.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    except FileExistsError:
        raise Exit(USAGE, f"{path}: exists already") from None
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    print_lines([str(path)])
    if settings.scripts.dir is None:
        sys.stderr.write("recalld: set dir under [tools] in the config file to serve this tool\n")
    return OK


def test(settings: Settings, path: Path, params: list[str], *, as_json: bool) -> int:
    """Run a tool once. Exit code 1 if the script fails or exceeds a limit."""
    import anyio
    import anyio.to_thread

    from daemon.commands.client import DaemonRefusedError, call_tool
    from daemon.lua.host import HostRefused
    from daemon.lua.trial import try_tool

    async def memory(name: str, given: dict[str, Any]) -> Any:
        try:
            return await anyio.to_thread.run_sync(call_tool, settings.socket, name, given)
        except DaemonRefusedError as refused:
            raise HostRefused(str(refused)) from None
        except Exit as exit:
            raise HostRefused(exit.message) from None

    arguments = dict(_argument(param) for param in params)
    found = anyio.run(try_tool, path.absolute(), arguments, settings, memory)
    for line in found.notes:
        sys.stderr.write(f"{line}\n")
    if as_json:
        print_lines([json.dumps(found.as_object(), ensure_ascii=False)])
    elif found.error:
        sys.stderr.write(f"recalld: {found.error}\n")
    else:
        print_lines([json.dumps(found.result, indent=2, ensure_ascii=False)])
    sys.stderr.write(f"recalld: {found.summary()}\n")
    return DEGRADED if found.error else OK


def _argument(param: str) -> tuple[str, Any]:
    name, equals, value = param.partition("=")
    if not equals or not name:
        raise Exit(USAGE, f"--param {param!r}: write NAME=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def show(settings: Settings, *, as_json: bool) -> int:
    """List all tools; a script that cannot be used is reported on stderr, with exit code 1."""
    import anyio

    from daemon.dialects.registry import build
    from daemon.lua.trial import find_lua_tools
    from daemon.tools.toolkit import Toolkit

    # Only the specifications are read, so no engine is needed.
    toolkit = Toolkit(engine=cast("Any", None), now=lambda: 0)
    reserved = build(DIALECTS, toolkit).names()
    found = anyio.run(find_lua_tools, settings, reserved)
    specs = [*build(chosen(settings.dialects), toolkit).specs(), *(t.spec for t in found.tools)]
    rows = [
        {"name": spec.name, "builtin": spec.is_built_in, "description": spec.description}
        for spec in specs
    ]
    if as_json:
        print_lines([json.dumps({"tools": rows}, ensure_ascii=False)])
    else:
        width = max(len(str(row["name"])) for row in rows)
        for row in rows:
            kind = "built-in" if row["builtin"] else "lua"
            about = str(row["description"]).partition("\n")[0]
            print_lines([f"{row['name']:{width}}  {kind:8}  {about}"])
    for problem in found.problems:
        sys.stderr.write(f"recalld: {problem.path}: {problem.reason}\n")
    return DEGRADED if found.problems else OK
