"""An HTTP server with all dialects over a real engine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from daemon.api.registry import build as build_api
from daemon.surfaces import DialectSurfaces
from daemon.tools.toolkit import Toolkit
from daemon.transports.http.edge.messages import Pace
from store.clock import wall_clock
from store.sqlite.engine import open_engine
from tests.support.plain_ranking import PlainRanking
from tests.support.web import Web, running_web
from tests.support.wire import settings_for


@asynccontextmanager
async def remembering_web(
    home: Path, *, api_key: str = "", pace: Pace | None = None, **flags: Any
) -> AsyncGenerator[tuple[Web, Toolkit]]:
    """Serve all dialects and the REST API over HTTP from an engine in `home`."""
    settings = settings_for(home, **flags)
    async with open_engine(home / "engine", ranking=PlainRanking) as engine:
        toolkit = Toolkit(engine=engine, now=wall_clock, api_key=api_key)
        surface = DialectSurfaces(settings, toolkit)()
        api = build_api(toolkit)
        async with running_web(home, surface=surface, api=api, pace=pace, **flags) as web:
            yield web, toolkit
