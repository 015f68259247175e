"""A local OpenAI-style embeddings endpoint whose responses a test chooses."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from store.embedding.endpoint import EndpointSettings


class _Endpoint(BaseHTTPRequestHandler):
    answer: Any = None
    status = 200
    seen: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append({"body": body, "key": self.headers.get("Authorization")})
        content = self.answer(body["input"]) if callable(self.answer) else self.answer
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def endpoint(answer: Any, *, status: int = 200) -> Iterator[tuple[EndpointSettings, list[Any]]]:
    handler = type(
        "Handler",
        (_Endpoint,),
        {
            "answer": staticmethod(answer) if callable(answer) else answer,
            "status": status,
            "seen": [],
        },
    )
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1/embeddings"
        settings = EndpointSettings(
            url=url, model="m", dims=2, key="secret", timeout_seconds=5, batch=2
        )
        yield settings, handler.seen  # type: ignore[attr-defined]  # created by type()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
