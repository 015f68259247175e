"""Every module belongs to a layer of an import contract, so that a new one cannot escape them."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def settings() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return found["tool"]["importlinter"]  # type: ignore[no-any-return]


def layered() -> set[str]:
    """The modules and packages that some layers contract below the top level names."""
    names: set[str] = set()
    for contract in settings()["contracts"]:
        if contract["type"] != "layers":
            continue
        for layer in contract["layers"]:
            for name in layer.replace("|", ":").split(":"):
                containers = contract.get("containers")
                places = [f"{c}.{name.strip()}" for c in containers] if containers else [name]
                names |= {place.strip() for place in places}
    return {name for name in names if "." in name}


def test_every_module_belongs_to_a_layer() -> None:
    names = layered()
    outside = []
    for package in ("daemon", "protocol", "store"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name == "__init__.py":
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            if not any(".".join(parts[: n + 1]) in names for n in range(1, len(parts))):
                outside.append(".".join(parts))
    assert outside == []


def test_type_only_imports_are_not_excluded() -> None:
    assert "exclude_type_checking_imports" not in settings()
