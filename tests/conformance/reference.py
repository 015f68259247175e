"""The reference server for tests; see `conformance.broken.local`."""

from __future__ import annotations

from pathlib import Path

from conformance.broken import local
from conformance.broken.defects.registry import DEFECTS, Defect
from conformance.broken.local import PATIENT, QUICK, SocketReferenceServer, child, outcomes


def prove(defect: Defect, directory: Path) -> dict[str, str]:
    """Try the cases of a defect on a server with that defect; return the results."""
    return outcomes(local.prove(defect, directory))


__all__ = ["DEFECTS", "PATIENT", "QUICK", "SocketReferenceServer", "child", "outcomes", "prove"]
