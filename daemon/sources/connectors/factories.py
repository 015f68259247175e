"""The connector of each kind of source, imported when it is first used."""

from collections.abc import Mapping
from pathlib import Path

from daemon.sources.connectors.connector import Connector, ConnectorFactory, SourceUnavailable
from daemon.sources.definition import Definition


class Connectors:
    """Opens connectors. `more` adds kinds that other packages implement: `script`."""

    def __init__(self, cache: Path, more: Mapping[str, ConnectorFactory] | None = None) -> None:
        self._cache = cache
        self._more = dict(more or {})

    async def open(self, definition: Definition) -> Connector:
        factory = self._more.get(definition.kind)
        if factory is not None:
            return await factory(definition)
        match definition.kind:
            case "filesystem":
                from daemon.sources.connectors.filesystem import open_folder

                return await open_folder(definition)
            case "git":
                from daemon.sources.connectors.git import open_repository

                return await open_repository(definition, self._cache)
            case "s3":
                from daemon.sources.connectors.s3 import open_bucket

                return await open_bucket(definition)
            case _:
                raise SourceUnavailable(
                    f"sources of kind {definition.kind} are not available in this installation"
                )
