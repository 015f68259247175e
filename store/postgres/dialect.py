"""The parts of statements that only PostgreSQL understands. See `store.database.Dialect`."""

from typing import Any, Final

import orjson


class PostgresDialect:
    """Implements `store.database.Dialect`."""

    locked = " FOR UPDATE"
    contains = "strpos(items.folded, ?) > 0"
    has_tag = "jsonb_exists(items.tags::jsonb, ?)"
    asks = "right(rtrim(items.text), 1) = '?'"

    each_tag = "CROSS JOIN LATERAL jsonb_array_elements_text(items.tags::jsonb) AS tag (value)"
    texts = "SELECT jsonb_array_elements_text(?::jsonb)"
    numbers = "SELECT jsonb_array_elements_text(?::jsonb)::bigint"

    def member(self, column: str, name: str) -> str:
        return f"({column}::jsonb ->> '{name}')"

    def has_member(self, name: str, wanted: Any) -> tuple[str, list[Any]]:
        """Equal as JSON: 1 equals 1.0, the members of an object have no order."""
        if isinstance(wanted, int) and not -(2**63) <= wanted < 2**63:
            return "FALSE", []  # no stored number is that large
        condition = "coalesce((items.metadata::jsonb -> ?::text) = ?::jsonb, FALSE)"
        return condition, [name, orjson.dumps(wanted).decode()]


DIALECT: Final = PostgresDialect()
