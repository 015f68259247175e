"""The bill of materials lists every locked package with its licence."""

import pytest

from scripts import sbom
from tests.scripts.test_lock import pins


def test_every_locked_package_is_listed_with_all_its_digests() -> None:
    listed = {package.name: (package.version, len(package.digests)) for package in sbom.packages()}
    assert listed == dict(pins("recalld.txt"))


def test_every_installed_package_declares_a_licence() -> None:
    assert [package.name for package in sbom.packages() if package.licence == "unknown"] == []


def test_the_bill_is_the_same_each_time_and_names_each_package_once() -> None:
    found = sbom.packages()
    first = sbom.bill("1.0", found)
    assert first == sbom.bill("1.0", found)
    names = [component["purl"] for component in first["components"]]
    assert len(names) == len(set(names)) == len(found)


def test_the_table_has_a_line_for_each_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert sbom.main(["--licences"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(sbom.packages())
