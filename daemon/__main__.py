"""The entry point of the `recalld` command."""

import os
import sys

from daemon.cli import main as run


def main() -> None:
    code = run()
    # sys.exit would finalize the interpreter. A worker thread may still run inside a native
    # library (an embedding whose caller has disconnected), and that would abort the process. All
    # data is committed by now, so flushing the output streams is enough.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # the stream is missing, closed or has no reader
    os._exit(code)


if __name__ == "__main__":
    main()
