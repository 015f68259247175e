"""mcp-conform: a conformance suite for MCP servers."""

__version__ = "0.3.0"
