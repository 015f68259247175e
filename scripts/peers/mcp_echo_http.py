"""The echo server on the official Python SDK, over Streamable HTTP: `mcp_echo_http.py PORT`.

It answers with JSON, which is faster; by default it answers every call with an event stream.
"""

import logging
import sys

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    logging.disable(logging.INFO)
    anyio.run(lambda: server.run_streamable_http_async(port=int(sys.argv[1]), json_response=True))
