"""The service files start this installation and are removed without a trace."""

import plistlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from daemon.commands.clients import service
from daemon.exit_codes import Exit


def options(verb: str, *, dry_run: bool = False) -> SimpleNamespace:
    return SimpleNamespace(verb=verb, dry_run=dry_run)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_install_writes_the_file_and_remove_deletes_it(platform: str, tmp_path: Path) -> None:
    executed: list[str] = []

    def execute(command: Sequence[str]) -> bool:
        executed.append(" ".join(command))
        return True

    path = service.service_file(tmp_path, platform)
    run = {"home": tmp_path, "platform": platform, "execute": execute}
    assert service.run(options("install", dry_run=True), **run) == 0  # type: ignore[arg-type]
    assert not path.exists()
    for _ in range(2):
        assert service.run(options("install"), **run) == 0  # type: ignore[arg-type]
    text = path.read_text()
    assert "recalld" in text and "serve" in text
    assert any("enable --now" in each or "load -w" in each for each in executed)
    assert service.run(options("remove"), **run) == 0  # type: ignore[arg-type]
    assert not path.exists()
    assert list(path.parent.iterdir()) == []
    assert service.run(options("remove"), **run) == 0  # type: ignore[arg-type]


def test_a_file_of_another_origin_is_not_changed(tmp_path: Path) -> None:
    path = service.service_file(tmp_path, "linux")
    path.parent.mkdir(parents=True)
    path.write_text("[Unit]\n")
    for verb in ("install", "remove"):
        with pytest.raises(Exit):
            service.run(options(verb), home=tmp_path, platform="linux", execute=lambda _c: True)
    assert path.read_text() == "[Unit]\n"


def test_paths_with_blanks_and_special_characters_survive() -> None:
    command, variables = '/opt/my "tools" 100%/recalld', {"RECALLD_HOME": "/a b"}
    agent = plistlib.loads(service.service_text(command, variables, "darwin").encode())
    assert agent["ProgramArguments"] == [command, "serve"]
    assert agent["EnvironmentVariables"] == variables
    unit = service.service_text(command, variables, "linux")
    assert 'ExecStart="/opt/my \\"tools\\" 100%%/recalld" serve' in unit
    assert 'Environment="RECALLD_HOME=/a b"' in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "recalld.service"
    unit.write_text(service.service_text("/bin/true", {"RECALLD_HOME": "/a b"}, "linux"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "recalld.service" not in done.stderr
