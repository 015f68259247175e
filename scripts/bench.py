#!/usr/bin/env python3
"""Runs one benchmark: `scripts/bench.py NAME …` runs `scripts/benches/NAME.py` in `.venv`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    names = sorted(path.stem for path in (ROOT / "scripts" / "benches").glob("[a-z]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"usage: scripts/bench.py {'|'.join(names)} [--help] …")
    subprocess.run([ROOT / "scripts" / "install"], check=True)
    python = ROOT / ".venv" / "bin" / "python"
    # Do not change the directory: paths on the command line are relative to the caller's.
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)
    os.execv(python, [str(python), "-m", f"scripts.benches.{sys.argv[1]}", *sys.argv[2:]])


if __name__ == "__main__":
    main()
