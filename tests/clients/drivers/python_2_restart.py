"""Keeps one legacy HTTP session of the `mcp` 2.x client open while the server is restarted.

`python_2_restart.py URL`: calls, prints a line, waits for one on stdin, calls again in the same
session, prints what it saw.
"""

# mypy: ignore-errors
# (runs in the client's own environment, whose packages ours does not have)

import json
import sys

import anyio
from mcp import Client


async def main(url):
    with anyio.fail_after(60):
        async with Client(url, mode="legacy") as client:
            before = await client.call_tool("echo", {"text": "before"})
            print(json.dumps({"before": before.content[0].text}), flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            after = await client.call_tool("echo", {"text": "after"})
            tools = await client.list_tools()
            told = {"after": after.content[0].text, "tools": len(tools.tools)}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
