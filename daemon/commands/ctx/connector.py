"""`ctx connector`: writes an example of a Lua connector, and runs one without storing anything."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, DEGRADED, OK, USAGE, Exit

if TYPE_CHECKING:
    import argparse

#: Documents that `test` prints.
SHOWN: Final = 20
TEMPLATE: Final = """\
-- {name}: a Lua connector. Edit it, then try it:
--   recalld ctx connector test {file}

connector = {{ name = "{name}", description = "Lists documents" }}

function connector.scan(config, context)
  return {{
    {{
      source_id = "hello",
      title = "Hello",
      body = "The text of the document.",
      updated_at = "2026-01-01T00:00:00Z",
    }},
  }}
end
"""


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    verbs = parser.add_subparsers(dest="connector_verb", metavar="VERB", required=True)
    init = verbs.add_parser("init", help="write an example of a connector")
    init.add_argument("name", metavar="NAME", help="name of the connector")
    init.add_argument("--dir", metavar="PATH", dest="folder", default=".", help="folder")
    test = verbs.add_parser("test", help="run a connector once; stores nothing")
    test.add_argument("file", metavar="FILE", help="Lua file")


def run(given: Any, settings: Settings) -> int:
    if given.connector_verb == "init":
        return init(given.name, Path(given.folder))
    return test(settings, Path(given.file))


def init(name: str, folder: Path) -> int:
    """Write a connector that works; an existing file is left alone."""
    from daemon.config.scripts import NAME, NAME_RULE

    if NAME.fullmatch(name) is None:
        raise Exit(USAGE, f"{name!r}: a name {NAME_RULE}")
    path = folder / f"{name}.lua"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w") as file:
            file.write(TEMPLATE.format(name=name, file=path))
    except FileExistsError:
        raise Exit(USAGE, f"{path}: exists already") from None
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    print_lines([str(path)])
    sys.stderr.write(f"recalld: add [connectors.script.{name}] with this path to ctx.toml\n")
    return OK


def test(settings: Settings, path: Path) -> int:
    """Run a connector once. Exit code 1 if it fails, or if some of its documents are unusable."""
    import anyio

    from daemon.lua.connector import try_connector

    found = anyio.run(try_connector, path.absolute(), settings)
    for document in found.documents[:SHOWN]:
        print_lines([f"{document.source_id}  {document.title}".rstrip()])
    if len(found.documents) > SHOWN:
        print_lines([f"... and {len(found.documents) - SHOWN} more"])
    for problem in found.problems:
        sys.stderr.write(f"recalld: {problem}\n")
    sys.stderr.write(f"recalld: {len(found.documents)} documents, {found.seconds:.2f} s\n")
    return DEGRADED if found.problems else OK
