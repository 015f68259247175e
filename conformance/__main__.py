"""The entry point of the `mcp-conform` command."""


def main() -> int:
    raise SystemExit("not built yet")
