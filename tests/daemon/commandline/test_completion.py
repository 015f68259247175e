"""Tab completion offers every command, verb and option, in the syntax of each shell."""

import shutil
import subprocess

import pytest

from daemon.commandline.completion import SHELLS, command_words, script
from daemon.commandline.table import COMMANDS


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command_and_their_options(shell: str) -> None:
    text = "\n".join(script(shell))
    for command in COMMANDS:
        assert command.name in text
    for word in ("export", "explain", "follow", "embedded"):
        assert word in text
    assert "spawned" not in text, "hidden options are not offered"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_valid_in_its_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-n"], input="\n".join(script(shell)), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def completed(*words: str) -> list[str]:
    """The completions that bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    program = [
        *script("bash"),
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}",
        "_recalld",
        'echo "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(program)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_bash_completes_commands_verbs_and_options() -> None:
    assert completed("recalld", "sea") == ["search"]
    assert completed("recalld", "bank", "exp") == ["export"]
    assert completed("recalld", "search", "--ex") == ["--explain"]


def test_the_words_of_a_command_have_their_purpose() -> None:
    words = command_words()
    assert words["bank"].verbs["export"]
    assert words["search"].options["--explain"] == "show why each result matched"
