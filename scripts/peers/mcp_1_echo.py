"""The echo server on the official Python SDK 1.x (package `mcp`)."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("echo")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Returns the text."""
    return text


server.run()
