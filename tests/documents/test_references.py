"""Every reference in docstrings, comments and Markdown leads somewhere."""

import pytest

from scripts.prose import files
from scripts.references import ROOT, TOP_LEVEL, dangling

#: The files at the top of the repository and in hidden folders.
REST = "."


@pytest.mark.parametrize("area", [*TOP_LEVEL, REST])
def test_references_lead_somewhere(area: str) -> None:
    if area == REST:
        paths = [path for path in files([]) if path.relative_to(ROOT).parts[0] not in TOP_LEVEL]
    else:
        paths = files([area])
    assert paths
    found = [
        f"{each.path.relative_to(ROOT)}:{each.line}: {each.reference}" for each in dangling(paths)
    ]
    assert found == []
