"""Defects of the skills extension."""

from __future__ import annotations

from typing import Any

from conformance.broken.defects.helpers import failure, in_result, method
from conformance.broken.defects.registry import on_reply


def listed(name: str, cases: str, about: str, change: Any) -> None:
    """A defect of the entries of skills/list."""
    on_reply(name, cases, about)(in_result("skills/list", lambda r: change(r["skills"][0])))


on_reply("skills-without-resources", "E20a", "skills are declared without resources")(
    in_result("server/discover", lambda r: r["capabilities"].pop("resources", None))
)
listed(
    "skill-without-description", "E20b", "a skill has no description",
    lambda e: e["frontmatter"].pop("description"),
)  # fmt: skip
listed(
    "skill-in-another-folder", "E20c", "a skill is not in the folder of its name",
    lambda e: e["frontmatter"].update(name="other"),
)  # fmt: skip
listed(
    "skill-with-a-wrong-size", "E20f", "the size of a file is wrong",
    lambda e: e["resources"][0].update(size=1),
)  # fmt: skip
on_reply("skill-got-differs", "E20d", "skills/get gives another entry")(
    in_result("skills/get", lambda r: r.update(frontmatter={}))
)


@on_reply("unknown-skill-internal", "E20e", "an unknown skill is an internal error")
def _(connection: Any, request: Any, reply: Any) -> Any:
    is_error = method(request) == "skills/get" and "error" in reply
    return failure(reply, -32603) if is_error else reply
