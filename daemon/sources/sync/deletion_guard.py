"""Decides whether the deletions of a run are plausible.

An unmounted disk, an emptied folder or a changed definition looks like the deletion of everything.
So deletions are withheld, and counted, if they are more than 10 documents and more than 10 % of the
source, if the root is another folder than last time, or if the files were seen under another
definition of the source. `--allow-deletions` applies them, up to the number that was reported.
"""

from typing import Final

from msgspec import Struct

FEW: Final = 10
SHARE: Final = 0.1


class Verdict(Struct, frozen=True, kw_only=True):
    """How many deletions are withheld, and why; none if `reason` is empty."""

    withheld: int = 0
    reason: str = ""


def judge(
    *,
    deletions: int,
    documents: int,
    is_same_place: bool,
    is_same_definition: bool,
    allowed: int,
) -> Verdict:
    """`documents` is the size of the source before the run; `allowed` the number reported last."""
    if deletions == 0:
        return Verdict()
    if not is_same_place:
        reason = "the root is another folder than at the last sync"
    elif not is_same_definition:
        reason = "the definition of the source has changed"
    elif deletions > FEW and deletions > SHARE * documents:
        reason = f"{deletions} of {documents} documents would be deleted"
    else:
        return Verdict()
    return Verdict() if deletions <= allowed else Verdict(withheld=deletions, reason=reason)
