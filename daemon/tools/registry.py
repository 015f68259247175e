"""Registry: the tools that one connection sees, in a fixed order."""

from collections.abc import Iterable
from typing import Final

import msgspec

from daemon.tools.answer_size import ANSWER_BYTES
from daemon.tools.bound_tool import BoundTool
from daemon.tools.dialect import PLAIN, Dialect
from daemon.tools.specification import ToolSpec
from protocol.revisions import Revision
from protocol.shape import shape_tools

_encoder: Final = msgspec.json.Encoder()


class Registry:
    """Tools by name and alias.

    A listed name takes precedence over an alias: an alias equal to a listed name is not answered.
    """

    def __init__(
        self,
        specs: Iterable[ToolSpec] = (),
        dialect: Dialect = PLAIN,
        *,
        answer_bytes: int = ANSWER_BYTES,
    ) -> None:
        self._answer_bytes = answer_bytes
        self._tools: dict[str, BoundTool] = {}
        self._aliases: dict[str, BoundTool] = {}
        self._listed: list[ToolSpec] = []
        self._listings: dict[str, bytes] = {}
        for spec in specs:
            self.add(spec, dialect)

    def __len__(self) -> int:
        return len(self._listed)

    def add(self, spec: ToolSpec, dialect: Dialect = PLAIN) -> None:
        bound = BoundTool(spec, dialect, self._answer_bytes)
        if spec.name in self._tools or any(alias in self._aliases for alias in spec.aliases):
            raise ValueError(f"two tools are called {spec.name}, or go by the same alias")
        self._tools[spec.name] = bound
        self._aliases.update(dict.fromkeys(spec.aliases, bound))
        self._listed.append(spec)
        self._listings.clear()

    def remove(self, name: str) -> None:
        bound = self._tools.pop(name)
        self._listed.remove(bound.spec)
        for alias in bound.spec.aliases:
            del self._aliases[alias]
        self._listings.clear()

    def find(self, name: str) -> BoundTool | None:
        return self._tools.get(name) or self._aliases.get(name)

    @property
    def has_tasks(self) -> bool:
        """Whether calls of a tool can go on as tasks."""
        return any(spec.task_after is not None for spec in self._listed)

    def names(self) -> frozenset[str]:
        """All names and aliases."""
        return frozenset(self._tools) | frozenset(self._aliases)

    def specs(self) -> list[ToolSpec]:
        """The tools in the order of `tools/list`."""
        return list(self._listed)

    def listing(self, revision: Revision) -> bytes:
        """The body of `tools/list`, encoded once per revision."""
        found = self._listings.get(revision.date)
        if found is None:
            tools = shape_tools([spec.describe() for spec in self._listed], revision)
            found = _encoder.encode({"tools": tools})
            self._listings[revision.date] = found
        return found

    def retry_safe(self) -> list[str]:
        """Names of the tools that a client may call again after an answer was lost."""
        return [
            name
            for name, bound in {**self._aliases, **self._tools}.items()
            if bound.spec.is_retry_safe
        ]
