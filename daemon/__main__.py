"""The entry point of the `recalld` command."""


def main() -> int:
    raise SystemExit("not built yet")
