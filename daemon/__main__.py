"""The entry point of the `recalld` command."""

import sys

from daemon.cli import main as run


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()
