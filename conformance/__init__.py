"""mcp-conform: a conformance suite for MCP servers and clients."""

__version__ = "0.2.0"
