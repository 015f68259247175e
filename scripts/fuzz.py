#!/usr/bin/env python3
"""Fuzzes the JSON-RPC transports: runs `scripts/fuzzing/` in `.venv`; see `--help`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    subprocess.run([ROOT / "scripts" / "install"], check=True)
    python = ROOT / ".venv" / "bin" / "python"
    os.chdir(ROOT)
    os.execv(python, [str(python), "-m", "scripts.fuzzing", *sys.argv[1:]])


if __name__ == "__main__":
    main()
