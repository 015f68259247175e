"""The OpenAPI description of `/api/v1`: paths, parameters, named schemas and tags."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from daemon.api.operation import PREFIX, Operation

REFERENCE: Final = "#/components/schemas/{name}"
#: Arguments that arrive in a header.
HEADERS: Final = {"if_match": "If-Match"}

TAGS: Final[Mapping[str, str]] = {
    "banks": "Banks, their sizes and their backups.",
    "memories": "List, read, add, edit and forget memories.",
    "bulk": "Many memories at once: preview, forget, move, tag and export.",
    "search": "Search by words and meaning, with an explanation.",
    "timeline": "Sessions and days.",
    "overview": "Frequent values, growth and a map by meaning.",
    "documents": "Documents and the chunks by which they are found.",
    "knowledge": "Cards, tasks, risks and skills.",
    "sources": "Sources of documents and their syncs.",
    "system": "Health, connected clients and events.",
    "setup": "The clients that can be connected, and a test of each.",
}
_STATUSES: Final = (400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 429, 431, 500, 503, 507)


def describe(
    operations: Iterable[Operation], errors: Mapping[int, dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The paths of the operations and the schemas they refer to, both by name.

    `errors` maps a status to its response.
    """
    listed = list(operations)
    types = [
        kind
        for each in listed
        for kind in (each.spec.arguments, None if each.has_file else each.spec.output)
        if kind
    ]
    _, schemas = msgspec.json.schema_components(types, ref_template=REFERENCE)
    schemas = {name: _named(schema) for name, schema in schemas.items()}
    paths: dict[str, Any] = {}
    for each in listed:
        arguments = _arguments(each.spec.arguments)
        paths.setdefault(PREFIX + each.path, {})[each.verb.lower()] = {
            "operationId": each.spec.name,
            "tags": [each.tag],
            "summary": each.spec.description,
            "parameters": _parameters(each, arguments),
            **({"requestBody": _body(each)} if each.takes_body else {}),
            "responses": {
                str(each.status): _success(each),
                **{str(status): errors[status] for status in _STATUSES},
            },
        }
        for name, entry in arguments.get("$defs", {}).items():
            schemas[name] = _named(entry)
        if each.takes_body:
            schemas[_body_name(each)] = _body_schema(each, arguments)
    for each in listed:
        # Arguments are described by parameters and bodies; their own schemas are not referred to.
        schemas.pop(each.spec.arguments.__name__, None)
    return paths, dict(sorted(schemas.items()))


def events(errors: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """The description of the event stream, which is no operation."""
    about = "Changes of banks, progress of syncs and health, as server-sent events."
    example = 'event: change\ndata: {"bank":"work","name":"changed","ids":null}\n\n'
    event = {
        "type": "object",
        "description": "An event. `data` is JSON.",
        "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    }
    content = {"schema": event, "example": example}
    return {
        "operationId": "get_events",
        "tags": ["system"],
        "summary": about,
        "parameters": [{"name": "bank", "in": "query", "schema": {"type": "string"}}],
        "responses": {
            "200": {"description": "The events", "content": {"text/event-stream": content}},
            **{str(status): errors[status] for status in (400, 401, 403, 405, 429, 431, 500)},
        },
    }


def _arguments(kind: type[Struct]) -> dict[str, Any]:
    """The schema of an arguments Struct, with references into the components."""
    (_,), definitions = msgspec.json.schema_components([kind], ref_template=REFERENCE)
    own = definitions[kind.__name__]
    others = {name: entry for name, entry in definitions.items() if name != kind.__name__}
    return {**own, "$defs": others}


def _parameters(operation: Operation, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, schema in arguments["properties"].items():
        if name in operation.members:
            found.append({"name": name, "in": "path", "required": True, "schema": schema})
        elif name in HEADERS:
            found.append({"name": HEADERS[name], "in": "header", "schema": schema})
        elif not operation.takes_body:
            is_required = name in arguments.get("required", ())
            found.append({"name": name, "in": "query", "required": is_required, "schema": schema})
    return found


def _body_name(operation: Operation) -> str:
    """The name of a body's schema, such as `AddMemoryBody`."""
    return "".join(word.capitalize() for word in operation.spec.name.split("_")) + "Body"


def _body_schema(operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    outside = {*operation.members, *HEADERS}
    properties = {
        name: schema for name, schema in arguments["properties"].items() if name not in outside
    }
    required = [name for name in arguments.get("required", ()) if name not in outside]
    about = arguments.get("description")
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": properties,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _body(operation: Operation) -> dict[str, Any]:
    name = _body_name(operation)
    content: dict[str, Any] = {"schema": {"$ref": REFERENCE.format(name=name)}}
    if operation.example is not None:
        content["example"] = dict(operation.example)
    arguments = operation.spec.arguments
    outside = {*operation.members, *HEADERS}
    is_required = any(
        field.required and field.encode_name not in outside
        for field in msgspec.structs.fields(arguments)
    )
    return {"required": is_required, "content": {"application/json": content}}


def _success(operation: Operation) -> dict[str, Any]:
    output = operation.spec.output
    assert output is not None
    if operation.has_file:
        file = {"schema": {"type": "string"}}
        kinds = ("application/jsonl", "text/markdown", "text/csv")
        return {"description": "The file", "content": dict.fromkeys(kinds, file)}
    schema = {"$ref": REFERENCE.format(name=output.__name__)}
    answer: dict[str, Any] = {
        "description": "The result",
        "content": {"application/json": {"schema": schema}},
    }
    if operation.has_version:
        about = "The version of the memory, for If-Match"
        answer["headers"] = {"ETag": {"description": about, "schema": {"type": "string"}}}
    return answer


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the title that repeats its name, in the words that generators know."""
    named: dict[str, Any] = _common({key: entry for key, entry in schema.items() if key != "title"})
    return named


def _common(schema: Any) -> Any:
    """The schema with lists in place of tuples: generators know no `prefixItems`.

    All tuples of the API are pairs of numbers, so the list of their first member describes them.
    """
    if isinstance(schema, list):
        return [_common(entry) for entry in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = {name: _common(entry) for name, entry in cast("dict[str, Any]", schema).items()}
    if "prefixItems" in found:
        found["items"] = found.pop("prefixItems")[0]
    return found
