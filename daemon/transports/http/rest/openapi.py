"""The OpenAPI document, generated from the registered tools.

It describes every route except MCP, which has a specification of its own, and every status that a
route can answer with. The schemas of the arguments are those that the tools enforce.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from daemon.api.operation import PREFIX, Operation
from daemon.tools.specification import ToolSpec
from daemon.tools.surface import Surface
from daemon.transports.http.rest.openapi_api import TAGS, describe, events
from daemon.transports.http.rest.openapi_sources import source_paths
from daemon.version import VERSION

_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "additionalProperties": False,
        }
    },
    "additionalProperties": False,
}
_STATUS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
}

_ABOUT: Final = {
    400: "the arguments do not match the tool's schema, or the tool failed",
    401: "a bearer token is required",
    403: "the caller lacks the right to do this",
    404: "the tool, bank or item does not exist",
    405: "the method is not allowed on this path",
    406: "Accept does not list the type of the response",
    408: "the tool took too long",
    409: "it exists already, or the key was used with other content",
    410: "the time to undo has passed",
    413: "the body is too large",
    415: "the body is not JSON",
    429: "rate limit exceeded; see Retry-After",
    431: "the head of the request is too large",
    500: "internal error",
    503: "not ready, or unable to write at the moment",
    507: "no storage space is left",
}
TOOLS: Final = "tools"
OPERATIONS: Final = "operations"
_TAGS: Final = {
    **TAGS,
    TOOLS: "The tools of the dialects, as Context Harness serves them.",
    OPERATIONS: "Health, metrics and descriptions.",
}
_ALWAYS: Final = (401, 403, 405, 431, 500)
_CALL: Final = (400, 404, 408, 409, 410, 413, 415, 429, 503, 507)


def document(
    surface: Surface,
    bare: Mapping[str, str],
    operations: Sequence[Operation] = (),
    *,
    has_mcp: bool,
    has_sources: bool = False,
) -> bytes:
    """The document of a surface and of `/api/v1`; the tools in `bare` answer without `result`."""
    about = "Memory for AI agents." + (" MCP is served at /mcp." if has_mcp else "")
    paths: dict[str, Any] = {
        "/health": {"get": _get("health", "Whether the daemon is healthy", _STATUS)},
        "/health/live": {"get": _get("live", "Whether the process is alive", _STATUS)},
        "/health/ready": {"get": _get("ready", "Whether the daemon can do its work", _STATUS, 503)},
        "/metrics": {"get": _metrics()},
        "/openapi.json": {"get": _get("openapi", "This document", {"type": "object"})},
        "/tools/list": {"get": _get("list_tools", "Every registered tool", _LISTING)},
    }
    for spec in surface.tools.specs():
        verb = bare.get(spec.name, "POST").lower()
        paths[f"/tools/{spec.name}"] = {
            verb: _tool(spec, is_bare=spec.name in bare, takes_body=verb == "post")
        }
    paths["/tools/{name}"] = {"post": _any_tool()}
    for spec in surface.tools.specs():
        if spec.name == "add_document":
            paths["/documents"] = {"post": _named(_tool(spec, is_bare=True, takes_body=True))}
        elif spec.name == "remove_document":
            described = _named(_tool(spec, is_bare=True, takes_body=False))
            described["parameters"] = [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
            ]
            paths["/documents/{id}"] = {"delete": described}
    if has_sources:
        paths |= source_paths(lambda *statuses: _errors(*_ALWAYS, *statuses))
    paths["/agents/list"] = {"get": _get("agents", "Every agent", {"type": "object"})}
    paths["/agents/{name}/prompt"] = {"post": _agent_prompt()}
    for name, path in paths.items():
        tag = TOOLS if name.startswith("/tools/") else OPERATIONS
        for described in path.values():
            described["tags"] = [tag]
    errors = {status: _errors(status)[str(status)] for status in _ABOUT}
    api_paths, schemas = describe(operations, errors)
    paths |= api_paths
    for path in paths.values():
        if "get" in path:
            path["head"] = _head(path["get"])
    paths[f"{PREFIX}/events"] = {"get": events(errors)}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "recalld",
                "version": VERSION,
                "description": about,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/", "description": "This daemon"}],
            "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
            "paths": paths,
            "components": {
                "schemas": {"Error": _ERROR, **schemas},
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{}, {"token": []}],
        }
    )


_LISTING: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["tools"],
    "properties": {
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "description", "builtin", "parameters"],
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "builtin": {"type": "boolean"},
                    "parameters": {"type": "object"},
                },
            },
        }
    },
}


def _get(name: str, about: str, schema: dict[str, Any], *more: int) -> dict[str, Any]:
    answers = {"200": _json(about, schema), **_errors(*_ALWAYS)}
    for status in more:
        answers[str(status)] = _json(_ABOUT[status], schema)
    return {"operationId": name, "summary": about, "responses": answers}


def _head(got: dict[str, Any]) -> dict[str, Any]:
    """The operation of a GET, without response bodies."""
    answers: dict[str, dict[str, Any]] = got["responses"]
    return {
        **got,
        "operationId": f"{got['operationId']}_head",
        "responses": {
            status: {"description": answer["description"]} for status, answer in answers.items()
        },
    }


def _metrics() -> dict[str, Any]:
    text = {"description": "Prometheus text", "content": {"text/plain": {"schema": _TEXT}}}
    return {
        "operationId": "metrics",
        "summary": "Metrics of the daemon",
        "responses": {"200": text, **_errors(*_ALWAYS)},
    }


_TEXT: Final = {"type": "string"}


def _tool(spec: ToolSpec, *, is_bare: bool, takes_body: bool) -> dict[str, Any]:
    output = spec.describe().output_schema
    result: dict[str, Any] = output if output is not UNSET else {}
    if not is_bare and spec.is_built_in:
        result = {"type": "object", "required": ["result"], "properties": {"result": result}}
    described: dict[str, Any] = {
        "operationId": f"tool_{spec.name}".replace("-", "_"),
        "summary": spec.title or spec.name,
        "description": spec.description,
        "responses": {"200": _json("The result of the tool", result), **_errors(*_ALWAYS, *_CALL)},
    }
    if takes_body:
        described["requestBody"] = _body(spec.describe().input_schema)
    return described


def _named(described: dict[str, Any]) -> dict[str, Any]:
    """The operation of a tool under a path of its own."""
    return {**described, "operationId": described["operationId"].removeprefix("tool_")}


def _any_tool() -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "object",
        "required": ["result"],
        "properties": {"result": {}},
    }
    return {
        "operationId": "tool",
        "summary": "Call a registered tool by name",
        "parameters": [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        ],
        "requestBody": _body({"type": "object"}),
        "responses": {"200": _json("The result of the tool", result), **_errors(*_ALWAYS, *_CALL)},
    }


def _agent_prompt() -> dict[str, Any]:
    return {
        **_any_tool(),
        "operationId": "agent_prompt",
        "summary": "The prompt of an agent",
        "requestBody": _body({"type": "object", "properties": {"arguments": {"type": "object"}}}),
    }


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _json(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _errors(*statuses: int) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/Error"}
    return {str(status): _json(_ABOUT[status], reference) for status in sorted(statuses)}
