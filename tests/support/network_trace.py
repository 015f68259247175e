"""Runs a program in a network namespace of its own and records every packet that it sends.

The namespace has only a loopback interface. Every address is routed to it, so a packet to any host
can be captured there. A DNS server on loopback answers every query with an address of a
documentation network (RFC 5737), so that a program which looks up a name also tries to connect.

Run as `unshare --net --mount python -m tests.support.network_trace REPORT COMMAND…`. REPORT gets
a JSON list of strings, one for each DNS query and each packet to an address beyond loopback.
"""

import ipaddress
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

ANSWER: Final = "203.0.113.7"
_DNS_PORT: Final = 53
_IPV4, _IPV6 = 0x0800, 0x86DD


def reason_to_skip() -> str:
    """Return the reason why this machine cannot trace the network; empty when it can."""
    for tool in ("unshare", "ip", "mount"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, text=True, check=False
    )
    return f"no network namespaces: {tried.stderr.strip()}" if tried.returncode else ""


def trace(command: list[str], environment: dict[str, str], directory: Path) -> list[str]:
    """Run a command in a network namespace; returns its DNS queries and external packets."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        done = subprocess.run(
            ["unshare", "--net", "--mount", sys.executable, "-m", __name__, str(report), *command],
            cwd=Path(__file__).parents[2],
            env={**environment, "TRACE_DIRECTORY": str(directory)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: list[str] = json.loads(report.read_text())
        return found


def main(report: str, *command: str) -> int:
    _set_up_network()
    seen: list[str] = []
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dns.bind(("127.0.0.1", _DNS_PORT))
    threading.Thread(target=_capture, args=(packets, seen), daemon=True).start()
    threading.Thread(target=_serve_dns, args=(dns, seen), daemon=True).start()
    environment = dict(os.environ)
    directory = environment.pop("TRACE_DIRECTORY")
    code = subprocess.run(command, cwd=directory, env=environment, check=False).returncode
    Path(report).write_text(json.dumps(sorted(set(seen))))
    return code


def _set_up_network() -> None:
    for arguments in (
        ("link", "set", "lo", "up"),
        ("route", "add", "local", "0.0.0.0/0", "dev", "lo"),
        ("-6", "route", "add", "local", "::/0", "dev", "lo"),
    ):
        subprocess.run(["ip", *arguments], check=arguments[0] != "-6", capture_output=True)
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as resolver:
        resolver.write("nameserver 127.0.0.1\n")
        resolver.flush()
        subprocess.run(["mount", "--bind", resolver.name, "/etc/resolv.conf"], check=True)


def _capture(packets: socket.socket, seen: list[str]) -> None:
    while True:
        packet, address = packets.recvfrom(65_536)
        if address[1] == _IPV4:
            source, target = packet[12:16], packet[16:20]
        elif address[1] == _IPV6:
            source, target = packet[8:24], packet[24:40]
        else:
            continue
        addresses = (ipaddress.ip_address(source), ipaddress.ip_address(target))
        seen.extend(
            f"packet to or from {each}"
            for each in addresses
            if not (each.is_loopback or each.is_link_local or each.is_multicast)
        )


def _serve_dns(dns: socket.socket, seen: list[str]) -> None:
    while True:
        query, client = dns.recvfrom(512)
        labels: list[str] = []
        at = 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
            at += 1 + query[at]
        seen.append(f"DNS query for {'.'.join(labels)}")
        question = query[12 : at + 5]
        (kind,) = struct.unpack("!H", query[at + 1 : at + 3])
        record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(ANSWER)
        answers = record if kind == 1 else b""
        header = query[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if answers else 0, 0, 0)
        dns.sendto(header + question + answers, client)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
