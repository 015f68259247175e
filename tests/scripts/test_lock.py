"""The lock files fit pyproject.toml: `scripts/lock` writes them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PRODUCT = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
DEVELOPMENT = [*PRODUCT, *PROJECT["project"]["optional-dependencies"]["dev"]]
_PIN = re.compile(
    r"^([\w.-]+)==(\S+)(?: ; [^\\\n]+)? ?((?:\\\n +--hash=sha256:[0-9a-f]{64} ?)*)", re.M
)


def pins(name: str) -> dict[str, tuple[str, int]]:
    """The version and the number of digests of each package of a lock file."""
    text = (ROOT / "scripts" / "requirements" / name).read_text()
    return {
        canonicalize_name(package): (version, digests.count("sha256"))
        for package, version, digests in _PIN.findall(text)
    }


@pytest.mark.parametrize(
    ("name", "requirements"), [("recalld.txt", PRODUCT), ("dev.txt", DEVELOPMENT)]
)
def test_every_dependency_is_locked_within_its_range(name: str, requirements: list[str]) -> None:
    locked = pins(name)
    for requirement in map(Requirement, requirements):
        package = canonicalize_name(requirement.name)
        assert package in locked, f"{package}: run scripts/lock"
        version, _ = locked[package]
        assert requirement.specifier.contains(version), f"{package} {version}: run scripts/lock"


@pytest.mark.parametrize("name", ["recalld.txt", "dev.txt"])
def test_every_locked_package_has_digests(name: str) -> None:
    assert [package for package, (_, digests) in pins(name).items() if digests == 0] == []


def test_development_tests_the_versions_that_users_get() -> None:
    product, development = pins("recalld.txt"), pins("dev.txt")
    assert {name: development[name] for name in product} == product
