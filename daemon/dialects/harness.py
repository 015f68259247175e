"""To come."""

from daemon.house import House
from daemon.tools import ToolSpec


def tools(house: House) -> list[ToolSpec]:
    return []
