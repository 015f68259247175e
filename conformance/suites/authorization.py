"""H41: the duties of a server as an OAuth resource server.

Authorization is optional in MCP, and a server may use a static token. The duties apply to servers
that answer 401 with a link to their protected resource metadata (RFC 9728).
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from conformance.check import NotApplicable, case, need
from conformance.client.streamable_http import Reply
from conformance.context import Context
from conformance.suites.http_requests import basic, endpoint, post

Y2000, Y2100 = 946_684_800, 4_102_444_800
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


@case("H41d")
def _names_itself(ctx: Context) -> None:
    found = _metadata(ctx)
    named = found.get("resource") if isinstance(found, dict) else None
    need(isinstance(named, str), f"the metadata names the resource {named!r}")
    there, here = urlsplit(str(named)), urlsplit(endpoint(ctx).url)
    same = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    inside = here.path.startswith(there.path.rstrip("/"))
    need(same and inside, f"the metadata names {named!r}, the server is {endpoint(ctx).url}")


@case("H41e")
def _other_audience(ctx: Context) -> None:
    token = endpoint(ctx).foreign_token
    if token is None:
        raise NotApplicable("no token of another audience was given (--foreign-token)")
    answer = post(ctx, basic(ctx), {"Authorization": f"Bearer {token}"})
    need(answer.status == 401, f"a token for another audience got status {answer.status}")


@case("H41f")
def _unsigned(ctx: Context) -> None:
    _challenge(ctx)
    audience = endpoint(ctx).url
    claims = {"sub": "mcp-conform", "aud": audience, "iss": audience, "scope": "mcp"}
    for about, moment in (("an unsigned token", Y2100), ("an expired token", Y2000)):
        token = f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part({**claims, 'exp': moment})}."
        answer = post(ctx, basic(ctx), {"Authorization": f"Bearer {token}"})
        need(answer.status == 401, f"{about} got status {answer.status}, expected 401")


def _part(value: dict[str, Any]) -> str:
    """A part of a JSON Web Token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
