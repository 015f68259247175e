"""ChatGPT: the data export (ZIP, folder or `conversations.json`).

A conversation is a tree of messages. The branch that ends at `current_node` is what the user saw;
the messages of other branches are imported too, because they were answers once.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from daemon.importing.conversations import exports
from daemon.importing.conversations.messages import message, text_in
from daemon.importing.record import ForeignKind, Found
from daemon.importing.values import milliseconds, object_of, present, text_of


def missing(path: Path) -> str | None:
    return exports.lack(path, "mapping")


def read(path: Path) -> Iterator[Found]:
    for conversation in exports.listed(path):
        yield from _conversation(conversation)


def _conversation(conversation: dict[str, Any]) -> Iterator[Found]:
    ids = (conversation.get(name) for name in ("conversation_id", "id"))
    session = next((text for id in ids if (text := text_of(id))), None)
    title = text_of(conversation.get("title")) or ""
    nodes = [object_of(node) for node in object_of(conversation.get("mapping")).values()]
    messages = [found for node in nodes if (found := object_of(node.get("message")))]
    messages.sort(key=lambda each: milliseconds(each.get("create_time")) or 0)
    for number, each in enumerate(messages, start=1):
        actor = object_of(each.get("author")).get("role")
        content = object_of(each.get("content"))
        text = text_in(content.get("parts")) or text_of(content.get("text"))
        if actor not in ("user", "assistant") or text is None:
            continue
        if content.get("content_type") not in (None, "text", "multimodal_text"):
            continue
        model = object_of(each.get("metadata")).get("model_slug")
        yield message(
            id=text_of(each.get("id")) or f"{session}:{number}",
            text=text,
            actor=actor,
            session=session,
            title=title,
            created_at=milliseconds(each.get("create_time") or conversation.get("create_time")),
            metadata=present({"model": model}),
        )


KIND: Final = ForeignKind(name="chatgpt", title="ChatGPT", missing=missing, read=read)
