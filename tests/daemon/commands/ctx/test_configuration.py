"""`ctx.toml`: its translation, its warnings and its mistakes."""

import tomllib
from pathlib import Path

import pytest

from daemon.commands.ctx.configuration import Translated, find, read
from daemon.commands.ctx.toml_writing import write_toml
from daemon.config import load
from daemon.exit_codes import CONFIG, Exit

#: The configuration that the usage page of Context Harness requires.
DOCUMENTED = """
[db]
path = "./data/ctx.sqlite"
[chunking]
max_tokens = 700
overlap_tokens = 80
[embedding]
provider = "disabled"
batch_size = 64
[retrieval]
final_limit = 7
candidate_k_keyword = 80
group_by = "document"
[server]
bind = "127.0.0.1:7332"
cors_origins = ["*"]
[connectors.filesystem]
root = "./docs"
include_globs = ["**/*.md"]
exclude_globs = ["drafts/**"]
[connectors.git.platform]
url = "https://example.com/acme/platform.git"
branch = "trunk"
root = "docs/"
shallow = true
[connectors.s3.runbooks]
bucket = "acme-docs"
prefix = "engineering/"
endpoint_url = "http://localhost:9000"
[connectors.script.tickets]
path = "connectors/tickets.lua"
timeout = 60
token = "${TOKEN}"
[tools.script.create_ticket]
path = "tools/create_ticket.lua"
timeout = 10
allow_hosts = ["example.com"]
url = "https://example.com/${PROJECT}"
[agents.reviewer]
description = "Reviews"
system_prompt = "Line one\\nLine \\"two\\""
tools = ["search"]
[agents.inline.architect]
system_prompt = "Design."
[agents.script.responder]
path = "agents/responder.lua"
limit = 5
"""
VARIABLES = {"TOKEN": "secret", "PROJECT": "ops"}


def translated(folder: Path, text: str, **variables: str) -> Translated:
    path = folder / "ctx.toml"
    path.write_text(text)
    return read(path, variables)


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_documented_section_is_translated(tmp_path: Path) -> None:
    found = translated(tmp_path, DOCUMENTED, **VARIABLES)
    assert found.warnings == []
    assert found.home == tmp_path / "data" / "ctx.recalld"
    assert found.tables == {
        "server": {"dialects": "harness", "bind": "127.0.0.1:7332", "cors_origins": ["*"]},
        "retrieval": {"final_limit": 7},
        "sources": {
            "filesystem": {
                "kind": "filesystem",
                "root": str(tmp_path / "docs"),
                "include": ["**/*.md"],
                "exclude": ["drafts/**"],
                "follow_symlinks": False,
            },
            "git-platform": {
                "kind": "git",
                "url": "https://example.com/acme/platform.git",
                "branch": "trunk",
                "root": "docs/",
            },
            "s3-runbooks": {
                "kind": "s3",
                "url": "s3://acme-docs/engineering",
                "region": "us-east-1",
                "endpoint": "http://localhost:9000",
            },
            "script-tickets": {
                "kind": "script",
                "path": str(tmp_path / "connectors/tickets.lua"),
                "timeout": 60,
                "config": {"token": "secret"},
            },
        },
        "tools": {
            "script": {
                "create_ticket": {
                    "path": str(tmp_path / "tools/create_ticket.lua"),
                    "timeout": 10,
                    "allow_hosts": ["example.com"],
                    "config": {"url": "https://example.com/ops"},
                }
            }
        },
        "agents": {
            "inline": {
                "reviewer": {
                    "description": "Reviews",
                    "system_prompt": 'Line one\nLine "two"',
                    "tools": ["search"],
                },
                "architect": {"description": "", "system_prompt": "Design.", "tools": []},
            },
            "script": {
                "responder": {
                    "path": str(tmp_path / "agents/responder.lua"),
                    "config": {"limit": 5},
                }
            },
        },
    }


def test_recalld_accepts_the_translation(tmp_path: Path) -> None:
    found = translated(tmp_path, DOCUMENTED, **VARIABLES)
    text = write_toml(found.tables, "note")
    assert tomllib.loads(text) == found.tables
    (tmp_path / "config.toml").write_text(text)
    settings = load({}, {"RECALLD_HOME": str(tmp_path)})
    assert (settings.bind, settings.final_limit, len(settings.sources)) == ("127.0.0.1:7332", 7, 4)
    assert [entry.name for entry in settings.scripts.tools] == ["create_ticket"]


@pytest.mark.parametrize("text", ["", "a\tb\n\r\x01\x7f", 'quote " and \\ back', "ünï 🎈", "'''"])
def test_text_survives_the_translation(text: str) -> None:
    tables = {"a b": {"x": text, "list": [text, 1, 2.5, True], text or "key": {"y": 1}}}
    assert tomllib.loads(write_toml(tables, "note")) == tables


@pytest.mark.parametrize(
    ("added", "warning"),
    [
        (
            "[retrieval]\nhybrid_alpa = 1",
            "line 4: retrieval.hybrid_alpa: unknown key, ignored; did you mean hybrid_alpha?",
        ),
        ("[servers]", "line 3: servers: unknown section, ignored; did you mean server?"),
        ("[connectors.jira]", "line 3: connectors.jira: unknown connector, ignored"),
        ("[tools]\nfolder = 'x'", "line 4: tools.folder: unknown key, ignored"),
        (
            "[retrieval]\nhybrid_alpha = 0.5",
            "line 4: retrieval.hybrid_alpha: has no effect: recalld weighs by itself",
        ),
    ],
)
def test_an_unknown_key_is_a_warning(tmp_path: Path, added: str, warning: str) -> None:
    found = translated(tmp_path, f"[db]\npath = 'x.sqlite'\n{added}\n")
    assert found.warnings == [f"{tmp_path / 'ctx.toml'}: {warning}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[db]\n", 'line 1: db.path: required, such as "./data/ctx.sqlite"'),
        (
            "[db]\npath='x'\n[retrieval]\nfinal_limit = 0",
            "line 4: retrieval.final_limit: 0 is not a whole number from 1 to 1000",
        ),
        (
            "[db]\npath='x'\n[embedding]\nprovider = 'opena'",
            "line 4: embedding.provider: 'opena' is not one of disabled, local, openai, ollama;"
            " did you mean openai?",
        ),
        (
            "[db]\npath='x'\n[embedding]\nprovider = 'ollama'",
            "line 3: embedding: model is required with 'ollama'",
        ),
        (
            "[db]\npath='x'\n[connectors.filesystem]\nrot = '.'",
            "line 4: connectors.filesystem.rot: unknown key; did you mean root?",
        ),
        ("[db]\npath='x'\n[connectors.git.a]", "line 3: connectors.git.a: url is required"),
        ("[db]\npath='x'\n[tools.script.a]\nx = 1", "line 3: tools.script.a: path is required"),
        ("[db]\npath='x'\n[agents.a]\n", "line 3: agents.a: system_prompt is required"),
        ("db = 1", "line 1: db: must be a table"),
        ("[db", "is not TOML: "),
    ],
)
def test_a_mistake_names_file_line_key_and_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Exit) as caught:
        translated(tmp_path, text)
    assert caught.value.code == CONFIG
    assert caught.value.message.startswith(f"{tmp_path / 'ctx.toml'}: {message}")


def test_an_endpoint_needs_its_key(tmp_path: Path) -> None:
    text = "[db]\npath='x'\n[embedding]\nprovider='openai'\nmodel='m'\ndims=8"
    with pytest.raises(Exit, match="OPENAI_API_KEY is not set"):
        translated(tmp_path, text)
    found = translated(tmp_path, text, OPENAI_API_KEY="k")
    assert found.tables["embedding"]["url"] == "https://api.openai.com/v1/embeddings"
    assert "k" not in found.tables["embedding"].values()


def test_the_file_is_found_where_the_original_looks(tmp_path: Path) -> None:
    assert find("x.toml", {"CTX_CONFIG": "y.toml"}) == Path("x.toml")
    assert find(None, {"CTX_CONFIG": "y.toml"}) == Path("y.toml")
    assert find(None, {}) == Path("config/ctx.toml")
    (tmp_path / ".ctx").mkdir()
    (tmp_path / ".ctx" / "config.toml").touch()
    assert find(None, {}) == Path(".ctx/config.toml")
