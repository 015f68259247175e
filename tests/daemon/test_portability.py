"""Every Linux-only call has a fallback for other systems; each test forces it."""

import os
import socket
from pathlib import Path

import pytest

from daemon.bridge import daemon_identity
from daemon.exit_codes import Exit
from daemon.operations.health import memory_use
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
