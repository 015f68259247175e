"""The echo server on fastmcp."""

import sys

from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool(output_schema=None)  # text in, text out, like the other servers
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(transport="stdio", show_banner=False)
