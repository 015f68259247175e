"""Who wants to hear that something changed, and telling them.

Legacy clients hear list changes once they are initialised, and resource updates they subscribed
to. Modern clients hear only what a `subscriptions/listen` of theirs asked for, marked with its id.
"""

from collections.abc import Callable
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

_encoder: Final = msgspec.json.Encoder()


class Listener(Struct, eq=False):
    """One open `subscriptions/listen`; `marker` is the raw JSON of its request id."""

    marker: bytes
    wants: SubscriptionFilter
    send: Callable[[bytes], None]

    def tell(self, method: str, params: dict[str, object]) -> None:
        marked = {**params, "_meta": {SUBSCRIPTION_ID: Raw(self.marker)}}
        self.send(notification(method, _encoder.encode(marked)))


class Follower(Struct, eq=False):
    """One legacy connection: told of lists when initialised, of resources it subscribed to."""

    is_ready: Callable[[], bool]
    send: Callable[[bytes], None]
    surface: Surface
    uris: set[str]


class Changes:
    """The listeners and followers of this process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._followers: list[Follower] = []

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
        """Something was written to a bank; cheap while nobody watches it."""
        for uri in watched(bank):
            followers = [f for f in self._followers if uri in f.uris and f.is_ready()]
            listeners = [w for w in self._listeners if uri in w.wants.resource_subscriptions]
            self._updated(uri, followers, listeners)

    def _updated(self, uri: str, followers: list["Follower"], listeners: list["Listener"]) -> None:
        method = "notifications/resources/updated"
        for follower in followers:
            follower.send(notification(method, _encoder.encode({"uri": uri})))
        for listener in listeners:
            listener.tell(method, {"uri": uri})

    def announce(self, surface: Surface, change: str, uri: str | None = None) -> None:
        """`change` is tools, prompts, resources (their list) or resource (one, by `uri`)."""
        method = "notifications/resources/updated"
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
                listener.tell(method, params)


def honoured(
    wants: SubscriptionFilter, surface: Surface, principal: Principal
) -> SubscriptionFilter:
    """The part of a filter that this surface can ever serve (U01, U03), to this caller."""
    uris = wants.resource_subscriptions if surface.resources else []
    return SubscriptionFilter(
        tools_list_changed=wants.tools_list_changed and "tools" in surface.changing,
        prompts_list_changed=wants.prompts_list_changed and "prompts" in surface.changing,
        resources_list_changed=wants.resources_list_changed and "resources" in surface.changing,
        resource_subscriptions=[uri for uri in uris if may_follow(principal, uri)],
    )
