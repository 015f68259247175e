"""Client conformance: scripted servers against a client (`mcp-conform client`)."""
