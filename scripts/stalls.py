#!/usr/bin/env python3
"""Runs the stall test: `scripts/stalls.py …` is `scripts/soak.py stalls …`."""

import os
import sys
from pathlib import Path

SOAK = str(Path(__file__).resolve().with_name("soak.py"))

if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, SOAK, "stalls", *sys.argv[1:]])
