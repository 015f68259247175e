"""The parser: help with examples, suggestions, and one line for every usage error."""

import subprocess
import sys
from pathlib import Path

import pytest

from daemon.commandline.parser import full_parser, load, parse
from daemon.commandline.table import COMMANDS
from daemon.exit_codes import USAGE, Exit
from tests.support.processes import recalld


def test_a_bare_command_prints_help_with_examples(tmp_path: Path) -> None:
    done = recalld(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "examples:" in done.stdout
    assert "recalld search 'when do we release?'" in done.stdout
    for command in COMMANDS:
        assert f"    {command.name} " in done.stdout
    assert done.stdout == recalld(tmp_path, "--help").stdout


@pytest.mark.parametrize(
    ("typed", "meant"), [("serch", "search"), ("lst", "list"), ("helth", "health"), ("ad", "add")]
)
def test_a_mistyped_command_gets_a_suggestion(typed: str, meant: str) -> None:
    with pytest.raises(Exit) as refused:
        parse([typed])
    assert refused.value.code == USAGE
    assert f"did you mean {meant}?" in refused.value.message


def test_a_strange_command_gets_no_suggestion() -> None:
    with pytest.raises(Exit) as refused:
        parse(["quxx42"])
    assert "did you mean" not in refused.value.message


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_arguments_that_can_be_loaded_and_help(command: object) -> None:
    assert isinstance(command, tuple)
    name, _group, about, arguments, run = command
    assert about and not about.endswith(".")
    for place in (arguments, run):
        assert not place or callable(load(place))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "daemon", name, "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert f"usage: recalld {name}" in done.stdout


#: The places of a further command, which `--help` lists with its purpose.
VERBS = ("verb", "command", "tool_verb", "connector_verb", "protocol")


def test_every_argument_of_every_command_is_described() -> None:
    from daemon.commandline.completion import subcommands

    for name, _, parser in subcommands(full_parser()):
        for verb, inner in [("", parser), *((v, p) for v, _, p in subcommands(parser))]:
            for action in inner._actions:
                assert action.help or action.dest in VERBS, (
                    name,
                    verb,
                    action.dest,
                )


@pytest.mark.parametrize(
    "given",
    [
        ["search"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--min-score", "2"],
        ["list", "--offset", "-1"],
        ["list", "--kind", "nonsense"],
        ["show"],
        ["completion", "tcsh"],
        ["status", "--nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_one_line_and_exit_code_64(tmp_path: Path, given: list[str]) -> None:
    done = recalld(tmp_path, *given)
    assert done.returncode == 64
    assert done.stdout == ""
    assert done.stderr.startswith("recalld: ") and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_search_imports_neither_the_engine_nor_rich() -> None:
    script = (
        "import sys; from daemon.cli import main; main(['search', 'x', '--socket', '/nowhere/s']);"
        "heavy = {'rich', 'anyio', 'asyncio', 'msgspec', 'structlog', 'store', 'numpy'};"
        "heavy |= {'shutil', 'bz2', 'threading', 'subprocess', 'tempfile', 'datetime', 'logging'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
