"""The reference client: correct, small, both eras, HTTP and stdio. A defect breaks one duty.

python -m conformance.broken.client [--defect NAME] (URL | --server COMMAND)
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from conformance.client.http_headers import ACCEPT, encoded
from conformance.revisions import CLIENT_CAPABILITIES, CLIENT_INFO, LEGACY, PROTOCOL_VERSION, D, E

Message = dict[str, Any]
INFO = {"name": "conform-reference-client", "version": "1"}
ABLE: Message = {"elicitation": {"form": {}}, "roots": {}}
#: The defects, and the requirement that each breaks.
DEFECTS = {
    "no-version-member": "Y01",
    "fractional-ids": "Y02",
    "one-id": "Y03",
    "batch": "Y04",
    "calls-first": "Y10",
    "no-client-info": "Y11",
    "never-initialized": "Y12",
    "any-version": "Y13",
    "no-pong": "Y20",
    "unknown-as-result": "Y21",
    "answers-twice": "Y22",
    "web-roots": "Y23",
    "json-only": "Y30",
    "no-version-header": "Y31",
    "no-session": "Y32",
    "keeps-session": "Y33",
    "get-json": "Y34",
    "no-envelope": "Y40",
    "no-method-header": "Y41",
    "parses-state": "Y42",
    "no-inputs": "Y43",
    "always-state": "Y44",
    "same-id": "Y45",
    "no-argument-header": "Y46",
    "invalid-tool": "Y47",
    "posts-responses": "Y48",
}


class SessionLost(Exception):
    """The server has ended the session."""


class Client:
    """Speaks the era of the script over one transport."""

    def __init__(self, defect: str, modern: bool) -> None:
        self.defect = defect
        self.modern = modern
        self.session: str | None = None
        self.agreed: str | None = None
        self._ids = itertools.count(1)
        self._opened = itertools.count()

    def exchange(self, message: Any) -> list[Message]:
        """Send a message; return the messages that come back."""
        raise NotImplementedError

    def request(self, method: str, params: Message | None = None, id: Any = None) -> Message:
        """Send a request, answer the requests of the server, and return the response."""
        number: Any = next(self._ids) if id is None else id
        if self.defect == "fractional-ids":
            number += 0.5
        if self.defect == "one-id" and method != "initialize":
            number = 7
        params = dict(params or {})
        if self.modern and self.defect != "no-envelope":
            params["_meta"] = {PROTOCOL_VERSION: E, CLIENT_CAPABILITIES: ABLE, CLIENT_INFO: INFO}
        message: Message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if self.defect == "no-version-member":
            del message["jsonrpc"]
        batched = self.defect == "batch" and method == "tools/call"
        answer: Message = {}
        for told in self.exchange([message] if batched else message):
            if "method" in told and "id" in told:
                self._answer(told)
            elif "method" not in told:
                answer = told
        return answer

    def _answer(self, asked: Message) -> None:
        method = asked["method"]
        body: Message = {"error": {"code": -32601, "message": "no such method"}}
        if method == "ping":
            if self.defect == "no-pong":
                return
            body = {"result": {}}
        elif method == "roots/list":
            scheme = "https" if self.defect == "web-roots" else "file"
            body = {"result": {"roots": [{"uri": f"{scheme}:///tmp"}]}}
        elif self.defect == "unknown-as-result":
            body = {"result": {}}
        for _ in range(2 if self.defect == "answers-twice" else 1):
            self.exchange({"jsonrpc": "2.0", "id": asked["id"], **body})

    # -- the session ------------------------------------------------------------------------------

    def open(self) -> bool:
        """The handshake; False if the client must not go on."""
        params = {"protocolVersion": D, "capabilities": ABLE, "clientInfo": INFO}
        if self.defect == "no-client-info":
            del params["clientInfo"]
        if self.defect == "calls-first" and next(self._opened) == 0:
            self.request("tools/call", {"name": "add_numbers", "arguments": {}})
        result = self.request("initialize", params).get("result", {})
        self.agreed = result.get("protocolVersion")
        if self.agreed not in LEGACY and self.defect != "any-version":
            return False
        if self.defect != "never-initialized":
            self.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return True

    def work(self) -> None:
        tools = self.request("tools/list").get("result", {}).get("tools", [])
        if self.defect == "posts-responses" and self.modern:
            self.exchange({"jsonrpc": "2.0", "id": 99, "result": {}})
        for tool in tools:
            properties = tool["inputSchema"].get("properties", {})
            marks = [row.get("x-mcp-header", "") for row in properties.values()]
            if any(" " in mark for mark in marks) and self.defect != "invalid-tool":
                continue
            arguments = {
                name: 2 if row["type"] == "number" else "here" for name, row in properties.items()
            }
            self.call(tool["name"], arguments)

    def call(self, name: str, arguments: Message) -> None:
        params: Message = {"name": name, "arguments": arguments}
        number = next(self._ids)
        result = self.request("tools/call", params, number).get("result", {})
        if result.get("resultType") != "input_required":
            return
        given = {key: {"action": "accept", "content": {}} for key in result["inputRequests"]}
        params["inputResponses"] = {} if self.defect == "no-inputs" else given
        if "requestState" in result:
            changed = self.defect == "parses-state"
            state = result["requestState"]
            params["requestState"] = state.strip('"').upper() if changed else state
        elif self.defect == "always-state":
            params["requestState"] = "x"
        self.request("tools/call", params, number if self.defect == "same-id" else None)

    def run(self) -> None:
        if self.modern or self.open():
            try:
                self.work()
                self.request("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}})
            except SessionLost:
                if self.defect != "keeps-session":
                    self.session = self.agreed = None
                if self.open():
                    self.request("tools/list")


class HttpClient(Client):
    def __init__(self, url: str, defect: str, modern: bool) -> None:
        super().__init__(defect, modern)
        self.where = urlsplit(url)

    def exchange(self, message: Any) -> list[Message]:
        opening = isinstance(message, dict) and message.get("method") == "initialize"
        accept = "application/json" if self.defect == "json-only" else ACCEPT
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self.modern:
            headers |= self._mirrored(message)
        elif self.agreed and self.defect != "no-version-header":
            headers["MCP-Protocol-Version"] = self.agreed
        keeps = not opening or self.defect == "keeps-session"
        if self.session and keeps and self.defect != "no-session":
            headers["Mcp-Session-Id"] = self.session
        answer, body = self._ask("POST", json.dumps(message), headers)
        if answer.status == 404:
            raise SessionLost
        if opening:
            self.session = answer.headers.get("mcp-session-id") or self.session
            self._ask("GET", None, {"Accept": "*/*" if self.defect == "get-json" else ACCEPT})
        if answer.headers.get_content_type() == "text/event-stream":
            lines = body.decode().splitlines()
            return [json.loads(line[5:]) for line in lines if line.startswith("data:")]
        return [json.loads(body)] if body else []

    def _mirrored(self, message: Any) -> dict[str, str]:
        message = message[0] if isinstance(message, list) else message
        params = message.get("params", {})
        headers = {"MCP-Protocol-Version": E}
        if self.defect != "no-method-header":
            headers["Mcp-Method"] = message.get("method", "")
        if message.get("method") == "tools/call":
            headers["Mcp-Name"] = encoded(params["name"])
            region = params["arguments"].get("region")
            if region is not None and self.defect != "no-argument-header":
                headers["Mcp-Param-Region"] = encoded(region)
        return headers

    def _ask(
        self, verb: str, body: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(str(self.where.hostname), self.where.port)
        try:
            connection.request(verb, self.where.path, body, headers)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()


class StdioClient(Client):
    def __init__(self, command: str, defect: str, modern: bool) -> None:
        super().__init__(defect, modern)
        self.child = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def exchange(self, message: Any) -> list[Message]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()
        told: list[Message] = []
        if not isinstance(message, dict) or "method" not in message or "id" not in message:
            return told
        while line := self.child.stdout.readline():
            told.append(json.loads(line))
            if "method" not in told[-1]:
                break
        return told

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--defect", default="none")
    parser.add_argument("--server")
    parser.add_argument("url", nargs="?")
    options = parser.parse_args()
    modern = os.environ.get("MCP_CONFORM_SCRIPT") == "modern"
    if options.server:
        child = StdioClient(options.server, options.defect, modern)
        try:
            child.run()
        finally:
            child.close()
    else:
        HttpClient(options.url, options.defect, modern).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
