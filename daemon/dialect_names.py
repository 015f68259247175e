"""Which dialects there are, and which of them a list of names chooses.

Apart from the dialects themselves, so that a bridge can refuse a wrong name at once: standard
library only.
"""

from typing import Final

#: In the order `tools/list` shows them.
DIALECTS: Final = ("hindsight", "awareness", "recall", "harness")


def chosen(names: str) -> list[str]:
    """The dialects a list names: `a,b` these, `-a` all but that one, nothing all of them.

    LookupError names a wrong one.
    """
    parts = [part.strip() for part in names.split(",") if part.strip()]
    for part in parts:
        if part.removeprefix("-") not in DIALECTS:
            raise LookupError(f"dialects: {part!r} is not one of {', '.join(DIALECTS)}")
    wanted = [part for part in parts if not part.startswith("-")] or DIALECTS
    found = [name for name in DIALECTS if name in wanted and f"-{name}" not in parts]
    if not found:
        raise LookupError(f"dialects: {names!r} leaves none of {', '.join(DIALECTS)}")
    return found
