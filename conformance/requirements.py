"""The requirements: the rows of `requirements.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from conformance import revisions

Level = Literal["MUST", "SHOULD", "ours"]


@dataclass(frozen=True)
class Requirement:
    """One row of `requirements.toml`."""

    id: str
    text: str
    source: str
    level: Level
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    once: str = ""
    """Limits the trials to one in a run or an era; see the head of requirements.toml."""

    @property
    def group(self) -> str:
        return self.id[0]


def _tables() -> dict[str, Any]:
    text = resources.files("conformance").joinpath("requirements.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def requirements() -> dict[str, Requirement]:
    """Every requirement, in the order of the file."""
    return {
        name: Requirement(
            id=name,
            text=row["requirement"],
            source=row["source"],
            level=row["level"],
            revisions=revisions.expand(row["revisions"]),
            transports=tuple(row["transports"]),
            once=row.get("once", ""),
        )
        for name, row in _tables().items()
        if name != "groups"
    }


@cache
def group_titles() -> dict[str, str]:
    """The title of each group of cases, by its letter."""
    titles: dict[str, str] = _tables()["groups"]
    return titles
