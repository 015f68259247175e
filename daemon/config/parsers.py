"""Parsers for setting values from the TOML file, environment variables and flags.

A parser takes the name of the source (for the error message) and the raw value. It returns the
typed value or raises `Exit(CONFIG)` with the name, the value and the rule.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from daemon.dialect_names import chosen
from daemon.exit_codes import CONFIG, Exit


def integer(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            parsed = int(str(value), 10) if not isinstance(value, bool) else None
        except ValueError:
            parsed = None
        if parsed is None or not low <= parsed <= high:
            raise Exit(CONFIG, f"{name}: {value!r} is not a whole number from {low} to {high}")
        return parsed

    return read


def number(low: float, high: float) -> Callable[[str, Any], float]:
    def read(name: str, value: Any) -> float:
        try:
            parsed = float(str(value)) if not isinstance(value, bool) else None
        except ValueError:
            parsed = None
        if parsed is None or not low <= parsed <= high:
            raise Exit(CONFIG, f"{name}: {value!r} is not a number from {low:g} to {high:g}")
        return parsed

    return read


_UNITS: Final = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip


def parse_size(text: str) -> int | None:
    """A number of bytes with an optional unit: 4096, 500MB, 1.5GiB; None if it is not one."""
    plain = text.strip().lower()
    number = plain.rstrip("kmgtib").rstrip()
    factor = _UNITS.get(plain[len(number) :].strip())
    whole, _, fraction = number.partition(".")
    if factor is None or not (whole + fraction).isascii() or not (whole + fraction).isdigit():
        return None
    scale: int = 10 ** len(fraction)
    return int(whole or "0") * factor + int(fraction or "0") * factor // scale


def size(low: int, high: int) -> Callable[[str, Any], int]:
    """A number of bytes, also with a unit."""

    def read(name: str, value: Any) -> int:
        parsed = parse_size(str(value)) if not isinstance(value, bool) else None
        if parsed is None or not low <= parsed <= high:
            raise Exit(
                CONFIG, f"{name}: {value!r} is not a size from {low} to {high} bytes (such as 4MiB)"
            )
        return parsed

    return read


def choice(*allowed: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in allowed:
            raise Exit(CONFIG, f"{name}: {value!r} is not one of {', '.join(allowed)}")
        return str(value)

    return read


def text(name: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise Exit(CONFIG, f"{name}: {value!r} is not text")
    return value


def names(name: str, value: Any) -> tuple[str, ...]:
    """Parse a list of names: an array in the file, comma-separated in variables and flags."""
    parts: Any = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(
        isinstance(part, str) for part in cast("list[object]", parts)
    ):
        raise Exit(CONFIG, f"{name}: {value!r} is not a list of names")
    words = [part.strip() for part in cast("list[str]", parts)]
    return tuple(word for word in words if word)


def dialects(name: str, value: Any) -> str:
    listed = text(name, value)
    try:
        chosen(listed)
    except LookupError as error:
        raise Exit(CONFIG, f"{name}: {str(error.args[0]).removeprefix('dialects: ')}") from None
    return listed


def flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise Exit(CONFIG, f"{name}: {value!r} is neither true nor false")
