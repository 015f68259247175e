"""`recalld bank` and other processes: permissions, locks, daemons that do not answer."""

import http.client
import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from daemon.commands import bank, execution
from daemon.config import Settings
from daemon.memory.bank_administration import Backup, Caretaker, List, Rename, refused
from daemon.memory.verbs import Verb
from store.engine import Engine, Progress
from store.errors import StorageBusy
from store.sqlite.engine import open_engine
from tests.daemon.commands.bank_home import BankHome, seeded, serve
from tests.support.plain_ranking import PlainRanking
from tests.support.processes import PATIENCE, child, environment, link, recalld
from tests.support.wire import initialize, modern, request, settings_for


def bank_request(home: Path, **verb: Any) -> bytes:
    return request(7, "recalld/bank", data=str(home / "data"), do=verb)


def test_a_client_of_a_bridge_cannot_manage_banks(tmp_path: Path) -> None:
    seeded(tmp_path)
    with ExitStack() as stack:
        serve(tmp_path, stack)
        bridge = stack.enter_context(child(tmp_path, "stdio"))
        unopened = bank_request(tmp_path, verb="delete", bank="work")
        bridge.send(unopened)
        assert bridge.line()["error"]["code"] == -32601
        bridge.send(request(8, "recalld/stop"))
        assert bridge.line()["error"]["code"] == -32601
        bridge.send(initialize() + unopened)
        assert bridge.lines(2)[7]["error"]["code"] == -32601
        do = {"verb": "delete", "bank": "work"}
        bridge.send(modern(9, "recalld/bank", data=str(tmp_path / "data"), do=do))
        assert bridge.line()["error"]["code"] == -32601
        listed = json.loads(recalld(tmp_path, "bank", "list", "--json").stdout)
        assert [bank["bank"] for bank in listed["banks"]] == ["work"]


def test_embedded_and_initialized_clients_cannot_manage_banks(tmp_path: Path) -> None:
    seeded(tmp_path)
    with child(tmp_path, "stdio", "--embedded") as embedded:
        embedded.send(bank_request(tmp_path, verb="list"))
        assert embedded.line()["error"]["code"] == -32601
        taken = recalld(tmp_path, "bank", "list")
        assert taken.returncode == 75
        assert "in use by pid" in taken.stderr
    with ExitStack() as stack:
        serve(tmp_path, stack)
        one = stack.enter_context(link(tmp_path))
        one.send(bank_request(tmp_path, verb="list"))
        assert one.line()["result"]["banks"][0]["bank"] == "work"
        one.send(initialize() + bank_request(tmp_path, verb="list"))
        assert one.line()["id"] == 0
        assert one.line()["error"]["code"] == -32601


def test_a_daemon_of_another_data_directory_refuses_the_command(
    stopped_home: BankHome, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with ExitStack() as stack:
        serve(stopped_home.home, stack)
        done = recalld(
            other,
            "bank",
            "delete",
            "work",
            "--yes",
            "--socket",
            f"{stopped_home.home}/run/recalld.sock",
        )
        assert done.returncode == 78
        assert f"serves {stopped_home.home}/data, not {other}/data" in done.stderr
        assert stopped_home.items("work") == 4


def test_banks_cannot_be_managed_over_http(stopped_home: BankHome) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with ExitStack() as stack:
        serve(stopped_home.home, stack, "--bind", f"127.0.0.1:{port}")
        do = {"verb": "delete", "bank": "work"}
        kinds = "application/json, text/event-stream"
        plain = {"Content-Type": "application/json", "Accept": kinds}
        mirrored = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "recalld/bank"}
        for body, headers in (
            (bank_request(stopped_home.home, **do), plain),
            (
                modern(7, "recalld/bank", data=str(stopped_home.home / "data"), do=do),
                plain | mirrored,
            ),
        ):
            web = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            web.request("POST", "/mcp", body.strip(), headers)
            output = json.loads(web.getresponse().read())
            web.close()
            assert output["error"]["code"] == -32601, output
        assert stopped_home.items("work") == 4


def test_the_command_holds_the_start_lock_while_it_works_without_a_daemon(
    stopped_home: BankHome,
) -> None:
    """A client that starts a daemon meanwhile waits for the lock, and so does a second command."""
    with (stopped_home.home / "config.toml").open("a") as file:
        file.write("[daemon]\nstart_seconds = 0.2\n")
    settings = settings_for(stopped_home.home)
    seen: list[str] = []

    def work(given: Settings, asked: dict[str, Any], _progress: object) -> dict[str, Any]:
        seen.append(given.start_lock.read_text())
        with child(stopped_home.home, "stdio") as bridge:
            assert bridge.wait() == 69
            seen.append(bridge.errors())
        code, why = stopped_home.refused("backup", "work")
        assert code == 75
        seen.append(why)
        return {"bank": asked["bank"]}

    chosen = SimpleNamespace(verb="create", bank="x", quota=None, json=False)
    assert bank.run(chosen, settings, work) == 0
    note = f"pid {os.getpid()} (recalld bank create) has the data directory"
    assert seen == [note] + [f"recalld: {note}; try again\n"] * 2


async def test_a_second_command_on_a_busy_bank_names_the_running_one(tmp_path: Path) -> None:
    begun, end = anyio.Event(), anyio.Event()

    class Slow(Verb, frozen=True, kw_only=True):
        async def run(self, engine: Engine, progress: Progress) -> dict[str, Any]:
            begun.set()
            await end.wait()
            return {}

    def count(_done: int, _total: int) -> None:
        """Ignore the progress."""

    async with open_engine(tmp_path, ranking=PlainRanking) as engine:
        caretaker = Caretaker(engine)
        for name in ("work", "play"):
            await engine.create_bank(name)
        async with anyio.create_task_group() as group:
            group.start_soon(caretaker.perform, Slow(bank="work"), count)
            await begun.wait()
            with pytest.raises(StorageBusy) as caught:
                await caretaker.perform(Backup(bank="work"), count)
            with pytest.raises(StorageBusy):
                await caretaker.perform(Rename(bank="play", new="work"), count)
            exit = refused(caught.value, Backup(bank="work"))
            assert exit.code == 75
            assert exit.message == (
                "bank 'work' is busy: `slow` is under way; try again when it is done"
            )
            assert (await caretaker.perform(Backup(bank="play"), count))["bank"] == "play"
            assert len((await caretaker.perform(List(), count))["banks"]) == 2
            end.set()
        assert (await caretaker.perform(Backup(bank="work"), count))["bank"] == "work"


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (b"", 69, "it ended before it was done"),
        (b"nonsense\n", 69, "does not answer"),
        (b'{"id":1,"error":{"code":-32601,"message":"Method not found"}}\n', 69, "older than this"),
        (b'{"id":null,"error":{"code":-32001,"message":"Too many"}}\n', 69, "refused: Too many"),
        (
            b'{"id":1,"error":{"code":-32603,"message":"oh","data":{"errorId":"1"}}}\n',
            70,
            "refused: oh",
        ),
    ],
)
def test_a_daemon_that_does_not_execute_the_command_is_an_error(
    stopped_home: BankHome, answer: bytes, code: int, words: str
) -> None:
    path = stopped_home.home / "run" / "recalld.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def daemon() -> None:
            link, _ = listener.accept()
            with link:
                assert b"recalld/bank" in link.recv(65_536)
                link.sendall(answer)

        with ThreadPoolExecutor(1) as thread:
            answering = thread.submit(daemon)
            got, why = stopped_home.refused("backup", "work")
            answering.result(PATIENCE)
    assert (got, words in why) == (code, True), why


def test_a_slow_command_continues_while_pings_are_answered() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        messages = execution.frames(ours, ping=0.02, silence=5)

        def daemon() -> None:
            with theirs.makefile("rb") as pings:
                for _ in range(3):
                    assert json.loads(pings.readline())["method"] == "ping"
                    theirs.sendall(b'{"id":"ping","result":{}}\n')
            theirs.sendall(b'{"id":1,"result":{"bank":"work"}}\n')

        with ThreadPoolExecutor(1) as thread:
            answering = thread.submit(daemon)
            heard = [next(messages)["id"] for _ in range(4)]
            answering.result()
        assert heard == ["ping", "ping", "ping", 1]
        with pytest.raises(TimeoutError, match="nothing in 0"):
            next(execution.frames(ours, ping=0.01, silence=0.05))


def test_a_command_for_a_running_daemon_does_not_import_the_engine(stopped_home: BankHome) -> None:
    """Importing the engine takes long and is only necessary without a daemon."""
    with ExitStack() as stack:
        serve(stopped_home.home, stack)
        script = (
            "import sys; from daemon.cli import main; code = main(['bank', 'list']);"
            " heavy = {'anyio', 'msgspec', 'store', 'structlog'} & set(sys.modules);"
            " print(code, sorted(heavy))"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", script],
            env=environment(stopped_home.home),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "0 []"


def test_other_commands_do_not_import_the_bank_command(tmp_path: Path) -> None:
    script = (
        "import sys; from daemon.cli import main; main(['status']);"
        " print([name for name in sys.modules if 'bank' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "[]\n"
