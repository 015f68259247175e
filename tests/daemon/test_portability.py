"""Every Linux-only call has a fallback for other systems; each test forces it."""

import os
import socket
from pathlib import Path

import pytest

from daemon.bridge import daemon_identity
from daemon.commands.clients.hook import START_SECONDS, age_seconds
from daemon.exit_codes import Exit
from daemon.lua.sandbox.limits import mapped_bytes
from daemon.lua.sandbox.system_calls import restrict
from daemon.operations.health import memory_use
from daemon.sources.connectors.filesystem import path_of
from daemon.transports.unix import is_owner
from store.embedding.minilm.model import usable_cores


def test_without_procfs_the_peak_memory_is_reported(tmp_path: Path) -> None:
    use = memory_use(tmp_path / "missing")
    assert use.rss > 1_000_000
    assert use.heap_used == use.heap_total == use.rss


def test_without_processor_affinity_all_cores_count() -> None:
    assert usable_cores(object()) == (os.cpu_count() or 1)
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def test_a_peer_of_unknown_user_is_admitted_and_another_user_is_not() -> None:
    assert is_owner(None)
    assert is_owner(os.geteuid())
    assert not is_owner(os.geteuid() + 1)


def test_without_peer_credentials_the_owner_of_the_socket_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as link:
        server.bind(str(path))
        server.listen()
        link.connect(str(path))
        daemon_identity.check_process(link, path, lambda _link: None)
        tmp_path.chmod(0o777)
        with pytest.raises(Exit):
            daemon_identity.check_process(link, path, lambda _link: None)


def test_without_procfs_the_address_space_is_unknown(tmp_path: Path) -> None:
    assert mapped_bytes(tmp_path / "missing") is None
    known = mapped_bytes()
    assert known is None or known > 1_000_000


def test_outside_linux_there_is_no_filter_of_system_calls() -> None:
    assert restrict("darwin") is False


def test_without_procfs_a_file_behind_a_link_is_still_recognised(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "root" / "inside"
    inside.mkdir(parents=True)
    outside.mkdir()
    for folder in (outside, inside):
        (folder / "page.md").write_text(folder.name)
    link = tmp_path / "root" / "link"
    link.symlink_to(outside)
    nowhere = str(tmp_path / "missing")
    for descriptors in ("/proc/self/fd", nowhere):
        with (inside / "page.md").open() as file:
            found = path_of(file.fileno(), str(inside / "page.md"), descriptors)
        assert found == str((inside / "page.md").resolve())
        with (link / "page.md").open() as file:
            found = path_of(file.fileno(), str(link / "page.md"), descriptors)
        assert found == str((outside / "page.md").resolve())
    with (inside / "page.md").open() as file:  # another file took the name after it was opened
        assert path_of(file.fileno(), str(outside / "page.md"), nowhere) == ""


def test_without_boot_time_a_hook_assumes_the_start_of_python(tmp_path: Path) -> None:
    assert age_seconds(str(tmp_path / "missing")) == START_SECONDS
