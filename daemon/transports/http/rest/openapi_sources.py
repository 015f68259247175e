"""The routes under /sources for the OpenAPI document."""

from collections.abc import Callable
from typing import Any, Final

#: The responses of a route with these statuses, besides those that every route has.
Responses = Callable[..., dict[str, Any]]

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_FLAG: Final[dict[str, Any]] = {"type": "boolean"}
_TIME: Final[dict[str, Any]] = {"type": ["string", "null"]}
_SOURCE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["name", "kind", "place", "bank", "configured", "healthy", "running"],
    "properties": {
        **dict.fromkeys(("name", "kind", "place", "bank"), _TEXT),
        **dict.fromkeys(("configured", "healthy", "watch", "in_config_file"), _FLAG),
        **dict.fromkeys(("last_sync", "last_run", "last_error"), _TIME),
        "withheld_deletions": {"type": "integer"},
        "running": {
            "type": ["object", "null"],
            "description": "The progress of a sync that is running.",
            "properties": {
                "phase": {"enum": ["listing", "reading", "deleting", "embedding"]},
                "done": {"type": "integer"},
                "total": {"type": "integer"},
            },
        },
        "outcome": {"type": ["object", "null"], "description": "The counts of the last run."},
    },
}
_LIST: Final = {
    "type": "object",
    "required": ["sources"],
    "properties": {"sources": {"type": "array", "items": _SOURCE}},
}
_NEW: Final = {
    "type": "object",
    "required": ["name", "definition"],
    "properties": {
        "name": _TEXT,
        "definition": {"type": "object", "description": "The keys of [sources.NAME]."},
    },
    "additionalProperties": False,
}
_SYNC: Final = {
    "type": "object",
    "properties": {"full": {"type": "boolean"}, "allow_deletions": {"type": "boolean"}},
    "additionalProperties": False,
}
_NAME: Final = [{"name": "name", "in": "path", "required": True, "schema": _TEXT}]


def source_paths(responses: Responses) -> dict[str, Any]:
    """The paths under /sources. They are for the owner; other callers get 403."""

    def route(name: str, about: str, result: dict[str, Any], *statuses: int) -> dict[str, Any]:
        answers = {"200": {"description": about, **_json(result)}, **responses(*statuses)}
        return {"operationId": name, "summary": about, "responses": answers}

    def on_one(name: str, about: str, result: dict[str, Any], *statuses: int) -> dict[str, Any]:
        return {**route(name, about, result, *statuses), "parameters": _NAME}

    done = {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}
    return {
        "/sources": {
            "get": route("source_list", "Every document source", _LIST, 400, 404),
            "post": {
                **route("source_add", "Add a source", _SOURCE, 400, 404, 409, 413, 415, 503),
                "requestBody": {"required": True, **_json(_NEW)},
            },
        },
        "/sources/{name}": {
            "get": on_one("source_show", "One source and its progress", _SOURCE, 400, 404),
            "delete": on_one(
                "source_remove", "Remove a source and its documents", done, 400, 404, 409, 503
            ),
        },
        "/sources/{name}/sync": {
            "post": {
                **on_one("source_sync", "Start a sync", done, 400, 404, 409, 413, 415),
                "requestBody": {"required": False, **_json(_SYNC)},
            },
            "delete": on_one("source_cancel", "Cancel a running sync", done, 400, 404),
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
