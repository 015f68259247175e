"""The echo server on the official Python SDK (package `mcp` 2.x)."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")


# Text in, text out, like the other servers. By default the SDK also sends the text as structured
# content and validates it against an output schema.
@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    server.run("stdio")
