"""Subscriptions to changes, in both eras."""

from pathlib import Path

import pytest

from daemon.rpc.subscriptions import MAX_SUBSCRIPTIONS
from tests.support.wire import call, initialize, join, modern, request, running_services

pytestmark = pytest.mark.anyio

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


async def test_a_listener_gets_the_requested_notifications_with_its_id(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        wants = {"toolsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}
        peer.feed(modern("listen", "subscriptions/listen", notifications=wants))
        acknowledged = (await wire.wait_for(1))[0]
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == wants
        peer.feed(modern(1, "tools/call", name="test_trigger_tool_change"))
        peer.feed(modern(2, "tools/call", name="test_trigger_prompt_change"))
        peer.feed(modern(3, "tools/call", name="test_trigger_resource_change"))
        frames = await wire.wait_for(6)
        told = [frame for frame in frames[1:] if "method" in frame]
        marker = "io.modelcontextprotocol/subscriptionId"
        assert [frame["method"] for frame in told] == [
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ]
        assert all(frame["params"]["_meta"][marker] == "listen" for frame in told)
        services.shutdown.depart()
        frames = await wire.wait_for(8)
        assert frames[6]["method"] == "notifications/cancelled"
        assert frames[7]["result"]["_meta"][marker] == "listen"


async def test_a_legacy_client_is_notified_of_changes_once_initialised(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        early, early_wire = join(services)
        early.feed(initialize().splitlines(keepends=True)[0])
        ready, ready_wire = join(services)
        ready.feed(initialize() + request(1, "resources/subscribe", uri="test://watched-resource"))
        await ready_wire.wait_for(2)
        ready.feed(call(2, "test_trigger_tool_change") + call(3, "test_trigger_resource_change"))
        frames = await ready_wire.wait_for(6)
        assert [f["method"] for f in frames if "method" in f] == [
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ]
        assert len(early_wire.frames()) == 1
        ready.feed(request(4, "resources/unsubscribe", uri="test://watched-resource"))
        ready.feed(call(5, "test_trigger_resource_change") + request(6, "ping"))
        assert len(await ready_wire.wait_for(9)) == 9


async def test_the_number_of_resource_subscriptions_is_limited(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize())
        peer.follower.uris.update(f"test://{n}" for n in range(MAX_SUBSCRIPTIONS - 1))
        peer.feed(request(1, "resources/subscribe", uri="test://watched-resource"))
        assert "result" in (await wire.wait_for(2))[1]
        peer.feed(request(2, "resources/subscribe", uri="test://static-text"))
        assert (await wire.wait_for(3))[2]["error"]["data"]["kind"] == "overloaded"
        peer.feed(request(3, "resources/subscribe", uri="test://watched-resource"))
        assert "result" in (await wire.wait_for(4))[3], "one that is followed already"
