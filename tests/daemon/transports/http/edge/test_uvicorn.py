"""The parts of uvicorn that `HttpConnection` relies on, although uvicorn does not document them."""

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from daemon.transports.http.edge import connection
from daemon.transports.http.edge.connection import (
    CONNECTION_ATTRIBUTES,
    CYCLE_ATTRIBUTES,
    UVICORN_MEMBERS,
    ConnectionState,
    HttpConnection,
)
from daemon.transports.http.edge.messages import Pace

pytestmark = pytest.mark.anyio


async def application(_scope: Any, _receive: Any, _send: Any) -> None: ...


async def test_a_connection_has_the_attributes_that_we_use() -> None:
    config = Config(application, http=HttpConnection, ws="none", lifespan="off", log_config=None)
    made = HttpConnection(config, ConnectionState(1, Pace()))
    missing = [name for name in CONNECTION_ATTRIBUTES if not hasattr(made, name)]
    assert not missing
    for owner, names in UVICORN_MEMBERS.items():
        assert [name for name in names if not callable(getattr(owner, name, None))] == []


async def test_a_cycle_has_the_attributes_that_we_use() -> None:
    parameters = inspect.signature(RequestResponseCycle).parameters
    arguments: dict[str, Any] = dict.fromkeys(parameters)
    cycle = RequestResponseCycle(**{**arguments, "message_event": asyncio.Event()})
    assert [name for name in CYCLE_ATTRIBUTES if not hasattr(cycle, name)] == []


def test_no_private_member_of_uvicorn_is_used() -> None:
    private = {name for name in vars(HttpToolsProtocol) if name.startswith("_")}
    private |= {name for name in vars(RequestResponseCycle) if name.startswith("_")}
    tree = ast.parse(Path(connection.__file__).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert (used | defined) & private <= {"__init__", "__module__"}
