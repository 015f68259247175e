"""The arguments of the commands that run or question a daemon: serve, stdio, status, token …"""

import argparse


def add_serve(parser: argparse.ArgumentParser) -> None:
    _server_flags(parser)
    parser.add_argument("--bind", metavar="HOST:PORT", help="address to listen on for HTTP")
    parser.add_argument("--no-http", action="store_true", help="do not listen for HTTP")
    parser.add_argument("--spawned", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)


def add_stdio(parser: argparse.ArgumentParser) -> None:
    _server_flags(parser)
    parser.add_argument(
        "--embedded", action="store_true", help="run the engine in this process, without a daemon"
    )


def add_hook(parser: argparse.ArgumentParser) -> None:
    """For the help only: `daemon.cli` passes the words of a hook to it unparsed."""
    parser.add_argument("event", metavar="EVENT", help="session-start, pre-compact or session-end")
    parser.add_argument("--client", metavar="NAME", help="client that calls")
    parser.add_argument("--bank", metavar="NAME", help="bank to read and write")


def add_socket(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")


def add_probe(parser: argparse.ArgumentParser) -> None:
    add_socket(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_token(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add = verbs.add_parser("add", help="create a token; it is printed once")
    add.add_argument("name", metavar="NAME", help="name of the token, used in logs")
    add.add_argument(
        "--bank",
        metavar="B",
        action="append",
        dest="banks",
        default=[],
        help="bank that the token may access; repeatable; all banks by default",
    )
    add.add_argument("--read-only", action="store_true", help="allow reading only")
    listing = verbs.add_parser("list", help="list names and rights, without the tokens")
    revoke = verbs.add_parser("revoke", help="revoke a token")
    revoke.add_argument("name", metavar="NAME", help="name of the token")
    for verb in (add, listing, revoke):
        verb.add_argument("--file", metavar="PATH", dest="token_file", help="token file to use")


def _server_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH", help="path of the unix socket")
    parser.add_argument("--fixtures", action="store_true", default=None, help="serve test fixtures")
    parser.add_argument(
        "--dialects",
        metavar="A,B",
        help="dialects to serve, such as native; those of the four other systems by default",
    )
    parser.add_argument(
        "--bank",
        metavar="NAME",
        help="bank for tools that name none; auto: one bank per repository",
    )
