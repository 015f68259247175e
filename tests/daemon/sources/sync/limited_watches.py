"""Exhausts inotify in a user namespace of its own, and watches a folder with what is left.

The limits of a user namespace are its own, so those of the machine stay as they are. Prints the
outcome of each step; see `test_watch.py`.
"""

import sys
from pathlib import Path

from daemon.sources.sync.watch import InotifyNotifier, WatchLimited

LIMITS = Path("/proc/sys/user")


def outcome(root: Path) -> str:
    try:
        InotifyNotifier(str(root))
    except WatchLimited:
        return "limited"
    return "watched"


def main() -> None:
    root = Path(sys.argv[1])
    watches, instances = LIMITS / "max_inotify_watches", LIMITS / "max_inotify_instances"
    print(outcome(root))
    watches.write_text("3")
    print(outcome(root))
    watches.write_text("100000")
    instances.write_text("0")
    print(outcome(root))


if __name__ == "__main__":
    main()
