"""Names of the dialects, and the selection of dialects by a list of names.

This module is separate from the dialects and uses the standard library only, so that the stdio
bridge can refuse an unknown name at once.
"""

from typing import Final

#: In the order of `tools/list`.
DIALECTS: Final = ("hindsight", "awareness", "recall", "harness", "native")
#: The dialects of the four memory systems, which are served by default.
DEFAULT_DIALECTS: Final = ("hindsight", "awareness", "recall", "harness")
#: The dialect that Lua scripts belong to.
HARNESS: Final = "harness"


def chosen(names: str) -> list[str]:
    """The dialects that a list selects: `a,b` these, `-a` the default without that one.

    An empty list selects the default: the dialects of the four memory systems.

    Raises LookupError with the unknown name.
    """
    parts = [part.strip() for part in names.split(",") if part.strip()]
    for part in parts:
        if part.removeprefix("-") not in DIALECTS:
            raise LookupError(f"dialects: {part!r} is not one of {', '.join(DIALECTS)}")
    wanted = [part for part in parts if not part.startswith("-")] or DEFAULT_DIALECTS
    found = [name for name in DIALECTS if name in wanted and f"-{name}" not in parts]
    if not found:
        raise LookupError(f"dialects: {names!r} leaves none of {', '.join(DIALECTS)}")
    return found
