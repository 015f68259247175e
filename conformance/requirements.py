"""The requirements (`requirements.toml`) and the clauses that they follow (`clauses.toml`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from conformance import revisions

Level = Literal["MUST", "SHOULD", "ours"]

SPECIFICATION = "https://modelcontextprotocol.io/specification"


@dataclass(frozen=True)
class Clause:
    """A quotation of the specification, and the place where it stands."""

    id: str
    revisions: tuple[str, ...]
    at: str
    quote: str

    def link(self, revision: str) -> str:
        """The address of the clause in a revision."""
        return self.at if "://" in self.at else f"{SPECIFICATION}/{revision}/{self.at}"


@dataclass(frozen=True)
class Requirement:
    """One row of `requirements.toml`."""

    id: str
    text: str
    level: Level
    """The strictest level in any revision."""
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    clause_ids: tuple[str, ...] = ()
    levels: dict[str, Level] = field(default_factory=dict)
    """The level in single revisions, where it differs."""
    once: str = ""
    """Limits the trials to one in a run or an era; see the head of requirements.toml."""

    @property
    def group(self) -> str:
        return self.id[0]

    def level_in(self, revision: str) -> Level:
        """The level in one revision."""
        return self.levels.get(revision, self.level)

    def clauses(self, revision: str) -> list[Clause]:
        """The clauses of one revision."""
        found = [clause for name in self.clause_ids for clause in clauses()[name]]
        return [clause for clause in found if revision in clause.revisions]

    @property
    def source(self) -> str:
        """The pages of the newest revision that has a clause, in short."""
        for revision in reversed(self.revisions):
            if found := self.clauses(revision):
                return "; ".join(clause.at.rpartition("://")[2] for clause in found)
        return "no clause"


def _table(name: str) -> dict[str, Any]:
    text = resources.files("conformance").joinpath(name).read_text("utf-8")
    return tomllib.loads(text)


@cache
def clauses() -> dict[str, tuple[Clause, ...]]:
    """Every clause by its id: one entry for each wording."""
    return {
        name: tuple(
            Clause(name, revisions.expand(row["revisions"]), row["at"], row["quote"])
            for row in rows
        )
        for name, rows in _table("clauses.toml").items()
    }


@cache
def requirements() -> dict[str, Requirement]:
    """Every requirement on servers, in the order of the file."""
    return _read("requirements.toml")


@cache
def client_requirements() -> dict[str, Requirement]:
    """Every requirement on clients, in the order of the file."""
    return _read("client_requirements.toml")


def _read(file: str) -> dict[str, Requirement]:
    return {
        name: Requirement(
            id=name,
            text=row["requirement"],
            level=row["level"],
            revisions=revisions.expand(row["revisions"]),
            transports=tuple(row["transports"]),
            clause_ids=tuple(row["clauses"]),
            levels={
                revision: level
                for names, level in row.get("levels", {}).items()
                for revision in revisions.expand([names])
            },
            once=row.get("once", ""),
        )
        for name, row in _table(file).items()
        if name != "groups"
    }


@cache
def group_titles() -> dict[str, str]:
    """The title of each group of cases, by its letter."""
    titles: dict[str, str] = _table("requirements.toml")["groups"]
    return titles
