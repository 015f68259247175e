"""The documented workflow of each dialect, end to end with the client of the `mcp` SDK."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from scripts.kit import peer_packages
from tests.contracts.client import COMMAND, Home

pytestmark = pytest.mark.clients

DRIVER: Final = Path(__file__).parent / "drivers" / "workflows.py"
WORKFLOWS: Final = ("hindsight", "recall", "harness", "awareness")
MODES: Final = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


@pytest.fixture
def home() -> Iterator[Home]:
    home = Home()
    yield home
    home.close()


@pytest.mark.parametrize("transport", ["embedded", "bridged"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_sdk_client_completes_the_documented_workflow(
    home: Home, workflow: str, mode: str, transport: str, tmp_path: Path
) -> None:
    try:
        python = peer_packages.python_peer("mcp-2")
    except peer_packages.Unavailable as reason:
        pytest.skip(f"the mcp client cannot be installed here: {reason}")
    embedded = ["--embedded"] if transport == "embedded" else []
    target = {
        "command": [COMMAND, "stdio", *embedded],
        # The workflows open several sessions with one client name.
        "env": {
            **home.env,
            "RECALLD_SESSION_RESUME_SECONDS": "0",
            "PATH": os.environ["PATH"],
        },
        "stop": [] if embedded else [COMMAND, "stop"],
    }
    done = subprocess.run(
        [str(python), str(DRIVER), workflow, mode, json.dumps(target)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["version"] == MODES[mode]
