"""Run a server and append its exit code to a file: `record_exit_code.py FILE COMMAND…`.

Client libraries hide the exit code of the server they start. This process runs between the two: the
server inherits its descriptors, and SIGTERM is forwarded to the server.
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
