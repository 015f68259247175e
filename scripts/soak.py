#!/usr/bin/env python3
"""Runs one soak test: `scripts/soak.py NAME …` runs `scripts/soaks/NAME.py` in `.venv`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    names = sorted(path.stem for path in (ROOT / "scripts" / "soaks").glob("[a-z]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"usage: scripts/soak.py {'|'.join(names)} [--help] …")
    subprocess.run([ROOT / "scripts" / "install"], check=True)
    python = ROOT / ".venv" / "bin" / "python"
    os.chdir(ROOT)
    os.execv(python, [str(python), "-m", f"scripts.soaks.{sys.argv[1]}", *sys.argv[2:]])


if __name__ == "__main__":
    main()
