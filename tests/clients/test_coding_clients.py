"""The coding clients report the entry of `recalld setup` as connected (opt-in: over 1 GB)."""

import os

import pytest

from scripts.kit import peer_packages
from tests.clients import coding_clients

pytestmark = pytest.mark.clients


@pytest.mark.skipif(
    not os.environ.get("CODING_CLIENTS"),
    reason="installs over 1 GB: set CODING_CLIENTS=1, or run scripts/clients --setup",
)
@pytest.mark.parametrize("name", coding_clients.CLIENTS)
def test_the_client_connects_to_the_entry_that_setup_wrote(name: str) -> None:
    try:
        fault = coding_clients.confirm(name)
    except peer_packages.Unavailable as reason:
        pytest.skip(str(reason))
    assert fault == ""
