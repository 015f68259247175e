"""`/docs`: the OpenAPI document as one readable page, without a script.

The page is self-contained: its only style sheet is in the page, and the policy allows exactly this
style sheet by its digest. Every text from the document is escaped.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

import msgspec

from daemon.web import assets

_STYLE: Final = assets.docs_style()
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'none'"
).encode()
#: The paths that a caller without a token sees; the other ones name the tools of this daemon.
_PUBLIC: Final = ("/api/v1", "/health", "/openapi.json")
_VERBS: Final = ("get", "post", "patch", "put", "delete")

Schema = Mapping[str, Any]


def render(document: bytes, *, is_public: bool = False) -> bytes:
    """The page of an OpenAPI document; `is_public` leaves the tools of this daemon out."""
    api: dict[str, Any] = msgspec.json.decode(document)
    paths = {
        path: verbs
        for path, verbs in api["paths"].items()
        if not is_public or path.startswith(_PUBLIC)
    }
    listed = {operation["tags"][0] for _, _, operation in _operations(paths)}
    tags = [tag for tag in api["tags"] if tag["name"] in listed]
    return "".join(_page(api, paths, tags)).encode()


def _operations(paths: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, verbs in paths.items():
        for verb in _VERBS:
            if verb in verbs:
                yield path, verb, verbs[verb]


def _page(
    api: Mapping[str, Any], paths: Mapping[str, Any], tags: list[dict[str, str]]
) -> Iterator[str]:
    info = api["info"]
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>{escape(info['title'])} API</h1>"
        f'<p class="soft">Version {escape(info["version"])}. {escape(info["description"])}</p>'
        '<p>Requests and answers are JSON. An error is <code>{"error": {"code", "message"}}</code>.'
        " With tokens, send <code>Authorization: Bearer …</code>. A page that changes something"
        " must also send <code>X-Recalld-Request: 1</code>.</p>"
        '<p>Machine-readable: <a href="/openapi.json">/openapi.json</a>. For people: '
        '<a href="/">the web UI</a>.</p><nav aria-label="Parts">'
    )
    for tag in tags:
        yield f'<a href="#{escape(tag["name"])}">{escape(tag["name"])}</a>'
    yield '<a href="#schemas">schemas</a></nav></header><main>'
    for tag in tags:
        yield (
            f'<section><h2 id="{escape(tag["name"])}">{escape(tag["name"])}</h2>'
            f'<p class="soft">{escape(tag["description"])}</p>'
        )
        for path, verb, operation in _operations(paths):
            if operation["tags"][0] == tag["name"]:
                yield from _operation(path, verb, operation)
        yield "</section>"
    yield '<section><h2 id="schemas">schemas</h2>'
    for name, schema in api["components"]["schemas"].items():
        yield (
            f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
            f"<div>{_about(schema)}{_fields(schema)}</div></details>"
        )
    yield "</section></main></body></html>"


def _operation(path: str, verb: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"<details><summary><b>{verb.upper()}</b> <code>{escape(path)}</code>"
        f' <span class="soft">{escape(operation["summary"])}</span></summary><div>'
    )
    about = operation.get("description", "")
    if about and about != operation["summary"]:
        yield f"<p>{escape(about)}</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        yield "<h3>Parameters</h3><table><tr><th>name</th><th>in</th><th>type</th></tr>"
        for each in parameters:
            mark = "" if each.get("required") else " <span class=soft>(optional)</span>"
            yield (
                f"<tr><td><code>{escape(each['name'])}</code>{mark}</td>"
                f"<td>{escape(each['in'])}</td><td>{_type(each['schema'])}</td></tr>"
            )
        yield "</table>"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<h3>Body <span class=soft>({escape(kind)})</span></h3>{_fields(content['schema'])}"
        if "example" in content:
            example = msgspec.json.format(msgspec.json.encode(content["example"]), indent=2)
            yield f"<p class=soft>Example</p><pre>{escape(example.decode())}</pre>"
    yield "<h3>Answers</h3><table>"
    for status, answer in operation["responses"].items():
        shapes = [_type(each.get("schema", {})) for each in answer.get("content", {}).values()]
        yield (
            f"<tr><td><code>{escape(status)}</code></td><td>{escape(answer['description'])}</td>"
            f"<td>{', '.join(shapes)}</td></tr>"
        )
    yield "</table></div></details>"


def _about(schema: Schema) -> str:
    about = schema.get("description", "")
    return f"<p>{escape(about)}</p>" if about else ""


def _fields(schema: Schema) -> str:
    properties = schema.get("properties")
    if not properties:
        return f"<p>{_type(schema)}</p>"
    required = schema.get("required", ())
    rows = [
        f"<tr><td><code>{escape(name)}</code>"
        f"{'' if name in required else ' <span class=soft>(optional)</span>'}</td>"
        f"<td>{_type(entry)}{_limits(entry)} {escape(entry.get('description', ''))}</td></tr>"
        for name, entry in properties.items()
    ]
    return f"<table><tr><th>field</th><th>type</th></tr>{''.join(rows)}</table>"


def _type(schema: Schema) -> str:
    """The type of a value, in words; named schemas are links."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return " or ".join(_type(each) for each in schema[word])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items') or {})}"
    return escape(kind if isinstance(kind, str) else " or ".join(kind))


def _limits(schema: Schema) -> str:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "minLength": "length at least",
        "maxLength": "length at most",
        "default": "default",
    }
    found = [
        f"{text} {escape(str(schema[name]))}"
        for name, text in words.items()
        if schema.get(name) not in (None, [], {}, "")
    ]
    return f' <span class="soft">({", ".join(found)})</span>' if found else ""
