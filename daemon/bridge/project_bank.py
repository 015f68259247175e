"""The bank of a project directory (`--bank auto`).

A project is a git repository, identified by its *common* directory: all worktrees of a repository
share one bank, and two repositories with the same name have different banks. Outside a repository
the directory itself is the project. The bank is named

    <name>@<16 hex digits>      recalld@3f9a2c41d07be512

where the name is the folder of the repository and the digits are the BLAKE2b hash of the real path
of the common directory, which makes the bank name unique. A repository that is moved gets a new
bank. Standard library only: a bridge computes this in its working directory while a client waits.
"""

import os
from pathlib import Path
from typing import Final

NAME_LIMIT: Final = 64


def bank_of(directory: Path) -> str:
    """Return the bank of the project that contains this directory."""
    import hashlib  # imported late: it doubles a bridge's start-up time

    common = common_directory(directory) or directory.resolve()
    digest = hashlib.blake2b(os.fsencode(common), digest_size=8).hexdigest()
    folder = common.parent if common.name == ".git" else common
    name = os.fsencode(folder.name.removesuffix(".git")).decode(errors="replace")
    printable = "".join(char if char.isprintable() else "_" for char in name)
    return f"{printable[:NAME_LIMIT] or 'root'}@{digest}"


def common_directory(directory: Path) -> Path | None:
    """Return the path that `git rev-parse --git-common-dir` prints; None outside a repository."""
    here = directory.resolve()
    for place in (here, *here.parents):
        found = _git_directory(place)
        if found is not None:
            return _shared(found)
    return None


def _git_directory(place: Path) -> Path | None:
    """Return the git directory of a checkout or bare repository; None if the path is neither."""
    entry = place / ".git"
    if entry.is_dir():
        return entry if _is_repository(entry) else None
    if entry.is_file():
        text = _read(entry)
        if text.startswith("gitdir:"):
            named = (place / text.removeprefix("gitdir:").strip()).resolve()
            return named if (named / "HEAD").is_file() else None
    return place if _is_repository(place) else None


def _is_repository(place: Path) -> bool:
    return (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir()


def _shared(git_directory: Path) -> Path:
    """Return the common directory that the git directory of a worktree names."""
    named = _read(git_directory / "commondir").strip()
    return (git_directory / named).resolve() if named else git_directory.resolve()


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""
