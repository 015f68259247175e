"""`recalld bank`: every verb with a daemon and without one, and what it says when it refuses."""

import http.client
import json
import os
import pty
import shlex
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from daemon.commands import bank
from daemon.config import Settings
from daemon.memory.bank_administration import Backup, Caretaker, List, Rename, Verb, refused
from store.engine import Engine, Progress
from store.errors import StorageBusy
from store.model import NewDocument, NewMemory
from store.sqlite.engine import open_engine
from tests.support.plain_ranking import PlainRanking
from tests.support.processes import PATIENCE, RECALLD, child, environment, link, recalld
from tests.support.wire import initialize, modern, request, settings_for

Ran = subprocess.CompletedProcess[str]

SECRET = "xylophone-quarantine-4711"


def seeded(home: Path) -> list[str]:
    """A bank `work` with three memories and a document; the ids of the memories."""
    (home / "config.toml").write_text("[embedding]\nhashed = true\n")

    async def fill() -> list[str]:
        async with open_engine(home / "data", ranking=PlainRanking) as engine:
            texts = (f"the code word is {SECRET}", "Ana prefers tabs", "Bo deploys on Fridays")
            put = [await engine.put("work", NewMemory(text=text)) for text in texts]
            await engine.upsert_document(
                "work", NewDocument(source="wiki", source_id="1", title="Notes", body="A long tale")
            )
            return [each.id for each in put]

    return anyio.run(fill)


def serve(home: Path, stack: ExitStack, *flags: str) -> None:
    started = stack.enter_context(child(home, "serve", *(flags or ["--no-http"])))
    deadline = time.monotonic() + PATIENCE
    while recalld(home, "health").returncode == 2:
        assert started.process.poll() is None, started.errors()
        assert time.monotonic() < deadline


class Place:
    """A data directory with something in it, and the command."""

    def __init__(self, home: Path, cwd: Path, ids: list[str]) -> None:
        self.home = home
        self.cwd = cwd
        self.ids = ids

    def run(self, *arguments: str) -> Ran:
        return recalld(self.home, "bank", *arguments, cwd=self.cwd, stdin=subprocess.DEVNULL)

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, *arguments: str) -> tuple[int, str]:
        """The code and the one line."""
        done = self.run(*arguments)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("recalld: ")
        return done.returncode, done.stderr

    def items(self, bank: str) -> int | None:
        found = {each["bank"]: each["items"] for each in self.json("list")["banks"]}
        return found.get(bank)

    def holds(self, text: str) -> bool:
        """Whether any file under the data directory has these bytes."""
        files = [path for path in (self.home / "data").rglob("*") if path.is_file()]
        assert files
        return any(text.encode() in path.read_bytes() for path in files)


@contextmanager
def placed(root: Path, *, is_served: bool) -> Generator[Place]:
    home, cwd = root / "home", root / "desk"
    home.mkdir()
    cwd.mkdir()
    ids = seeded(home)
    with ExitStack() as stack:
        if is_served:
            serve(home, stack)
        yield Place(home, cwd, ids)


@pytest.fixture(params=["daemon", "alone"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Place]:
    with placed(tmp_path, is_served=request.param == "daemon") as made:
        yield made


@pytest.fixture(scope="module", params=["daemon", "alone"])
def standing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Place]:
    """One place for all that must not change it."""
    root = tmp_path_factory.mktemp("standing")
    with placed(root, is_served=request.param == "daemon") as made:
        (made.cwd / "taken").write_text("precious")
        (made.cwd / "cut").write_text('{"format": "recalld-bank", "version": 1, "bank": "x"}\n')
        yield made


@pytest.fixture
def alone(tmp_path: Path) -> Place:
    return Place(tmp_path, tmp_path, seeded(tmp_path))


def test_banks_are_made_listed_bounded_renamed_and_deleted(place: Place) -> None:
    assert place.ok("create", "play") == "play: created\n"
    assert place.ok("quota", "play", "2097152") == "play: quota 2.0 MiB\n"
    assert place.ok("rename", "play", "fun") == "play: is called fun now\n"
    head, fun, work = place.ok("list").splitlines()
    assert head.split() == ["BANK", "ITEMS", "SIZE", "QUOTA", "CREATED"]
    assert fun.split()[:2] == ["fun", "0"]
    assert "2.0 MiB" in fun
    assert work.split()[:2] == ["work", "4"]
    assert place.json("quota", "fun", "none")["quotaBytes"] is None
    assert place.ok("delete", "fun", "--yes") == "fun: deleted, with its backups\n"
    (only,) = place.json("list")["banks"]
    assert (only["bank"], only["items"], only["quotaBytes"]) == ("work", 4, None)
    assert only["bytes"] > 0
    assert only["created"].endswith("Z")


def test_what_is_exported_and_imported_elsewhere_is_the_same_to_the_byte(place: Place) -> None:
    assert place.ok("export", "work", "out.jsonl") == (
        f"work: 5 records in {place.cwd}/out.jsonl\n"
    )
    written = place.cwd / "out.jsonl"
    assert written.stat().st_mode & 0o777 == 0o600
    assert place.json("import", "other", "out.jsonl")["created"] == 5
    assert place.json("import", "other", "out.jsonl")["known"] == 5
    assert place.items("other") == place.items("work") == 4
    place.ok("export", "other", "again.jsonl")
    lines, again = (
        (place.cwd / name).read_bytes().splitlines()[1:-1] for name in ("out.jsonl", "again.jsonl")
    )
    assert lines == again


def test_a_restored_backup_undoes_what_came_after_and_can_itself_be_undone(place: Place) -> None:
    made = place.json("backup", "work")
    assert made["items"] == 4
    forgotten = place.json("forget", "work", place.ids[1])
    assert (forgotten["items"], place.items("work")) == (1, 3)
    restored = place.json("restore", "work", made["backup"])
    assert place.items("work") == 4
    listed = place.ok("backups", "work").splitlines()
    assert [line.split()[0] for line in listed] == ["BACKUP", restored["replaced"], made["backup"]]
    place.ok("restore", "work", restored["replaced"])
    assert place.items("work") == 3


def test_what_was_forgotten_can_be_brought_back(place: Place) -> None:
    said = place.ok("forget", "work", *place.ids[:2])
    assert said.startswith("work: 2 items forgotten; until ")
    command = said.partition("`")[2].partition("`")[0]
    assert place.items("work") == 2
    assert place.ok(*command.split()[2:]) == "work: 2 items brought back\n"
    assert place.items("work") == 4
    code, why = place.refused(*command.split()[2:])
    assert code == 64
    assert "undo window" in why


def test_erasing_leaves_no_byte_behind(place: Place) -> None:
    place.ok("backup", "work")
    assert place.holds(SECRET)
    code, why = place.refused("erase", "work", place.ids[0])
    assert code == 64
    assert "--yes" in why
    assert place.holds(SECRET)
    done = place.json("erase", "work", place.ids[0], "--yes")
    assert (done["items"], done["documents"]) == (1, 0)
    assert done["copiesRemoved"] >= 1
    assert not place.holds(SECRET)
    assert not place.json("backups", "work")["backups"]
    assert place.items("work") == 3
    code, why = place.refused("erase", "work", place.ids[0], place.ids[1], "--yes")
    assert code == 64
    assert place.ids[0] in why
    assert place.items("work") == 3


def test_a_whole_document_is_erased_by_its_id(place: Place) -> None:
    place.ok("export", "work", "out.jsonl")
    records = [json.loads(line) for line in (place.cwd / "out.jsonl").read_text().splitlines()]
    (document,) = [each["public_id"] for each in records if each.get("type") == "document"]
    assert place.holds("A long tale")
    said = place.ok("erase", "work", document, "--yes")
    assert said.startswith("work: 1 item and 1 document erased, no copy is left")
    assert not place.holds("A long tale")


def test_a_sound_bank_is_called_sound_and_rebuilt(place: Place) -> None:
    assert place.ok("check", "work") == "work: sound (4 items, 1 document)\n"
    assert place.json("check", "work", "--repair")["problems"] == []
    assert place.json("rebuild", "work")["items"] == 4


def database_of(place: Place) -> Path:
    (path,) = (place.home / "data" / "banks").glob("*/bank.db")
    return path


def test_a_damaged_row_is_reported_with_code_1_and_put_aside_by_repair(alone: Place) -> None:
    with closing(sqlite3.connect(database_of(alone))) as raw, raw:
        raw.execute("UPDATE items SET text = 'forged' WHERE public_id = ?", (alone.ids[1],))
    done = alone.run("check", "work")
    assert (done.returncode, done.stderr) == (1, "")
    first, heads, *rows = done.stdout.splitlines()
    assert first.startswith("work: ")
    assert heads.split() == ["PROBLEM", "PART", "COUNT", "REMEDY"]
    assert any(row.endswith("repair") for row in rows), done.stdout
    assert alone.json("check", "work", "--repair")["problems"] == []
    assert alone.items("work") == 3


def test_a_bank_that_cannot_be_opened_is_listed_with_its_trouble_beside_the_others(
    alone: Place,
) -> None:
    database_of(alone).write_bytes(b"not a database at all" * 1000)
    alone.ok("create", "play")
    play, work = alone.json("list")["banks"]
    assert (play["items"], play["bank"]) == (0, "play")
    assert (work["items"], work["bank"]) == (None, "work")
    assert work["trouble"] in alone.ok("list")
    code, why = alone.refused("check", "work")
    assert code == 73
    assert work["trouble"] in why


def test_an_import_that_outgrows_the_quota_says_so(alone: Place) -> None:
    alone.ok("export", "work", "out.jsonl")
    alone.ok("create", "small", "--quota", "1")
    code, why = alone.refused("import", "small", "out.jsonl")
    assert code == 73
    assert "its quota is 1" in why


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("backup", "nobody"), 64, "no memory bank named 'nobody'; `recalld bank list`"),
        (("backups", "nobody"), 64, "no memory bank named"),
        (("export", "nobody", "out.jsonl"), 64, "no memory bank named"),
        (("erase", "nobody", "mem_1", "--yes"), 64, "no memory bank named"),
        (("delete", "nobody", "--yes"), 64, "no memory bank named"),
        (("delete", "work"), 64, "--yes"),
        (("create", "work"), 64, "exists already"),
        (("rename", "work", "work\n"), 64, "control characters"),
        (("quota", "work", "lots"), 64, "'lots' is not a number of bytes"),
        (("quota", "work", "0"), 64, "from 1 on, or none"),
        (("restore", "work", "../../etc"), 64, "`recalld bank backups work`"),
        (("undo", "work", "undo_1"), 64, "undo window"),
        (("export", "work", "taken"), 64, "taken: exists already; --force replaces it"),
        (("export", "work", "."), 64, "is a directory"),
        (("export", "work", "no/such/place"), 73, "there is no directory"),
        (("export", "work", "/proc/out.jsonl"), 73, "/proc/out.jsonl"),
        (("import", "work", "absent"), 64, "there is no such file"),
        (("import", "work", "taken"), 64, "nothing was imported"),
        (("import", "fresh", "cut"), 64, "is cut"),
        (("polish", "work"), 64, "polish"),
        ((), 64, "VERB"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_changed(
    standing: Place, arguments: tuple[str, ...], code: int, words: str
) -> None:
    got, why = standing.refused(*arguments)
    assert (got, words in why) == (code, True), why
    assert (standing.cwd / "taken").read_text() == "precious"
    assert sorted(path.name for path in standing.cwd.iterdir()) == ["cut", "taken"]


def test_after_all_those_refusals_the_banks_are_as_they_were(standing: Place) -> None:
    assert [(b["bank"], b["items"]) for b in standing.json("list")["banks"]] == [("work", 4)]
    assert standing.json("check", "work")["problems"] == []


def test_force_replaces_a_file_but_never_one_of_recallds_own(place: Place) -> None:
    (place.cwd / "old").write_text("x")
    place.ok("export", "work", "old", "--force")
    assert (place.cwd / "old").read_text().startswith('{"format":"recalld-bank"')
    catalogue = place.home / "data" / "catalogue.db"
    code, why = place.refused("export", "work", str(catalogue), "--force")
    assert code == 64
    assert "recalld's own files" in why
    assert catalogue.read_bytes().startswith(b"SQLite")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_named(alone: Place) -> None:
    closed = alone.home / "closed"
    closed.mkdir(mode=0o500)
    code, why = alone.refused("export", "work", str(closed / "out"))
    assert code == 73
    assert "may not be written" in why


# --- a terminal ------------------------------------------------------------------------------


def at_a_terminal(place: Place, typed: bytes, *arguments: str) -> tuple[int, str, str]:
    """Run with a terminal for input and remarks: the code, stdout, and what the terminal saw."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*RECALLD, "bank", *arguments],
        env=environment(place.home),
        cwd=place.cwd,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        os.write(ours, typed)
        out, _ = process.communicate(timeout=PATIENCE)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65_536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    return process.returncode, out, seen.decode()


def test_at_a_terminal_erase_says_what_it_means_and_asks(alone: Place) -> None:
    code, out, seen = at_a_terminal(alone, b"no\n", "erase", "work", alone.ids[0])
    assert (code, out) == (1, "")
    assert "backups that hold them are deleted whole" in seen
    assert "Erase 1 thing in bank 'work' for good? [y/N]" in seen
    assert "nothing was changed" in seen
    assert alone.items("work") == 4
    code, out, _ = at_a_terminal(alone, b"y\n", "erase", "work", alone.ids[0])
    assert code == 0
    assert "no copy is left" in out
    assert alone.items("work") == 3


def test_a_terminal_sees_how_far_an_export_and_an_import_are(alone: Place) -> None:
    async def fill() -> None:
        async with open_engine(alone.home / "data", ranking=PlainRanking) as engine:
            await engine.put_many("big", [NewMemory(text=f"fact {n}") for n in range(600)])

    anyio.run(fill)
    code, _, seen = at_a_terminal(alone, b"", "export", "big", "big.jsonl")
    assert code == 0
    assert "export: 1 of 600 (0 %)" in seen
    code, out, seen = at_a_terminal(alone, b"", "import", "copy", "big.jsonl")
    assert code == 0
    assert out == "copy: 600 records taken, 0 were there already\n"
    assert "import: 200 of 600 (33 %)" in seen
    assert "import" not in alone.run("import", "copy", "big.jsonl").stderr


# --- who may ask, and who is in the way ------------------------------------------------------


def asking(home: Path, **verb: Any) -> bytes:
    return request(7, "recalld/bank", data=str(home / "data"), do=verb)


def test_a_client_behind_a_bridge_cannot_ask_for_it(tmp_path: Path) -> None:
    seeded(tmp_path)
    with ExitStack() as stack:
        serve(tmp_path, stack)
        bridge = stack.enter_context(child(tmp_path, "stdio"))
        unopened = asking(tmp_path, verb="delete", bank="work")
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


def test_an_embedded_client_and_one_that_shook_hands_cannot_either(tmp_path: Path) -> None:
    seeded(tmp_path)
    with child(tmp_path, "stdio", "--embedded") as embedded:
        embedded.send(asking(tmp_path, verb="list"))
        assert embedded.line()["error"]["code"] == -32601
        taken = recalld(tmp_path, "bank", "list")
        assert taken.returncode == 75
        assert "in use by pid" in taken.stderr
    with ExitStack() as stack:
        serve(tmp_path, stack)
        one = stack.enter_context(link(tmp_path))
        one.send(asking(tmp_path, verb="list"))
        assert one.line()["result"]["banks"][0]["bank"] == "work"
        one.send(initialize() + asking(tmp_path, verb="list"))
        assert one.line()["id"] == 0
        assert one.line()["error"]["code"] == -32601


def test_a_daemon_of_another_data_directory_is_not_asked(alone: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with ExitStack() as stack:
        serve(alone.home, stack)
        done = recalld(
            other, "bank", "delete", "work", "--yes", "--socket", f"{alone.home}/run/recalld.sock"
        )
        assert done.returncode == 78
        assert f"serves {alone.home}/data, not {other}/data" in done.stderr
        assert alone.items("work") == 4


def test_nobody_asks_for_it_over_http(alone: Place) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with ExitStack() as stack:
        serve(alone.home, stack, "--bind", f"127.0.0.1:{port}")
        do = {"verb": "delete", "bank": "work"}
        kinds = "application/json, text/event-stream"
        plain = {"Content-Type": "application/json", "Accept": kinds}
        mirrored = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "recalld/bank"}
        for body, headers in (
            (asking(alone.home, **do), plain),
            (modern(7, "recalld/bank", data=str(alone.home / "data"), do=do), plain | mirrored),
        ):
            web = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            web.request("POST", "/mcp", body.strip(), headers)
            said = json.loads(web.getresponse().read())
            web.close()
            assert said["error"]["code"] == -32601, said
        assert alone.items("work") == 4


def test_the_command_keeps_the_start_lock_while_it_works_alone(alone: Place) -> None:
    """So that a client which starts a daemon meanwhile waits for us, as does a second command."""
    with (alone.home / "config.toml").open("a") as file:
        file.write("[daemon]\nstart_seconds = 0.2\n")
    settings = settings_for(alone.home)
    seen: list[str] = []

    def work(given: Settings, asked: dict[str, Any], _progress: object) -> dict[str, Any]:
        seen.append(given.start_lock.read_text())
        with child(alone.home, "stdio") as bridge:
            assert bridge.wait() == 69
            seen.append(bridge.errors())
        code, why = alone.refused("backup", "work")
        assert code == 75
        seen.append(why)
        return {"bank": asked["bank"]}

    chosen = SimpleNamespace(verb="create", bank="x", quota=None, json=False)
    assert bank.run(chosen, settings, work) == 0
    note = f"pid {os.getpid()} (recalld bank create) has the data directory"
    assert seen == [note] + [f"recalld: {note}; try again\n"] * 2


async def test_a_second_verb_on_a_bank_is_told_which_is_in_its_way(tmp_path: Path) -> None:
    begun, end = anyio.Event(), anyio.Event()

    class Slow(Verb, frozen=True, kw_only=True):
        async def run(self, engine: Engine, progress: Progress) -> dict[str, Any]:
            begun.set()
            await end.wait()
            return {}

    def count(_done: int, _total: int) -> None:
        """Nobody looks."""

    async with open_engine(tmp_path, ranking=PlainRanking) as engine:
        care = Caretaker(engine)
        for name in ("work", "play"):
            await engine.create_bank(name)
        async with anyio.create_task_group() as group:
            group.start_soon(care.perform, Slow(bank="work"), count)
            await begun.wait()
            with pytest.raises(StorageBusy) as caught:
                await care.perform(Backup(bank="work"), count)
            with pytest.raises(StorageBusy):
                await care.perform(Rename(bank="play", new="work"), count)
            exit = refused(caught.value, Backup(bank="work"))
            assert exit.code == 75
            assert exit.message == (
                "bank 'work' is busy: `slow` is under way; try again when it is done"
            )
            assert (await care.perform(Backup(bank="play"), count))["bank"] == "play"
            assert len((await care.perform(List(), count))["banks"]) == 2
            end.set()
        assert (await care.perform(Backup(bank="work"), count))["bank"] == "work"


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
def test_a_daemon_that_does_not_do_it_is_never_taken_for_one_that_did(
    alone: Place, answer: bytes, code: int, words: str
) -> None:
    path = alone.home / "run" / "recalld.sock"
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
            got, why = alone.refused("backup", "work")
            answering.result(PATIENCE)
    assert (got, words in why) == (code, True), why


def test_a_long_silence_is_waited_through_as_long_as_pings_are_answered() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        told = bank.frames(ours, ping=0.02, silence=5)

        def daemon() -> None:
            with theirs.makefile("rb") as pings:
                for _ in range(3):
                    assert json.loads(pings.readline())["method"] == "ping"
                    theirs.sendall(b'{"id":"ping","result":{}}\n')
            theirs.sendall(b'{"id":1,"result":{"bank":"work"}}\n')

        with ThreadPoolExecutor(1) as thread:
            answering = thread.submit(daemon)
            heard = [next(told)["id"] for _ in range(4)]
            answering.result()
        assert heard == ["ping", "ping", "ping", 1]
        with pytest.raises(TimeoutError, match="nothing in 0"):
            next(bank.frames(ours, ping=0.01, silence=0.05))


def test_asking_a_daemon_imports_no_engine(alone: Place) -> None:
    """Who asks is as cheap as the probes; only who works alone pays for the engine."""
    with ExitStack() as stack:
        serve(alone.home, stack)
        script = (
            "import sys; from daemon.cli import main; code = main(['bank', 'list']);"
            " heavy = {'anyio', 'msgspec', 'store', 'structlog'} & set(sys.modules);"
            " print(code, sorted(heavy))"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", script],
            env=environment(alone.home),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "0 []"


def test_other_commands_do_not_even_import_the_verbs(tmp_path: Path) -> None:
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


def test_a_reader_that_has_enough_is_no_failure_and_a_full_output_is_said(tmp_path: Path) -> None:
    for to, code in (("| true", 0), ("> /dev/full", 73)):
        line = f"set -o pipefail; {shlex.join(RECALLD)} bank list {to}"
        ended = subprocess.run(
            ["bash", "-c", line],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == code, ended.stderr
        assert ended.stderr.count("\n") == (code != 0), "one line or none"
