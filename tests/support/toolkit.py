"""A toolkit without an engine, for tests that only inspect tool specifications."""

from typing import Any, cast

from daemon.tools.toolkit import Toolkit


def any_toolkit() -> Toolkit:
    return Toolkit(engine=cast("Any", None), now=lambda: 0)
