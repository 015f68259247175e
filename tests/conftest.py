"""Settings shared by all tests: the asyncio backend, Hypothesis profiles, SIGINT, parallel runs."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile(
    "ci", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# A shell ignores SIGINT for background jobs, and child processes inherit that. Restore the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of a module on one pytest-xdist worker, because they may share state.

    The exception is `contracts/every_tool`: its 3,500 tests share nothing but the clients, and one
    worker would need half of the whole time for them.
    """
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.path.parent.name != "every_tool":
                item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
