"""The states in which setup can find the file of a client, for every file format."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from daemon.setup.clients import BY_NAME, CLIENTS, Client, Places, Server
from daemon.setup.formats.syntax import Item

STATES: Final = (
    "missing",
    "empty",
    "ours",
    "others",
    "comments",
    "crlf",
    "bom",
    "tabs",
    "symlink",
    "read-only",
    "broken",
)
#: The states that setup changes.
WRITABLE: Final = tuple(state for state in STATES if state not in ("read-only", "broken"))
SERVER: Final = Server(
    command="/opt/recalld/bin/recalld", args=("stdio",), env={"RECALLD_HOME": "/data"}
)
CHANGED: Final = Server(
    command="/opt/recalld/bin/recalld",
    args=("stdio", "--bank", "work"),
    env={"RECALLD_HOME": "/data"},
)
OTHER: Final = {"command": "npx", "args": ["-y", "weather"]}


def places(root: Path) -> Places:
    home, project = root / "home", root / "project"
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    return Places(home=home, project=project, variables={}, platform="linux")


def entry(client: Client, server: Server = SERVER) -> dict[str, Any]:
    found = client.entry(server, "user")
    assert found is not None
    return found


def file_of(client: Client, root: Path) -> Path:
    [path] = client.files("user", places(root))
    return path


def prepare(client: Client, state: str, path: Path) -> str | None:
    """Create the file in a state and return its text, or None if the file is missing."""
    if state == "missing":
        return None
    text = _text(client, state)
    path.parent.mkdir(parents=True, exist_ok=True)
    if state == "symlink":
        target = path.parent.parent / f"real-{path.name}"
        target.write_bytes(text.encode())
        target.chmod(0o640)
        path.symlink_to(target)
        return text
    path.write_bytes(text.encode())
    path.chmod(0o444 if state == "read-only" else 0o640)
    return text


def _text(client: Client, state: str) -> str:
    if state == "empty":
        return ""
    if state == "broken":
        return BROKEN[client.format]
    text = WRITERS[client.format](client)
    if state == "comments":
        return text
    plain = _without_comments(client, text)
    if state == "crlf":
        return plain.replace("\n", "\r\n")
    if state == "bom":
        return "\ufeff" + plain
    if state == "tabs" and client.format == "json":
        return plain.replace("  ", "\t")
    return plain


def _json(client: Client) -> str:
    *containers, _ours = client.key
    servers = json.dumps({"weather": OTHER}, indent=2).replace("\n", "\n  ")
    [name] = containers
    return (
        "{\n"
        "  // settings of mine\n"
        '  "theme": "dark", /* kept */\n'
        f'  "{name}": {servers}, // servers\n'
        '  "numbers": [1, 2.50, 1e3]\n'
        "}\n"
    )


def _toml(client: Client) -> str:
    name = client.key[0]
    return (
        "# settings of mine\n"
        'model = "some-model" # kept\n'
        "\n"
        f"[{name}.weather]\n"
        'command = "npx"\n'
        'args = ["-y", "weather"] # kept\n'
        "\n"
        "# the end\n"
        "[tui]\n"
        "  theme = 'dark'\n"
    )


def _yaml(client: Client) -> str:
    name, ours = client.key
    head = "# settings of mine\nmodel: some-model # kept\n"
    tail = "\n# the end\nrules:\n    - be brief\n"
    if isinstance(ours, Item):
        body = f"{name}:\n  - name: weather\n    command: npx # kept\n    args:\n      - weather\n"
    else:
        body = f"{name}:\n  weather:\n    cmd: npx # kept\n    args: [weather]\n"
    return head + body + tail


def _without_comments(client: Client, text: str) -> str:
    if client.format == "json":
        for comment in ("  // settings of mine\n", " /* kept */", " // servers"):
            text = text.replace(comment, "")
        return text
    lines = [line.split(" #")[0] for line in text.split("\n") if not line.startswith("#")]
    return "\n".join(lines)


WRITERS: Final[dict[str, Callable[[Client], str]]] = {"json": _json, "toml": _toml, "yaml": _yaml}
BROKEN: Final = {
    "json": '{\n  "theme": "dark"\n  "x": 1\n}\n',
    "toml": "model = 'x'\nbroken = = 1\n",
    "yaml": "model: x\n  bad: [1\n",
}

__all__ = ["BY_NAME", "CLIENTS"]
