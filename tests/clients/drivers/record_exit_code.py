"""Runs a server for a client and writes down how it ended: `record_exit_code.py FILE COMMAND…`.

A client library hides its child's exit code. This stands between the two, hands over its own
descriptors untouched, passes SIGTERM on, and adds one line to FILE: the exit code.
"""

import signal
import subprocess
import sys
from pathlib import Path


def main() -> None:
    child = subprocess.Popen(sys.argv[2:])
    signal.signal(signal.SIGTERM, lambda number, frame: child.send_signal(number))
    code = child.wait()
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{code}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
