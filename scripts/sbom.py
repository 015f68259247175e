#!/usr/bin/env python3
"""Writes a bill of materials of the product: every package of the lock file, with its licence.

    scripts/sbom.py                 CycloneDX 1.6 JSON on stdout
    scripts/sbom.py --licences      a table of packages, versions and licences

Versions and digests come from scripts/requirements/recalld.txt. Licences come from the metadata of
the packages in `.venv`, so `scripts/install` must have run.
"""

import argparse
import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "scripts" / "requirements" / "recalld.txt"
_PIN = re.compile(r"^([\w.-]+)==(\S+)[^\n]*\\((?:\n +--hash=sha256:[0-9a-f]{64} ?\\?)+)", re.M)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class Package(NamedTuple):
    """One package of the lock file."""

    name: str
    version: str
    digests: list[str]
    licence: str


def packages() -> list[Package]:
    """The packages of the lock file, in its order."""
    return [
        Package(name, version, _DIGEST.findall(digests), licence_of(name))
        for name, version, digests in _PIN.findall(LOCK.read_text())
    ]


def licence_of(name: str) -> str:
    """The licence that a package declares: its expression, else its classifiers, else its text."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed on this platform"
    fields = found.json
    if expression := fields.get("license_expression"):
        return str(expression)
    classifiers = [
        entry.rsplit(" :: ", 1)[-1]
        for entry in found.get_all("Classifier") or []
        if entry.startswith("License :: ") and entry != "License :: OSI Approved"
    ]
    if classifiers:
        return ", ".join(classifiers)
    return str(fields.get("license") or "unknown").strip().splitlines()[0]


def bill(version: str, found: list[Package]) -> dict[str, Any]:
    """The CycloneDX document. It has no date and no serial number, so it is reproducible."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "recalld", "version": version},
        },
        "components": [
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{package.name}@{package.version}",
                "name": package.name,
                "version": package.version,
                "purl": f"pkg:pypi/{package.name}@{package.version}",
                "licenses": [{"license": {"name": package.licence}}],
                "properties": [
                    {"name": "recalld:file-sha256", "value": digest} for digest in package.digests
                ],
            }
            for package in found
        ],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--licences", action="store_true", help="print a table instead of JSON")
    given = parser.parse_args(arguments)
    found = packages()
    if given.licences:
        for package in found:
            print(f"{package.name:24} {package.version:12} {package.licence}")
        return 0
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    print(json.dumps(bill(version, found), indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
