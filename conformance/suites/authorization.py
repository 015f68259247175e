"""H41: the duties of a server as an OAuth resource server.

Authorization is optional in MCP, and a server may use a static token. The duties apply to servers
that answer 401 with a link to their protected resource metadata (RFC 9728).
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from conformance.check import NotApplicable, case, need
from conformance.client.streamable_http import Reply
from conformance.context import Context
from conformance.suites.http_requests import basic, endpoint, post

METADATA = re.compile(r'resource_metadata="?([^",\s]+)')


def _challenge(ctx: Context) -> Reply:
    """The response to a request without a credential, if the server rejects it."""
    answer = post(ctx, basic(ctx), {"Authorization": ""})
    if answer.status != 401:
        raise NotApplicable("the server asks for no credential")
    return answer


def _metadata(ctx: Context) -> Any:
    """The protected resource metadata that the challenge names."""
    found = METADATA.search(_challenge(ctx).headers.get("www-authenticate", ""))
    if found is None:
        raise NotApplicable(
            "the server does not offer OAuth: no resource_metadata in its challenge"
        )
    where = endpoint(ctx)
    address = urlsplit(urljoin(where.url, found[1]))
    if address.hostname != where.host:
        raise NotApplicable(f"the metadata is on another host, {address.hostname}")
    answer = where.ask("GET", None, {"Authorization": ""}, path=address.path)
    ctx.record(False, answer.body, answer.head)
    need(answer.status == 200, f"the metadata at {address.path} gives status {answer.status}")
    try:
        return json.loads(answer.body)
    except ValueError:
        need(False, f"the metadata at {address.path} is not JSON")


@case("H41a")
def _challenged(ctx: Context) -> None:
    told = _challenge(ctx).headers.get("www-authenticate", "")
    need(told.lower().startswith("bearer"), f"WWW-Authenticate is {told!r}")


@case("H41b")
def _metadata_served(ctx: Context) -> None:
    found = _metadata(ctx)
    need(isinstance(found, dict), f"the metadata is {found!r}")
    need(isinstance(found.get("resource"), str), "the metadata names no resource")


@case("H41c")
def _names_its_servers(ctx: Context) -> None:
    found = _metadata(ctx)
    servers = found.get("authorization_servers") if isinstance(found, dict) else None
    need(isinstance(servers, list) and servers, f"authorization_servers is {servers!r}")
