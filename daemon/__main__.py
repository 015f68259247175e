"""The entry point of the `recalld` command."""

import os
import sys

from daemon.cli import main as run


def main() -> None:
    code = run()
    # Not sys.exit: a worker thread may be inside a native library (an embedding whose caller has
    # left), and taking the interpreter down under it aborts the process. By now what has to be
    # kept is committed; only what was said is still to be let out.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # there is none, or nobody reads it
    os._exit(code)


if __name__ == "__main__":
    main()
