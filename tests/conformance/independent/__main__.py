"""A small correct MCP server that shares no code with mcp-conform: its judge must find no fault.

It speaks all five revisions over stdio and HTTP (with sessions, or stateless). Its options give it
the habits of real servers: a lock on its data, a slow start, a rate limit, a banner, dangerous
tools.

    independent                             serve stdio
    independent --http [--stateless]        serve HTTP; the URL is printed first
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from http.server import ThreadingHTTPServer

from tests.conformance.independent.server import OPTIONS, serve_stdio
from tests.conformance.independent.web import Handler


def main() -> None:
    if OPTIONS.start_seconds:
        time.sleep(OPTIONS.start_seconds)
    if OPTIONS.lock:
        lock = os.open(OPTIONS.lock, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("independent: the database is locked by another instance")
    if OPTIONS.daemon:
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    if OPTIONS.banner:
        print("Welcome to the independent server!", flush=True)
    if not OPTIONS.http:
        serve_stdio()
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
