"""Schemathesis against `/openapi.json`: no 5xx, no undocumented response."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.kit.recalld import fresh_home

pytestmark = pytest.mark.slow

#: Most cases come from the coverage phase; a person may ask for a longer fuzzing phase.
CASES = 2000
EXAMPLES = os.environ.get("RECALLD_SCHEMATHESIS_EXAMPLES", "8")
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,unsupported_method"
)


def test_two_thousand_fuzzed_requests_get_only_documented_responses(tmp_path: Path) -> None:
    with fresh_home() as home:
        url = str(home.serve(bind="127.0.0.1:0", fixtures=False)["http"])
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "run",
                f"{url}/openapi.json",
                "--checks",
                CHECKS,
                "--phases",
                "coverage,fuzzing",
                "--max-examples",
                EXAMPLES,
                "--workers",
                "2",
                "--seed",
                "1",
                "--generation-database",
                "none",
                "--no-color",
                "--suppress-health-check",
                "all",
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=280,
        )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    found = re.search(r"([\d,]+) generated", done.stdout)
    assert found is not None, done.stdout[-2000:]
    assert int(found[1].replace(",", "")) >= CASES
