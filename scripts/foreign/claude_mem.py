"""Data of claude-mem, written by its own worker through its HTTP interface."""

import gzip
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ADDRESS = "http://127.0.0.1:37991"
SESSION = {
    "content_session_id": "c-1",
    "memory_session_id": "m-1",
    "project": "shop",
    "user_prompt": "Fix the cart",
    "started_at": "2026-05-03T10:00:00.000Z",
    "started_at_epoch": 1_777_802_400_000,
    "completed_at": "2026-05-03T10:10:00.000Z",
    "completed_at_epoch": 1_777_803_000_000,
    "status": "completed",
}
SUMMARY = {
    "memory_session_id": "m-1",
    "project": "shop",
    "request": "Fix the cart",
    "investigated": "cart.py",
    "learned": "Totals were rounded twice",
    "completed": "Rounded once",
    "next_steps": "Add a test",
    "files_read": "[]",
    "files_edited": '["cart.py"]',
    "notes": None,
    "prompt_number": 1,
    "discovery_tokens": 10,
    "created_at": "2026-05-03T10:09:00.000Z",
    "created_at_epoch": 1_777_802_940_000,
}
OBSERVATION = {
    "memory_session_id": "m-1",
    "project": "shop",
    "text": None,
    "type": "bugfix",
    "title": "Cart totals rounded twice",
    "subtitle": "cart.py",
    "facts": '["Totals were rounded in two places"]',
    "narrative": "The total was rounded in the model and again in the view.",
    "concepts": '["rounding"]',
    "files_read": "[]",
    "files_modified": '["cart.py"]',
    "prompt_number": 1,
    "discovery_tokens": 5,
    "created_at": "2026-05-03T10:05:00.000Z",
    "created_at_epoch": 1_777_802_700_000,
}
PROMPT = {
    "content_session_id": "c-1",
    "prompt_number": 1,
    "prompt_text": "Fix the cart",
    "created_at": "2026-05-03T10:00:01.000Z",
    "created_at_epoch": 1_777_802_401_000,
}


def generate(bun: Path, package: Path, home: Path, target: Path) -> None:
    """Run the worker, store through its interface, and keep its database."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    data = home / ".claude-mem"
    environment = {
        **os.environ,
        "HOME": str(home),
        "CLAUDE_MEM_DATA_DIR": str(data),
        "CLAUDE_MEM_WORKER_PORT": ADDRESS.rpartition(":")[2],
        "DO_NOT_TRACK": "1",
    }
    worker = package / "plugin" / "scripts" / "worker-service.cjs"
    process = subprocess.Popen([bun, worker, "--daemon"], env=environment)
    try:
        _wait()
        note = {"text": "Ana prefers tabs over spaces", "title": "Editor settings"}
        _post("/api/memory/save", {**note, "project": "shop"})
        asked = {"contentSessionId": "3f0c5a52-1111-4222-8333-444455556666", "project": "shop"}
        _post("/api/sessions/init", {**asked, "prompt": "Add a retry to the payment client"})
        given = {
            "sessions": [SESSION],
            "summaries": [SUMMARY],
            "observations": [OBSERVATION],
            "prompts": [PROMPT],
        }
        _post("/api/import", given)
    finally:
        process.terminate()
        process.wait(30)
    target.write_bytes(gzip.compress((data / "claude-mem.db").read_bytes(), mtime=0))


def _wait() -> None:
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{ADDRESS}/api/health", timeout=5).read()
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
        else:
            return
    raise SystemExit("the worker of claude-mem does not answer")


def _post(path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(
        ADDRESS + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=30).read()
