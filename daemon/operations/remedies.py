"""The reasons for which a daemon is degraded, as sentences with a remedy.

docs/operations.md, Health, lists the same reasons.
"""

from typing import Final, NamedTuple


class Remedy(NamedTuple):
    text: str
    remedy: str


REMEDIES: Final[dict[str, Remedy]] = {
    "directory-missing": Remedy(
        "The data directory or its catalogue is gone.", "Restore it and restart recalld."
    ),
    "directory-read-only": Remedy(
        "The data directory cannot be written to.", "Make it writable for this user."
    ),
    "storage-unreachable": Remedy(
        "The database server does not answer.", "Start the server; no restart of recalld is needed."
    ),
    "storage-full": Remedy(
        "The disk is full, and writes are refused.", "Free space; no restart is needed."
    ),
    "erase-incomplete": Remedy(
        "An erase was interrupted.", "It is completed when the bank is opened."
    ),
    "deletion-incomplete": Remedy(
        "Files of a deleted bank could not be removed.", "Check the permissions, then restart."
    ),
    "banks-orphaned": Remedy(
        "A bank is on disk, but the catalogue does not list it.", "Run `recalld bank recover`."
    ),
    "catalogue-replaced": Remedy(
        "The catalogue was lost or damaged; its backup or an empty one took its place.",
        "Check the disk, run `recalld bank recover`, then restart.",
    ),
    "damaged": Remedy(
        "A bank has damaged rows.",
        "Run `recalld bank check BANK --repair`, or restore a backup.",
    ),
    "embedder-failed": Remedy(
        "The embedding model failed, so search uses keywords.", "Check the `embedding` settings."
    ),
    "model-missing": Remedy(
        "Vectors exist for a model that is not available.", "Restore the `embedding` settings."
    ),
    "embedder-without-meaning": Remedy(
        "`embedding.hashed` is set, so search does not know meanings.", "None, if intended."
    ),
    "vectors-pending": Remedy(
        "Vectors are being computed in the background.", "Wait; keyword search works."
    ),
    "indexing-stopped": Remedy(
        "Background indexing failed.", "See the log, then run `recalld bank rebuild BANK`."
    ),
    "snapshot-broken": Remedy(
        "The index cache could not be read; it is rebuilt.", "Check the disk."
    ),
    "snapshot-not-written": Remedy("The index cache could not be written.", "Check the disk."),
}


def remedy_for(reason: str) -> Remedy:
    """The sentence and the remedy of a reason; an unknown reason is shown as it is."""
    return REMEDIES.get(reason, Remedy(reason, "See docs/operations.md, Health, and the log."))
