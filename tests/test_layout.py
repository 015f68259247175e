"""The tests of a module can be found without searching.

`daemon/rpc/limiter.py` is tested by `tests/daemon/rpc/test_limiter.py`. A module without a test
module of its own is tested through its callers; `TESTED_BY` names the test package.
"""

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PACKAGES: Final = ("daemon", "protocol", "store")
#: Shorter modules are types and tables that the tests of their callers cover.
LINES: Final = 80

#: The test package for modules without a test module of their own. An entry also applies to the
#: sub-packages of its package, except for the entries of `PACKAGES`: a new package in `daemon` or
#: `store` needs its own entry.
TESTED_BY: Final = {
    "daemon": "tests/daemon",  # whole processes, over each transport
    "daemon/api": "tests/daemon/api",  # through HTTP
    "daemon/commandline": "tests/daemon/commandline",
    "daemon/bridge": "tests/daemon/bridge",
    "daemon/commands": "tests/daemon/commands",
    "daemon/dialects": "tests/contracts",  # the dialects' documents, through real clients
    "daemon/fixtures": "tests/conformance",  # the tools that conformance suites call
    "daemon/importing": "tests/daemon/importing",
    "daemon/lua": "tests/daemon/lua",
    "daemon/memory": "tests/daemon/transports/http",
    "daemon/operations": "tests/daemon/transports/http/rest",
    "daemon/rpc": "tests/daemon/rpc",
    "daemon/sources": "tests/daemon/sources",
    "daemon/setup": "tests/daemon/setup",
    "daemon/tools": "tests/daemon/dialects",
    "daemon/web": "tests/daemon/web",
    "daemon/transports": "tests/daemon/transports",
    "protocol": "tests/protocol",
    "store": "tests/store",
    "store/embedding": "tests/store/embedding",
    "store/model": "tests/store",
    "store/bulk": "tests/store/bulk",
    "store/exporting": "tests/store/exporting",
    "store/operations": "tests/store/operations",
    "store/postgres": "tests/store/postgres",
    "store/ranking": "tests/store/ranking",
    "store/rows": "tests/store/rows",
    "store/search": "tests/store/search",
    "store/sources": "tests/daemon/sources/sync",
    "store/sqlite": "tests/store/sqlite",
    "store/vectors": "tests/store/vectors",
}


def modules() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py" and len(path.read_text().splitlines()) > LINES
    )


def own_tests(module: str) -> Path:
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


def package_tests(module: str) -> str | None:
    """The entry of `TESTED_BY` that applies to a module."""
    package, *enclosing = (str(parent) for parent in Path(module).parents)
    inherited = [parent for parent in enclosing if parent not in PACKAGES]
    return next((TESTED_BY[each] for each in (package, *inherited) if each in TESTED_BY), None)


@pytest.mark.parametrize("module", modules())
def test_every_module_has_a_test_module_or_a_test_package(module: str) -> None:
    assert own_tests(module).is_file() or package_tests(module) is not None, (
        f"add {own_tests(module).relative_to(ROOT)}, or an entry to TESTED_BY"
    )


def test_a_module_in_a_new_package_is_not_covered_by_the_entry_of_its_top_level_package() -> None:
    assert package_tests("store/model.py") == "tests/store"
    assert package_tests("store/sqlite/maintenance/erase.py") == "tests/store/sqlite"
    assert package_tests("store/new_engine/rows.py") is None


@pytest.mark.parametrize("package", TESTED_BY)
def test_every_entry_names_an_existing_package_and_a_package_with_tests(package: str) -> None:
    assert (ROOT / package).is_dir()
    assert any((ROOT / TESTED_BY[package]).rglob("test_*.py"))
