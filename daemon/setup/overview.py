"""The clients for the web UI: the files and the entry of each, and a test of the connection.

Nothing is written here. `recalld setup` writes; the page shows the file, its state and the entry.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import anyio.to_thread
from msgspec import Struct

from daemon.api.operation import Operation
from daemon.exit_codes import Exit
from daemon.setup import executable
from daemon.setup.clients import BY_NAME, CLIENTS, Client, Places, Server
from daemon.setup.entry_part import plan_entry
from daemon.setup.handshake import prove
from daemon.setup.ledger import Ledger
from daemon.setup.plan import Editor, Status
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import NoArguments, ToolSpec
from store.errors import NotFound

TAG: Final = "setup"
#: The state of a client's file in words.
_STATES: Final[Mapping[Status, str]] = {
    "current": "has the entry",
    "add": "the entry is missing",
    "update": "has an older entry of recalld",
    "conflict": "has another entry",
    "refused": "cannot be read",
    "failed": "cannot be read",
}


class ClientFile(Struct, frozen=True, kw_only=True):
    """A file of a client, and the state of our entry in it."""

    path: str
    state: str
    detail: str


class ClientSetup(Struct, frozen=True, kw_only=True):
    """A client: its files, and the text of the entry that connects it."""

    name: str
    title: str
    is_installed: bool
    is_connected: bool
    files: list[ClientFile]
    entry: str
    note: str


class ClientSetups(Struct, frozen=True, kw_only=True):
    clients: list[ClientSetup]


class ConnectionTest(Struct, frozen=True, kw_only=True):
    """The result of starting an entry as the client would; `fault` is empty after a success."""

    seconds: float
    tools: int
    fault: str


class ClientArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client: str


class Overview:
    """The clients as seen from this daemon; `state` is the folder of the ledger."""

    def __init__(self, state: Path, places: Places | None = None) -> None:
        self._ledger = state / "setup.json"
        self._places = places or Places(
            home=Path.home(), project=Path.home(), variables=os.environ, platform=sys.platform
        )

    def clients(self) -> ClientSetups:
        server, fault = self._server()
        ledger = Ledger(self._ledger)
        return ClientSetups(
            clients=[self._client(client, server, fault, ledger) for client in CLIENTS]
        )

    def test(self, name: str) -> ConnectionTest:
        """Start the entry that `recalld setup` writes, and list its tools."""
        client = BY_NAME.get(name)
        if client is None:
            raise NotFound("client", name)
        server, fault = self._server()
        if fault:
            return ConnectionTest(seconds=0.0, tools=0, fault=fault)
        proof = prove(_entry(client, server), self._places.variables, self._places.home)
        return ConnectionTest(seconds=round(proof.seconds, 3), tools=proof.tools, fault=proof.fault)

    def _server(self) -> tuple[Server, str]:
        """How a client starts recalld; a fault if this installation has no command."""
        variables = self._places.variables
        try:
            command, fault = executable.own_command(variables=variables), ""
        except Exit as exit:
            command, fault = "recalld", exit.message
        env = executable.carried_variables(variables)
        return Server(command=command, args=("stdio",), env=env), fault

    def _client(self, client: Client, server: Server, fault: str, ledger: Ledger) -> ClientSetup:
        entry = _entry(client, server)
        files: list[ClientFile] = []
        is_connected = False
        for path in client.files("user", self._places):
            plan = plan_entry(client, path, entry, ledger, force=False)
            is_connected = is_connected or plan.status == "current"
            state = _STATES.get(plan.status, plan.status)
            # The detail of a conflict quotes the entry, which may contain secrets of its owner.
            detail = "" if plan.status == "conflict" else plan.detail
            files.append(ClientFile(path=str(path), state=state, detail=detail))
        return ClientSetup(
            name=client.name,
            title=client.title,
            is_installed=self._is_installed(client),
            is_connected=is_connected,
            files=files,
            entry=_text(client, entry),
            note="; ".join(each for each in (client.note, fault) if each),
        )

    def _is_installed(self, client: Client) -> bool:
        if any(path.exists() for path in client.traces(self._places)):
            return True
        path = self._places.variables.get("PATH")
        return any(shutil.which(name, path=path) for name in client.commands)


def _entry(client: Client, server: Server) -> dict[str, Any]:
    return cast("dict[str, Any]", client.entry(server, "user"))  # a command suits every client


def _text(client: Client, entry: dict[str, Any]) -> str:
    """The entry inside an otherwise empty file, as a person would paste it."""
    return Editor(client.format).put(client.skeleton, client.key, entry).strip()


async def list_client_setups(
    overview: Overview, _arguments: NoArguments, _context: Context
) -> ClientSetups:
    return await anyio.to_thread.run_sync(overview.clients)


async def test_client_setup(
    overview: Overview, arguments: ClientArguments, _context: Context
) -> ConnectionTest:
    if not arguments.client:
        raise ArgumentsRefused("client: must not be empty")
    return await anyio.to_thread.run_sync(overview.test, arguments.client)


def operations(overview: Overview) -> list[Operation]:
    return [
        Operation(
            verb="GET",
            path="/setup",
            tag=TAG,
            for_owner=True,
            spec=ToolSpec(
                name="list_client_setups",
                description="The MCP clients, their files and the entry that connects each.",
                run=partial(list_client_setups, overview),
                output=ClientSetups,
                read_only=True,
            ),
        ),
        Operation(
            verb="POST",
            path="/setup/{client}/test",
            tag=TAG,
            for_owner=True,
            spec=ToolSpec(
                name="test_client_setup",
                description="Start the entry of a client and list its tools.",
                arguments=ClientArguments,
                run=partial(test_client_setup, overview),
                output=ConnectionTest,
                read_only=True,
            ),
        ),
    ]
