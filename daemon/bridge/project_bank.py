"""Which bank a directory's work belongs to (`--bank auto`).

A project is a git repository, known by its *common* directory: all worktrees of a repository share
one bank, two repositories that happen to have the same name do not. Outside a repository the
directory itself is the project. The bank is called

    <name>@<16 hex digits>      recalld@3f9a2c41d07be512

where the name is the repository's folder, for people to recognise, and the digits are BLAKE2b of
the real path of the common directory, which makes it the only one. A repository that moves gets a
new bank. Standard library only: a bridge computes this in its own
working directory while a client waits.
"""

import os
from pathlib import Path
from typing import Final

NAME_LIMIT: Final = 64


def bank_of(directory: Path) -> str:
    """The bank of the project that this directory is part of."""
    import hashlib  # half of a bridge's start-up time when nobody asked for `auto`

    common = common_directory(directory) or directory.resolve()
    digest = hashlib.blake2b(os.fsencode(common), digest_size=8).hexdigest()
    folder = common.parent if common.name == ".git" else common
    name = os.fsencode(folder.name.removesuffix(".git")).decode(errors="replace")
    printable = "".join(sign if sign.isprintable() else "_" for sign in name)
    return f"{printable[:NAME_LIMIT] or 'root'}@{digest}"


def common_directory(directory: Path) -> Path | None:
    """What `git rev-parse --git-common-dir` says, without git; None outside a repository."""
    here = directory.resolve()
    for place in (here, *here.parents):
        found = _git_directory(place)
        if found is not None:
            return _shared(found)
    return None


def _git_directory(place: Path) -> Path | None:
    """The git directory that a checkout's `.git` is or names, or the place if it is bare."""
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
    """A worktree's git directory names the one it shares with its repository."""
    named = _read(git_directory / "commondir").strip()
    return (git_directory / named).resolve() if named else git_directory.resolve()


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""
