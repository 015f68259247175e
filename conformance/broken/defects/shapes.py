"""Defects in the members of results, notifications and requests."""

from __future__ import annotations

from conformance.broken.defects.helpers import in_notification, in_result
from conformance.broken.defects.registry import on_notification, on_reply

on_reply("instructions-number", "Z10a", "instructions are a number")(
    in_result("initialize", lambda r: r.update(instructions=5))
)
on_reply("description-number", "Z10b", "a tool's description is a number")(
    in_result("tools/list", lambda r: r["tools"][-1].update(description=5))
)
on_reply("video", "Z10c", "a block has an unknown type")(
    in_result("!echo", lambda r: r["content"].append({"type": "video", "data": ""}))
)
on_reply("nameless-resource", "Z10d", "a resource has no name")(
    in_result("resources/list", lambda r: r["resources"][0].pop("name"))
)
on_reply("prompt-arguments-object", "Z10e", "a prompt's arguments are an object")(
    in_result("prompts/list", lambda r: r["prompts"][-1].update(arguments={"a": 1}))
)
on_reply("number-values", "Z10f", "completions are numbers")(
    in_result("completion/complete", lambda r: r["completion"].update(values=[1]))
)
on_notification("progress-in-words", "Z10g", "progress is a word")(
    in_notification("notifications/progress", lambda p: p.update(progress="half"))
)
on_notification("sampling-without-limit", "Z10h", "a sampling request has no limit")(
    in_notification("sampling/createMessage", lambda p: p.pop("maxTokens"))
)
