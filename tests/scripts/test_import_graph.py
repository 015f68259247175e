"""scripts/import_graph.py reads the imports between packages from the source."""

from pathlib import Path

from scripts.import_graph import below, read


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_graph_sees_imports_of_every_form(tmp_path: Path) -> None:
    write(tmp_path / "one" / "__init__.py", "")
    write(tmp_path / "one" / "inner" / "__init__.py", "")
    write(tmp_path / "one" / "inner" / "leaf.py", "import os\nimport numpy.linalg\n")
    write(tmp_path / "one" / "user.py", "from one.inner import leaf\n")
    write(tmp_path / "two" / "__init__.py", "")
    write(
        tmp_path / "two" / "lazy.py",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from one.user import X\n"
        "def load():\n    import one.inner.leaf\n",
    )

    graph = read(tmp_path, ("one", "two"))

    assert graph.packages == {"one", "one.inner", "two"}
    assert graph.internal == {
        "one": {"one.inner"},
        "one.inner": frozenset(),
        "two": {"one", "one.inner"},
    }
    assert graph.external["one.inner"] == {"numpy"}
    assert below(graph, "one") == ["one", "one.inner"]
