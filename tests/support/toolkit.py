"""A toolkit without an engine, for tests that only look at what is offered."""

from typing import Any, cast

from daemon.tools.toolkit import Toolkit


def any_toolkit() -> Toolkit:
    return Toolkit(engine=cast("Any", None), now=lambda: 0)
