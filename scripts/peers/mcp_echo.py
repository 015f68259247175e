"""The echo server on the official Python SDK (package `mcp` 2.x)."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")


# Text in, text out, like every other contender: by default the SDK would send the text a second
# time as structured content, and check it against an output schema.
@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    server.run("stdio")
