"""Use a server with the `mcp` 2.x client: `python_2.py MODE TARGET`.

TARGET is JSON: {"command": […], "env": {…}}, {"socket": PATH} or {"url": URL}. Prints a report as
one JSON line, or fails with a traceback. It uses plain assertions, because the environment of the
client has no test framework.
"""

# mypy: ignore-errors
# (runs in the environment of the client, with packages that the development environment lacks)

import contextlib
import json
import sys
import time

import anyio
import mcp_types
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.message import SessionMessage

TEXT = "naïve 🧠 \u2028 text"


@contextlib.asynccontextmanager
async def unix_socket(path):
    """A transport over the Unix socket: a pair of streams of parsed messages."""
    parse = mcp_types.jsonrpc_message_adapter.validate_json
    to_client, received = anyio.create_memory_object_stream(0)
    sending, to_server = anyio.create_memory_object_stream(0)

    async def read(stream):
        rest = b""
        async with to_client:
            with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError):
                while True:
                    *lines, rest = (rest + await stream.receive()).split(b"\n")
                    for line in lines:
                        await to_client.send(SessionMessage(parse(line, by_name=False)))

    async def write(stream):
        async with to_server:
            async for message in to_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stream.send(text.encode() + b"\n")

    async with await anyio.connect_unix(path) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(read, stream)
        tasks.start_soon(write, stream)
        yield received, sending
        tasks.cancel_scope.cancel()


async def use(client):
    tools = await client.list_tools()
    assert "echo" in {tool.name for tool in tools.tools}, tools

    echoed = await client.call_tool("echo", {"text": TEXT})
    assert not echoed.is_error, echoed
    assert echoed.content[0].text == TEXT, echoed

    try:
        result = await client.call_tool("no_such_tool", {})
    except MCPError as refusal:
        code = refusal.error.code
    else:
        raise AssertionError(f"an unknown tool gave a result: {result}")
    assert code in (-32602, -32000), code

    failed = await client.call_tool("fail", {"message": "as asked"})
    assert failed.is_error, failed

    structured = await client.call_tool("structured", {"n": 3})
    assert structured.structured_content, structured

    seen = []

    async def progress(now, total, message):
        seen.append(now)

    await client.call_tool("slow", {"seconds": 0.2, "steps": 4}, progress_callback=progress)
    assert len(seen) >= 2, seen
    assert seen == sorted(set(seen)), seen

    await cancel(client)
    echoed = await client.call_tool("echo", {"text": "after"})
    assert echoed.content[0].text == "after", echoed
    return {"tools": len(tools.tools), "unknown": code, "progress": len(seen)}


async def cancel(client):
    """Cancel a running call and check that the server stops it."""
    before = await tally(client)
    with anyio.fail_after(10), anyio.CancelScope() as scope:

        async def begun(now, total, message):
            scope.cancel()

        await client.call_tool("slow", {"seconds": 60, "steps": 600}, progress_callback=begun)
    assert scope.cancelled_caught
    with anyio.fail_after(5):
        while (await tally(client))["cancelled"] == before["cancelled"]:  # noqa: ASYNC110 - another process
            await anyio.sleep(0.01)


async def tally(client):
    return json.loads((await client.call_tool("tally", {})).content[0].text)


async def main(mode, target):
    if "socket" in target:
        server = unix_socket(target["socket"])
    elif "url" in target:
        server = target["url"]
    else:
        command, *arguments = target["command"]
        server = StdioServerParameters(command=command, args=arguments, env=target["env"])
    with anyio.fail_after(40):
        async with Client(server, mode=mode) as client:
            report = {"version": client.protocol_version, **(await use(client))}
            leaving = time.monotonic()
    report["exit_seconds"] = round(time.monotonic() - leaving, 3)
    print(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], json.loads(sys.argv[2]))
