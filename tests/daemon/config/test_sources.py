"""Mistakes under [sources] are reported with file, line, key, rule and suggestion."""

from pathlib import Path
from typing import Any

import pytest

from daemon.config import load
from daemon.config.sources import KEYS, KINDS, check_definition
from daemon.exit_codes import CONFIG, Exit


def read(tmp_path: Path, text: str) -> dict[str, dict[str, Any]]:
    (tmp_path / "config.toml").write_text(text)
    return load({}, {"RECALLD_HOME": str(tmp_path)}).sources


def test_a_source_has_its_keys_and_the_defaults_of_its_kind(tmp_path: Path) -> None:
    found = read(
        tmp_path, '[sources.docs]\nkind = "filesystem"\nroot = "/srv/docs"\nwatch = true\n'
    )

    assert found["docs"]["root"] == "/srv/docs"
    assert found["docs"]["watch"] is True
    assert found["docs"]["exclude"] == []
    assert "branch" not in found["docs"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            '[sources.docs]\nkind = "filesystem"\nroott = "/x"\n',
            3,
            "sources.docs.roott: is not a key of a source; did you mean root?",
        ),
        (
            '\n[sources.docs]\nkind = "filesytem"\nroot = "/x"\n',
            3,
            "sources.docs.kind: 'filesytem' is not one of filesystem, git, s3, script;"
            " did you mean filesystem?",
        ),
        ('[sources.docs]\nroot = "/x"\n', 1, "sources.docs: kind is required"),
        ('[sources.docs]\nkind = "filesystem"\n', 1, "root is required with kind"),
        (
            '[sources.docs]\nkind = "filesystem"\nroot = "docs"\n',
            3,
            "sources.docs.root: 'docs': must be an absolute path, or begin with ~",
        ),
        (
            '[sources.docs]\nkind = "git"\nurl = "https://h/x.git"\nwatch = 1\n',
            4,
            "sources.docs.watch: 1: must be true or false",
        ),
        (
            '[sources.docs]\nkind = "git"\nurl = "https://h/x.git"\nfollow_symlinks = true\n',
            4,
            "is not a key of kind git",
        ),
        ('[sources."a b"]\nkind = "git"\nurl = "https://h/x.git"\n', 1, "must have 1 to 64"),
        ('[sources.x]\nkind = "s3"\nurl = "https://h"\n', 3, "must be s3://BUCKET"),
        ('[sources.x]\nkind = "git"\nurl = "https://h/x"\nbranch = "--upload"\n', 4, "branch"),
        ("sources = 1\n", 1, "sources: must be a table"),
    ],
)
def test_a_mistake_names_file_line_key_and_rule(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(Exit) as refused:
        read(tmp_path, text)

    assert refused.value.code == CONFIG
    assert f"config file {tmp_path / 'config.toml'}: line {line}: " in refused.value.message
    assert message in refused.value.message


def test_every_kind_has_a_definition_with_its_required_keys_only() -> None:
    examples = {"root": "/x", "url": "https://h/x.git", "path": "/x.lua"}
    for kind in KINDS:
        required = [key.name for key in KEYS if kind in key.kinds and key.is_required]
        given = {name: examples[name] for name in required}
        if kind == "s3":
            given["url"] = "s3://bucket/prefix"
        assert check_definition({"kind": kind, **given})["kind"] == kind
