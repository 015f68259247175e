"""Memories on a terminal, in colours; the only module that imports `rich`."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from daemon.commands.memories.report import details_of, explanation, local_time, one_line


def write(entries: Sequence[dict[str, Any]], *, is_whole: bool) -> None:
    """Print memories, short or whole."""
    console = Console(highlight=False, soft_wrap=False)
    for entry in entries:
        if is_whole:
            _write_whole(console, entry)
        else:
            _write_short(console, entry)


def _write_short(console: Console, entry: dict[str, Any]) -> None:
    head = Text()
    if "score" in entry:
        score = entry["score"]
        colour = "green" if score >= 0.7 else "yellow" if score >= 0.3 else "red"
        head.append(f"{score:.2f}  ", style=f"bold {colour}")
    head.append(local_time(entry["date"]), style="cyan")
    head.append(f"  {entry['source']}", style="magenta")
    for tag in entry["tags"]:
        head.append(f"  #{tag}", style="blue")
    head.append(f"  {entry['id']}", style="dim")
    console.print(head)
    console.print(Padding(Text(_shortened(one_line(entry))), (0, 0, 0, 6)))
    if "parts" in entry:
        console.print(Padding(Text(explanation(entry["parts"]), style="dim"), (0, 0, 0, 6)))


def _write_whole(console: Console, entry: dict[str, Any]) -> None:
    for name, value in details_of(entry):
        console.print(Text.assemble((f"{name:10}", "cyan"), value))
    console.print()
    console.print(Text(entry["text"]))
    console.print()


def _shortened(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
