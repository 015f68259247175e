"""Lets the user edit a text in the editor of their choice.

The text is in a private temporary file. The file is kept if the change could not be stored, so that
no work is lost.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from daemon.exit_codes import CANNOT_CREATE, UNAVAILABLE, USAGE, Exit


class Draft:
    """The edited text. Without `is_saved`, the file outlives the command."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_saved = False


@contextmanager
def edited(text: str, environment: Mapping[str, str] = os.environ) -> Generator[Draft]:
    """Open an editor with the text; the draft is what the user saved."""
    command = editor_command(environment)
    descriptor, name = tempfile.mkstemp(prefix="recalld-", suffix=".txt")
    path = Path(name)
    draft = Draft(text)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else f"{text}\n")
        _run([*command, name])
        draft.text = _read(path, text)
        if not draft.text.strip():
            raise Exit(USAGE, "the text is empty; nothing was changed")
        yield draft
    finally:
        if draft.is_saved or draft.text == text or not draft.text.strip():
            path.unlink(missing_ok=True)
        else:
            sys.stderr.write(f"recalld: your text is kept in {path}\n")


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """The words of $VISUAL or $EDITOR; vi if neither is set."""
    for variable in ("VISUAL", "EDITOR"):
        if environment.get(variable, "").strip():
            try:
                return shlex.split(environment[variable])
            except ValueError as error:
                raise Exit(USAGE, f"{variable}: {error}") from None
    return ["vi"]


def _run(command: list[str]) -> None:
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise Exit(
            UNAVAILABLE,
            f"the editor {command[0]!r} cannot be started: {error.strerror}; set EDITOR",
        ) from None
    if code:
        raise Exit(UNAVAILABLE, f"the editor {command[0]!r} ended with {code}; nothing was changed")


def _read(path: Path, before: str) -> str:
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Exit(USAGE, f"{path}: is not UTF-8 text; nothing was changed") from None
    # Editors end a file with a line break; the memory has one only if it had one before.
    return text if before.endswith("\n") else text.rstrip("\n")
