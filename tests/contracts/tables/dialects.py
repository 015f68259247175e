"""The tables of all dialects, and the tools in them."""

from typing import Final

from tests.contracts.tables import awareness, harness, hindsight, native, recall
from tests.contracts.tables.model import Dialect, Tool

DIALECTS: Final[tuple[Dialect, ...]] = (
    hindsight.DIALECT,
    awareness.DIALECT,
    recall.DIALECT,
    harness.DIALECT,
    native.DIALECT,
)
TOOLS: Final[tuple[tuple[Dialect, Tool], ...]] = tuple(
    (dialect, tool) for dialect in DIALECTS for tool in dialect.tools
)
NAMES: Final = [tool.name for _, tool in TOOLS]
