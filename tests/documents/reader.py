"""A reader who follows a page of the documentation: a home directory, files, and a shell.

Most commands run in bash, one after the other. Servers run until the end of the page. Requests of
curl are sent by Python, because curl may not be installed. Commands that ask for confirmation get a
terminal as standard input.
"""

import json
import os
import pty
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.support.processes import PATIENCE

#: Names in capitals stand for values of the reader.
VALUES: Final = {
    "BANK": "default",
    "FILE": "memories.jsonl",
    "PATH": "notes.jsonl",
    "BYTES": "1000000000",
    "SIZE": "5GB",
    "CLIENT": "cursor",
    "EVENT": "session-end",
    "NAME": "laptop",
}
#: A bank is created, renamed and deleted; the others are needed by the rest of the page.
BANKS: Final = {
    "create": {"BANK": "drafts"},
    "rename": {"BANK": "drafts", "NEW": "papers"},
    "delete": {"BANK": "papers"},
}
FOLDERS: Final = (
    ".cursor",
    ".local/share/bash-completion/completions",
    ".local/share/man/man1",
    ".zfunc",
    ".config/fish/completions",
)
_TURN: Final = {
    "type": "user",
    "sessionId": "s1",
    "uuid": "u1",
    "timestamp": "2026-01-02T03:04:05Z",
    "message": {"role": "user", "content": "We release on Fridays"},
}
FILES: Final = {
    "notes.jsonl": '{"text": "We release on Fridays"}\n',
    "notes.csv": "text,tags\nWe release on Fridays,release\n",
    "export.json": '{"results": [{"id": "1", "memory": "We release on Fridays"}]}\n',
    ".claude/projects/work/session.jsonl": json.dumps(_TURN) + "\n",
    "handbook/release.md": "# Releases\n\nWe release on Fridays.\n",
    "docs/auth.md": "# Authentication\n\nTokens are signed with the key of the day.\n",
    # No service manager: the command must not change the services of this machine.
    "bin/systemctl": '#!/bin/sh\necho "$@" >> "$HOME/systemctl.log"\n',
}
CONTEXT_HARNESS: Final = """
[db]
path = "./data/ctx.sqlite"
[server]
bind = "127.0.0.1:PORT"
[connectors.filesystem]
root = "./docs"
"""
SERVERS: Final = re.compile(r"recalld (serve|ctx serve mcp)\b")
ASKS: Final = re.compile(r"recalld bank (delete|erase)\b")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Reader:
    def __init__(self, root: Path) -> None:
        self.home, self.data = root / "home", root / "data"
        self._port, self._ctx_port = free_port(), free_port()
        self._servers: list[subprocess.Popen[bytes]] = []
        files = {**FILES, "config/ctx.toml": CONTEXT_HARNESS.replace("PORT", str(self._ctx_port))}
        for folder in FOLDERS:
            (self.home / folder).mkdir(parents=True)
        for name, text in files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.home / "bin" / "systemctl").chmod(0o755)
        self._variables = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:{Path(sys.executable).parent}:/usr/bin:/bin",
            "RECALLD_HOME": str(self.data),
            "RECALLD_BIND": f"127.0.0.1:{self._port}",
            "RECALLD_EMBEDDING_HASHED": "true",
        }

    def close(self) -> None:
        """Stop everything that the page has started. A server must stop cleanly."""
        try:
            for server in self._servers:
                server.terminate()
                assert server.wait(PATIENCE) == 0, server.args
        finally:
            for server in self._servers:
                server.kill()
                server.wait()
            self.run("recalld stop")

    def follow(self, command: str) -> str:
        """Execute a command; returns its mistake, or nothing."""
        command = self._filled(command.removesuffix("&").strip())
        if SERVERS.match(command):
            return self._serve(command)
        if command.startswith("curl "):
            return self._request(shlex.split(command))
        done = self.run(command, is_confirmed=ASKS.match(command) is not None)
        if done.returncode == 0:
            return ""
        return f"{command}: {done.returncode} {done.stdout}{done.stderr}"

    def run(
        self, command: str, *, is_confirmed: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        terminal, given = -1, subprocess.DEVNULL
        if is_confirmed:
            terminal, given = pty.openpty()
            os.write(terminal, b"y\n")
        try:
            return subprocess.run(
                ["bash", "-c", command],
                env=self._variables_of(command),
                cwd=self.home,
                stdin=given,
                capture_output=True,
                text=True,
                timeout=PATIENCE * 6,
                check=False,
            )
        finally:
            if is_confirmed:
                os.close(terminal)
                os.close(given)

    def _variables_of(self, command: str) -> dict[str, str]:
        variables = dict(self._variables)
        if command.startswith("recalld ctx "):
            del variables["RECALLD_BIND"]  # ctx.toml has the address
        if command.startswith("recalld token "):  # the page says that a token file must be set
            variables["RECALLD_TOKEN_FILE"] = str(self.home / "tokens.toml")
        return variables

    # --- values --------------------------------------------------------------------------------

    def _filled(self, command: str) -> str:
        words = command.split()
        verb = words[2] if words[:2] == ["recalld", "bank"] and len(words) > 2 else ""
        values = {**VALUES, **BANKS.get(verb, {})}
        command = re.sub(r"/run/user/\S+\.sock", lambda _: self._socket(), command)
        command = re.sub(r"\b(localhost|127\.0\.0\.1):7331", f"127.0.0.1:{self._port}", command)
        command = re.sub(r"\bID(…|\b)", lambda _: self._new_id(), command)
        command = re.sub(r"\bBACKUP\b", lambda _: self._new_backup(), command)
        command = re.sub(r"\bTOKEN\b", lambda _: self._new_token(), command)
        return re.sub(r"\b[A-Z]{3,}\b", lambda word: values.get(word[0], word[0]), command)

    def _socket(self) -> str:
        self.run("recalld recent")  # starts a daemon if the page has stopped it
        return str(self._json("recalld status --json")["socket"])

    def _new_id(self) -> str:
        done = self.run("recalld add 'We release on Fridays at noon'")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _new_backup(self) -> str:
        return str(self._json("recalld bank backup default --json")["backup"])

    def _new_token(self) -> str:
        return str(self._json(f"recalld forget {self._new_id()} --json")["undo"])

    def _json(self, command: str) -> Any:
        done = self.run(command)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # --- servers -------------------------------------------------------------------------------

    def _serve(self, command: str) -> str:
        """Start a server and wait until it answers."""
        port = self._ctx_port if " ctx " in command else self._port
        log = self.home / f"server{len(self._servers)}.log"
        with log.open("wb") as stream:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                env=self._variables_of(command),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
        self._servers.append(server)
        deadline = time.monotonic() + PATIENCE * 3
        while time.monotonic() < deadline and server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE):
                    return ""
            except OSError:
                time.sleep(0.05)
        self._servers.remove(server)
        server.kill()
        return f"{command}: {server.wait()} {log.read_text()}"

    def _request(self, words: list[str]) -> str:
        """Send the request of a curl command with the options that the pages use."""
        if not self._servers and (mistake := self._serve("recalld serve")):
            return mistake
        url, body = "", None
        headers: dict[str, str] = {}
        rest = iter(words[1:])
        for word in rest:
            if word in ("--json", "-d"):
                body = next(rest).encode()
                headers.setdefault("content-type", "application/json")
            elif word == "-H":
                name, _, value = next(rest).partition(":")
                headers[name.strip().lower()] = value.strip()
            elif word != "-s":
                url = f"http://{word}"
        request = urllib.request.Request(url, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                json.load(response)
        except (OSError, ValueError) as error:
            return f"{shlex.join(words)}: {error}"
        return ""
