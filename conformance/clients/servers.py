"""Transports of the scripted servers: Streamable HTTP in this process, stdio as a child."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from conformance.clients.script import Heard, Script, Transcript


def decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8"))
    except ValueError:
        return None


class ScriptedHttpServer(ThreadingHTTPServer):
    """A script on a free port of the loopback interface."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.session: str | None = None
        self.listed = False
        threading.Thread(target=self.serve_forever, args=(0.005,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def stop(self) -> Transcript:
        self.shutdown()
        self.server_close()
        return self.script.transcript


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedHttpServer

    def log_message(self, format: str, *args: Any) -> None:
        """A test prints no access log."""

    def _note(self, raw: bytes, *, lost: bool = False) -> Any:
        message = decoded(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        heard = Heard(raw, message, headers, self.command, self.server.session, lost)
        self.server.script.transcript.heard.append(heard)
        return message

    def _send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def do_GET(self) -> None:
        self._note(b"")
        self._send(405, Allow="POST")

    def do_DELETE(self) -> None:
        self._note(b"")
        self._send(405, Allow="POST")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        server, script = self.server, self.server.script
        opens = b'"initialize"' in raw
        lost = script.name == "forgets" and server.listed and not opens and server.session == "old"
        message = self._note(raw, lost=lost)
        if lost:
            self._send(404)
            return
        answers = script.receive(message)
        if not answers:
            self._send(202)
            return
        more: dict[str, str] = {}
        method = message.get("method")
        if method == "initialize" and "result" in answers[-1] and not script.is_modern:
            server.session = "old" if server.session is None else uuid.uuid4().hex
            more["Mcp_Session_Id"] = server.session
        if method == "tools/list":
            server.listed = True
        refused = answers[-1].get("error", {}).get("code") == -32022
        if len(answers) == 1:
            body = json.dumps(answers[0]).encode()
            self._send(400 if refused else 200, body, Content_Type="application/json", **more)
            return
        events = "".join(f"event: message\ndata: {json.dumps(m)}\n\n" for m in answers)
        self._send(200, events.encode(), Content_Type="text/event-stream", **more)


# -- stdio ----------------------------------------------------------------------------------------


def launcher(script: str, directory: Path) -> tuple[Path, Path]:
    """An executable that a client can start as its server, and the log that it writes."""
    log, path = directory / f"{script}.log", directory / f"{script}-server"
    root = Path(__file__).resolve().parent.parent.parent
    words = f'PYTHONPATH="{root}" exec "{sys.executable}" -m conformance.clients.servers'
    path.write_text(f'#!/bin/sh\n{words} {script} "{log}"\n', "utf-8")
    path.chmod(0o700)
    return path, log


def serve_stdio(name: str, log: Path) -> None:
    """Run a script on stdin and stdout; every line of the client goes to the log."""
    script = Script(name, "stdio")
    with log.open("ab") as written:
        for raw in sys.stdin.buffer:
            written.write(raw if raw.endswith(b"\n") else raw + b"\n")
            written.flush()
            for answer in script.receive(decoded(raw)):
                sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
                sys.stdout.buffer.flush()


def read_log(name: str, log: Path) -> Transcript:
    """The transcript of a stdio script; the agreement is repeated from the log."""
    script = Script(name, "stdio")
    if log.exists():
        for raw in log.read_bytes().splitlines():
            message = decoded(raw)
            script.transcript.heard.append(Heard(raw, message))
            script.receive(message)
    return script.transcript


if __name__ == "__main__":
    serve_stdio(sys.argv[1], Path(sys.argv[2]))
