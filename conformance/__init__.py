"""mcp-conform: a conformance suite for MCP servers."""

__version__ = "0.2.0"
