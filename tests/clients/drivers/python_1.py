"""Use a server with the `mcp` 1.x client: `python_1.py MODE TARGET` (MODE is unused).

Uses only features that all 1.x releases have. The oldest have no progress callback, and none sends
`notifications/cancelled` by itself, so this driver implements both.
"""

# mypy: ignore-errors
# (runs in the environment of the client, with packages that the development environment lacks)

import contextlib
import json
import sys
import time

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

TEXT = "naïve 🧠 \u2028 text"


class Session:
    """A `ClientSession` that records progress notifications."""

    def __init__(self, session):
        self.session = session
        self.progress = []
        self.begun = anyio.Event()

    async def on_message(self, message):
        note = getattr(message, "root", None)
        if isinstance(note, types.ProgressNotification):
            self.progress.append(note.params.progress)
            self.begun.set()

    async def call(self, name, arguments, token=None):
        more = {} if token is None else {"_meta": {"progressToken": token}}
        params = types.CallToolRequestParams(name=name, arguments=arguments, **more)
        request = types.CallToolRequest(method="tools/call", params=params)
        return await self.session.send_request(types.ClientRequest(request), types.CallToolResult)

    async def until_cancelled(self):
        """Over HTTP the open response ends with an error; over stdio no response arrives."""
        with contextlib.suppress(McpError):
            await self.call("slow", {"seconds": 60, "steps": 600}, "cancelled")

    async def tally(self):
        return json.loads((await self.call("tally", {})).content[0].text)


async def use(wrapped):
    tools = await wrapped.session.list_tools()
    assert "echo" in {tool.name for tool in tools.tools}, tools
    echoed = await wrapped.session.call_tool("echo", {"text": TEXT})
    assert not echoed.isError, echoed
    assert echoed.content[0].text == TEXT, echoed
    try:
        result = await wrapped.session.call_tool("no_such_tool", {})
    except McpError as refusal:
        code = refusal.error.code
    else:
        raise AssertionError(f"an unknown tool gave a result: {result}")
    assert code in (-32602, -32000), code
    await wrapped.session.send_ping()

    await wrapped.call("slow", {"seconds": 0.2, "steps": 4}, token="steps")
    seen = list(wrapped.progress)
    assert len(seen) >= 2, seen
    assert seen == sorted(set(seen)), seen

    await cancel(wrapped)
    echoed = await wrapped.session.call_tool("echo", {"text": "after"})
    assert echoed.content[0].text == "after", echoed
    return {"tools": len(tools.tools), "unknown": code, "progress": len(seen)}


async def cancel(wrapped):
    before = await wrapped.tally()
    wrapped.begun = anyio.Event()
    async with anyio.create_task_group() as tasks:
        identity = wrapped.session._request_id
        tasks.start_soon(wrapped.until_cancelled)
        with anyio.fail_after(10):
            await wrapped.begun.wait()
        notice = types.CancelledNotification(
            method="notifications/cancelled",
            params=types.CancelledNotificationParams(requestId=identity, reason="test"),
        )
        await wrapped.session.send_notification(types.ClientNotification(notice))
        with anyio.fail_after(5):
            while (await wrapped.tally())["cancelled"] == before["cancelled"]:  # noqa: ASYNC110 - another process
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


def connect(target):
    if "url" in target:
        from mcp.client.streamable_http import streamablehttp_client  # not in every 1.x

        return streamablehttp_client(target["url"])
    command, *arguments = target["command"]
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=target["env"]))


async def main(target):
    with anyio.fail_after(40):
        async with connect(target) as (read, write, *_):
            wrapped = Session(None)
            async with ClientSession(read, write, message_handler=wrapped.on_message) as session:
                wrapped.session = session
                opened = await session.initialize()
                report = {"version": opened.protocolVersion, **(await use(wrapped))}
            leaving = time.monotonic()
    report["exit_seconds"] = round(time.monotonic() - leaving, 3)
    print(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main, json.loads(sys.argv[2]))
