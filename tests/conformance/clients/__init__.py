"""Tests of `mcp-conform client`."""
