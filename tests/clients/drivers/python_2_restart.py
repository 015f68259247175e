"""Keep a legacy HTTP session of the `mcp` 2.x client open while the server restarts.

Usage: `python_2_restart.py URL`. Calls a tool, prints a line, waits for a line on stdin, calls
again in the same session, and prints the results.
"""

# mypy: ignore-errors
# (runs in the environment of the client, with packages that the development environment lacks)

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
            report = {"after": after.content[0].text, "tools": len(tools.tools)}
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
