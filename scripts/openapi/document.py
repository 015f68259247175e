"""Print the OpenAPI document of a daemon with all dialects, without starting one."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


def openapi() -> bytes:
    """The document; nothing in it depends on stored data."""
    from daemon.api import preview
    from daemon.api.administration import sources, system
    from daemon.api.registry import build
    from daemon.config.loading import load
    from daemon.setup import overview as clients
    from daemon.surfaces import DialectSurfaces
    from daemon.tools.toolkit import Toolkit
    from daemon.transports.http.rest.openapi import document
    from daemon.transports.http.rest.routes import BARE

    nothing = cast("Any", None)
    toolkit = Toolkit(engine=nothing, now=lambda: 0)
    api = build(toolkit)
    api.add(
        [
            *system.operations(nothing),
            *sources.operations(nothing),
            *preview.operations(nothing),
            *clients.operations(nothing),
        ]
    )
    with TemporaryDirectory() as home:
        settings = load({}, {"RECALLD_HOME": home})
        surface = DialectSurfaces(settings, toolkit)()
    return document(surface, BARE, api.listed, has_mcp=True)


if __name__ == "__main__":
    sys.stdout.buffer.write(openapi() + b"\n")
