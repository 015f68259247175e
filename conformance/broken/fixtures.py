"""Tools, resources and prompts of the reference server, adapted to each revision."""

from __future__ import annotations

import copy
from typing import Any

from conformance.revisions import A, B, C

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
AUDIO = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

TEXT = {"type": "string"}
NUMBER = {"type": "number", "minimum": 0}
COUNT = {"type": "integer", "minimum": 0}


def _schema(required: dict[str, Any] | None = None, **optional: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {**(required or {}), **optional}}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False}


SCHEMAS: dict[str, dict[str, Any]] = {
    "echo": _schema({"text": TEXT}),
    "slow": _schema({"seconds": NUMBER}, steps=COUNT),
    "fail": _schema(message=TEXT),
    "crash": _schema(),
    "print": _schema({"text": TEXT}),
    "big": _schema({"bytes": COUNT}),
    "tally": _schema(),
    "structured": _schema({"n": {"type": "integer"}}),
    "nonfinite": _schema(),
    "test_simple_text": _schema(),
    "test_image_content": _schema(),
    "test_audio_content": _schema(),
    "test_embedded_resource": _schema(),
    "test_multiple_content_types": _schema(),
    "test_error_handling": _schema(),
    "test_tool_with_logging": _schema(),
    "test_logging_tool": _schema(),
    "test_tool_with_progress": _schema(),
    "test_sampling": _schema({"prompt": TEXT}),
    "test_elicitation": _schema({"message": TEXT}),
    "test_missing_capability": _schema(),
    "test_trigger_tool_change": _schema(),
    "test_trigger_prompt_change": _schema(),
    "test_input_required_result_elicitation": _schema(),
    "test_input_required_result_request_state": _schema(),
    "test_input_required_result_tampered_state": _schema(),
    "test_input_required_result_capabilities": _schema(),
    "test_mirrored_arguments": _schema(
        region={"type": "string", "x-mcp-header": "Region"},
        count={"type": "integer", "x-mcp-header": "Count"},
    ),
    "test_reconnection": _schema(),
    "slow_compute": _schema({"seconds": NUMBER}),
    "failing_job": _schema(),
    "protocol_error_job": _schema(),
    "confirm_delete": _schema({"filename": TEXT}),
    "multi_input": _schema(),
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"name": {"type": "string", "minLength": 1}},
        **_schema(name={"$ref": "#/$defs/name"}),
    },
}

OUTPUT = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "double": {"type": "integer"}},
    "required": ["n", "double"],
}


def tools(revision: str) -> list[dict[str, Any]]:
    listed = []
    for name, schema in SCHEMAS.items():
        tool: dict[str, Any] = {
            "name": name,
            "description": f"The {name} tool of the reference server",
            "inputSchema": copy.deepcopy(schema),
        }
        if revision >= B:
            tool["annotations"] = {"readOnlyHint": True}
        if revision >= C:
            tool["title"] = name.replace("_", " ")
            if name == "structured":
                tool["outputSchema"] = copy.deepcopy(OUTPUT)
        listed.append(tool)
    return listed


RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "a text that does not change"},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "somebody may watch this"},
}
TEMPLATES = ("test://template/{id}/data", "test://other/{id}", "test://third/{id}")


def resources(revision: str) -> list[dict[str, Any]]:
    listed = []
    for uri, contents in RESOURCES.items():
        row = {"uri": uri, "name": uri[7:], "mimeType": contents["mimeType"]}
        if revision >= C:
            row["title"] = uri[7:]
        listed.append(row)
    return listed


def templates(revision: str) -> list[dict[str, Any]]:
    return [{"uriTemplate": t, "name": t, "mimeType": "text/plain"} for t in TEMPLATES]


def read(uri: str) -> dict[str, Any] | None:
    """The contents of a resource, or None."""
    if uri in RESOURCES:
        return {"uri": uri, **RESOURCES[uri]}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        return {"uri": uri, "mimeType": "text/plain", "text": f"data of {uri[16:-5]}"}
    return None


PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


def prompts(revision: str) -> list[dict[str, Any]]:
    listed = []
    for name, arguments in PROMPTS.items():
        row: dict[str, Any] = {"name": name, "description": f"The prompt {name}"}
        if arguments:
            row["arguments"] = [{"name": argument, "required": True} for argument in arguments]
        listed.append(row)
    return listed


def messages(name: str, arguments: dict[str, str]) -> list[dict[str, Any]]:
    content: dict[str, Any] = {"type": "text", "text": " and ".join(["hello", *arguments.values()])}
    if name.endswith("embedded_resource"):
        uri = arguments["resourceUri"]
        contents = read(uri) or {"uri": uri, "text": "nothing there"}
        content = {"type": "resource", "resource": contents}
    if name.endswith("image"):
        content = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    return [{"role": "user", "content": content}]


def content(name: str, revision: str) -> list[dict[str, Any]]:
    """The content blocks of the tools with a constant result."""
    text = {"type": "text", "text": "plain"}
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    audio = {"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}
    inner = {"uri": "test://embedded", "mimeType": "text/plain", "text": "inside"}
    embedded = {"type": "resource", "resource": inner}
    if revision == A:
        audio = {"type": "text", "text": "a sound this revision cannot carry"}
    blocks: dict[str, list[dict[str, Any]]] = {
        "test_simple_text": [text],
        "test_image_content": [image],
        "test_audio_content": [audio],
        "test_embedded_resource": [embedded],
        "test_multiple_content_types": [text, image, embedded],
    }
    return blocks[name]
