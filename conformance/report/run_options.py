"""The circumstances of a run for its reports: version, date, and the line that repeats a case."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from conformance import __version__

SECRET = ("--token", "--other-token", "--header", "--env")
REPORTS = ("--json", "--junit", "--html", "--markdown", "--badge", "--write-known-failures")
CASES = ("--only", "--revision", "--level")


@dataclass(frozen=True)
class RunOptions:
    """The command line of a run, and its date."""

    words: tuple[str, ...]
    version: str
    date: str

    @classmethod
    def of(cls, words: Sequence[str]) -> RunOptions:
        return cls(tuple(words), __version__, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    def shown(self) -> str:
        """The command line without secrets."""
        return shlex.join(["mcp-conform", *_without(self.words, (), hide=True)])

    def rerun(self, case: str, revision: str) -> str:
        """The command line that repeats one case in one revision."""
        kept = _without(self.words, (*REPORTS, *CASES, "--known-failures"), hide=True)
        return shlex.join(["mcp-conform", "--only", case, "--revision", revision, "-v", *kept])


def _without(words: Sequence[str], dropped: Sequence[str], *, hide: bool) -> list[str]:
    """The words of the command line without some options, and with secrets hidden."""
    kept: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            return [*kept, word, *waiting]
        name, equals, value = word.partition("=")
        if name in dropped:
            if not equals:
                next(waiting, None)
        elif hide and name in SECRET:
            value = value if equals else next(waiting, "")
            kept += [name, _hidden(name, value)]
        else:
            kept.append(word)
    return kept


def _hidden(option: str, value: str) -> str:
    if option == "--env":
        name, _, content = value.partition("=")
        return value if "{tmpdir}" in content else f"{name}=..."
    return f"{value.partition(':')[0]}: ..." if option == "--header" else "..."
