"""Tool calls generated from the schemas that a server lists.

Most arguments have the right type and an unusual value: empty, huge, in FTS or SQL syntax, in many
scripts. Some have the wrong type. The response must be a result or an error, never an internal
error.
"""

from random import Random
from typing import Any, Final

from scripts.fuzzing.corpus import Frame

STRINGS: Final = (
    "",
    " ",
    "default",
    "what did we decide about the database?",
    "remember: deploys happen on Tuesdays",
    'auth AND "token NEAR(',
    "* OR 1=1; DROP TABLE memories;--",
    "%s %d {0} {{}} ${HOME} $(id)",
    "../../../../etc/passwd",
    "C:\\CON\\nul",
    "snake_case camelCase docs/auth.md C++ v1.2.3 a@b.c",
    "日本語のテキスト 中文 한국어",
    "שלום עולם مرحبا",
    "👩‍👩‍👧‍👦🧠🇪🇺",
    "e\u0301 \u200b \u202e \ufeff \u2028 \x7f \x1b[31m",
    "a" * 300,
    "word " * 4_000,
    "\n\n\t\r\n",
    "null",
    "NaN",
    "2026-07-28T00:00:00Z",
    "00000000-0000-0000-0000-000000000000",
    "mem_0000",
    '{"key": "value"}',
    "<script>alert(1)</script>",
)
INTEGERS: Final = (0, 1, -1, 2, 7, 10, 100, 2**31, 2**63 - 1, -(2**63), 2**63, 10**30)
NUMBERS: Final = (0.0, 0.5, 1.0, -0.1, 1.1, 1e308, -1e308, 5e-324, 3)
WRONG: Final[tuple[Any, ...]] = (None, True, 0, -1.5, "", [], {}, [None], {"a": 1}, [[[]]], "x")


def tool_call(rng: Random, tools: list[Frame]) -> tuple[str, Frame]:
    """A `tools/call` request, as method and params."""
    tool = rng.choice(tools)
    schema = tool.get("inputSchema", {})
    properties: Frame = schema.get("properties", {})
    required = set(schema.get("required", ()))
    arguments = {
        name: value(rng, inner)
        for name, inner in properties.items()
        if rng.random() < (0.95 if name in required else 0.4)
    }
    if rng.random() < 0.05:
        arguments[rng.choice(STRINGS)] = rng.choice(WRONG)
    return "tools/call", {"name": tool["name"], "arguments": arguments}


def value(rng: Random, schema: Frame, depth: int = 0) -> Any:
    """A value for this schema, mostly unusual; one in ten has the wrong type."""
    if rng.random() < 0.1 or depth > 3:
        return rng.choice(WRONG)
    if "enum" in schema and rng.random() < 0.9:
        return rng.choice(schema["enum"])
    match schema.get("type"):
        case "string":
            return rng.choice(STRINGS)
        case "integer":
            return rng.choice(INTEGERS)
        case "number":
            return rng.choice(NUMBERS)
        case "boolean":
            return rng.random() < 0.5
        case "array":
            inner = schema.get("items") or {}
            return [value(rng, inner, depth + 1) for _ in range(rng.choice((0, 1, 2, 5)))]
        case "object":
            named = schema.get("properties") or {rng.choice(STRINGS): {}}
            return {name: value(rng, inner, depth + 1) for name, inner in named.items()}
        case _:
            kinds = ("string", "integer", "array", "object")
            return value(rng, {"type": rng.choice(kinds)}, depth + 1)
