"""`recalld open`: prints and opens the address of the daemon's web page."""

import argparse
import http.client
import os
import sys
from types import SimpleNamespace
from typing import Final

from daemon.commands.output import print_lines
from daemon.commands.probe import ask
from daemon.config import Settings
from daemon.exit_codes import DEGRADED, OK, UNREACHABLE, Exit

ANSWER_SECONDS: Final = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print", action="store_true", help="print the address only")
    parser.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")


def run(chosen: SimpleNamespace, settings: Settings) -> int:
    url = ask(settings.socket, "recalld/status").get("http")
    if not isinstance(url, str):
        raise Exit(
            UNREACHABLE,
            "the daemon does not listen for HTTP; `recalld serve` takes over and does",
        )
    address = f"{url.rstrip('/')}/"
    print_lines([address])
    problem = page_problem(address)
    if problem:
        sys.stderr.write(f"recalld: no page is served at {address}: {problem}\n")
        return DEGRADED
    if not vars(chosen)["print"] and os.isatty(1):
        import webbrowser

        webbrowser.open(address)
    return OK


def page_problem(address: str) -> str:
    """The reason why a browser would show no page; empty if it would show one."""
    host = address.partition("://")[2].strip("/")
    connection = http.client.HTTPConnection(host, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/", headers={"Accept": "text/html"})
        answer = connection.getresponse()
        kind = answer.getheader("Content-Type", "")
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    if answer.status >= 400 or "html" not in kind:
        return f"the answer is {answer.status} {answer.reason} ({kind or 'no content type'})"
    return ""
