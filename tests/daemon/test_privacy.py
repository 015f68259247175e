"""recalld sends no data: no DNS queries, no connections, no files outside its directories.

Libraries may collect telemetry unless they are told not to, and often not when the variables of a
CI system are set. The product therefore runs with a minimal environment here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import network_trace

#: onnxruntime 1.31 sends its first events about 9 s after it was loaded.
WAIT_SECONDS = 13

CONVERSATION = """
import json, subprocess, sys, time

recalld = sys.argv[1]
child = subprocess.Popen(
    [recalld, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)

def call(id, method, **params):
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    child.stdin.write(json.dumps(message) + "\\n")
    child.stdin.flush()
    answer = json.loads(child.stdout.readline())
    assert "result" in answer and not answer["result"].get("isError"), answer
    return answer["result"]

try:
    call(1, "initialize", protocolVersion="2025-11-25", capabilities={},
         clientInfo={"name": "test", "version": "1"})
    arguments = {"bank_id": "test", "content": "The deployment runs on Fridays.", "context": "work"}
    call(2, "tools/call", name="hindsight_put", arguments=arguments)
    arguments = {"bank_id": "test", "query": "release day"}
    call(3, "tools/call", name="hindsight_search", arguments=arguments)
    time.sleep(float(sys.argv[2]))
    call(4, "ping")
    child.stdin.close()
    child.wait(20)
finally:
    subprocess.run([recalld, "stop"], check=True, stdout=subprocess.DEVNULL)
"""


def files_below(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if not path.is_dir() and "recalld" not in path.relative_to(root).parts
    )


def test_a_stored_and_searched_memory_causes_no_network_traffic_and_no_foreign_files(
    tmp_path: Path,
) -> None:
    reason = network_trace.reason_to_skip()
    if reason:
        pytest.skip(reason)
    recalld = Path(sys.executable).parent / "recalld"
    assert recalld.exists(), "run scripts/install first"
    for name in ("home", "cache", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", CONVERSATION, str(recalld), str(WAIT_SECONDS)]
    traffic = network_trace.trace(command, environment, tmp_path / "cwd")
    assert (traffic, files_below(tmp_path)) == ([], [])


def test_onnxruntime_telemetry_is_disabled_in_this_process_and_its_children() -> None:
    """Both variable names that onnxruntime has used, even when the user set another value."""
    script = (
        "import json, os, store.embedding.native_libraries as libraries;"
        "print(json.dumps([os.environ[name] for name in libraries.TELEMETRY_VARIABLES]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == ["1", "1"]
