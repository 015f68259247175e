"""The echo server on fastmcp."""

from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool(output_schema=None)  # text in, text out, like the other servers
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
