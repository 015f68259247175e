"""Subscriptions: the clients that are notified when a list or a resource changes.

Legacy clients are notified of list changes once they are initialised, and of updates to resources
they subscribed to. Modern clients are notified only of changes that one of their
`subscriptions/listen` requests asked for; each notification carries the id of that request.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from daemon.memory.resources import may_follow, watched
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from protocol.jsonrpc import notification
from protocol.mcp import SubscriptionFilter
from protocol.revisions import SUBSCRIPTION_ID

LISTS: Final = ("tools", "prompts", "resources")
#: Resources that one legacy connection may subscribe to.
MAX_SUBSCRIPTIONS: Final = 1024

_UPDATED: Final = "notifications/resources/updated"

_encoder: Final = msgspec.json.Encoder()


class Listener(Struct, eq=False):
    """One open `subscriptions/listen`; `marker` is the raw JSON of its request id."""

    marker: bytes
    wants: SubscriptionFilter
    send: Callable[[bytes], None]

    def notify(self, method: str, params: dict[str, object]) -> None:
        marked = {**params, "_meta": {SUBSCRIPTION_ID: Raw(self.marker)}}
        self.send(notification(method, _encoder.encode(marked)))


class Follower(Struct, eq=False):
    """One legacy connection: its surface, and the resources it subscribed to."""

    is_ready: Callable[[], bool]
    send: Callable[[bytes], None]
    surface: Surface
    uris: set[str]


class Subscriptions:
    """The listeners and followers of this process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._followers: list[Follower] = []
        #: Called with the name of each bank that was written to.
        self.on_bank_changed: Callable[[str], None] = lambda _bank: None

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def follow(self, follower: Follower) -> None:
        self._followers.append(follower)

    def unfollow(self, follower: Follower) -> None:
        if follower in self._followers:
            self._followers.remove(follower)

    def bank_changed(self, bank: str) -> None:
        """Notify the clients that watch a bank after a write to it."""
        self.on_bank_changed(bank)
        for uri in watched(bank):
            params: dict[str, object] = {"uri": uri}
            for follower in list(self._followers):
                if uri in follower.uris and follower.is_ready():
                    follower.send(notification(_UPDATED, _encoder.encode(params)))
            for listener in list(self._listeners):
                if uri in listener.wants.resource_subscriptions:
                    listener.notify(_UPDATED, params)

    def task_changed(self, id: str, state: Mapping[str, object]) -> None:
        """Notify the clients that listen to a task."""
        for listener in list(self._listeners):
            if id in listener.wants.task_ids:
                listener.notify("notifications/tasks", dict(state))

    def announce(self, surface: Surface, change: str, uri: str | None = None) -> None:
        """Notify of a change to a list (tools, prompts, resources) or to one `resource`."""
        method = _UPDATED
        params: dict[str, object] = {"uri": uri}
        if change in LISTS:
            method, params = f"notifications/{change}/list_changed", {}
        for follower in list(self._followers):
            if follower.surface is not surface or not follower.is_ready():
                continue
            if change in surface.changing or uri in follower.uris:
                follower.send(notification(method, _encoder.encode(params)))
        for listener in list(self._listeners):
            wanted = getattr(listener.wants, f"{change}_list_changed", False)
            if wanted or uri in listener.wants.resource_subscriptions:
                listener.notify(method, params)


def honoured(
    wants: SubscriptionFilter, surface: Surface, principal: Principal, tasks: list[str]
) -> SubscriptionFilter:
    """The part of a filter that this surface can serve and that this caller may see.

    `tasks` are the ids of tasks that this caller may see.
    """
    uris = wants.resource_subscriptions if surface.resources else []
    return SubscriptionFilter(
        tools_list_changed=wants.tools_list_changed and "tools" in surface.changing,
        prompts_list_changed=wants.prompts_list_changed and "prompts" in surface.changing,
        resources_list_changed=wants.resources_list_changed and "resources" in surface.changing,
        resource_subscriptions=[uri for uri in uris if may_follow(principal, uri)],
        task_ids=tasks,
    )
