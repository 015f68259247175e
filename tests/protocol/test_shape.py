"""Results in the form of each revision."""

from typing import Any

import msgspec
import pytest

from protocol.mcp import (
    Annotations,
    AudioContent,
    CallToolResult,
    Content,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    InputRequired,
    Prompt,
    PromptArgument,
    PromptMessage,
    ResourceLink,
    ServerInfo,
    TextContent,
    TextResource,
    Tool,
    ToolAnnotations,
    error_result,
    text_result,
)
from protocol.revisions import ALL, LEGACY, MODERN, R2024_11_05, R2025_03_26, R2025_06_18, Revision
from protocol.shape import CacheHint, Shaper, shape_listing, shape_tools

SHAPER = Shaper(ServerInfo(name="recalld", version="1", title="t", description="d"))
EVERYTHING: list[Content] = [
    TextContent(text="t", annotations=Annotations(audience=["user"])),
    ImageContent(data="AA==", mime_type="image/png"),
    AudioContent(data="AA==", mime_type="audio/wav"),
    ResourceLink(uri="memory://a", name="a"),
    EmbeddedResource(resource=TextResource(uri="memory://b", text="b")),
]


def result(payload: Any, revision: Revision | None, hint: CacheHint | None = None) -> Any:
    return msgspec.json.decode(SHAPER.result(payload, revision, hint))


@pytest.mark.parametrize("revision", LEGACY.values(), ids=lambda r: r.date)
def test_legacy_results_have_no_modern_members(revision: Revision) -> None:
    assert result({"a": 1}, revision, CacheHint(5)) == {"a": 1}
    assert result(b"{}", revision) == {}
    assert result({}, None) == {}


def test_modern_results_have_a_type_and_the_server_info() -> None:
    shaped = result({}, MODERN)
    assert shaped["resultType"] == "complete"
    assert shaped["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "recalld"
    hinted = result(b'{"a":1}', MODERN, CacheHint(ttl_ms=5))
    assert (hinted["ttlMs"], hinted["cacheScope"], hinted["a"]) == (5, "private", 1)
    asked = result(InputRequired(input_requests={"k": {}}), MODERN)
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {"k": {}}


@pytest.mark.parametrize("revision", ALL, ids=lambda r: r.date)
def test_content_is_limited_to_the_types_of_the_revision(revision: Revision) -> None:
    shaped = msgspec.json.decode(SHAPER.tool_result(CallToolResult(content=EVERYTHING), revision))
    kinds = [block["type"] for block in shaped["content"]]
    assert len(kinds) == len(EVERYTHING)
    assert set(kinds) <= revision.content


def test_unsupported_content_becomes_text() -> None:
    shaped = msgspec.json.decode(
        SHAPER.tool_result(CallToolResult(content=EVERYTHING), R2024_11_05)
    )
    texts = [block["text"] for block in shaped["content"] if block["type"] == "text"]
    assert any("memory://a" in text for text in texts)
    assert any("audio/wav" in text for text in texts)


def test_structured_content_exists_since_2025_06_18_and_text_everywhere() -> None:
    given = CallToolResult(content=[TextContent(text='{"n":1}')], structured_content={"n": 1})
    old = msgspec.json.decode(SHAPER.tool_result(given, R2025_03_26))
    new = msgspec.json.decode(SHAPER.tool_result(given, R2025_06_18))
    assert "structuredContent" not in old
    assert new["structuredContent"] == {"n": 1}
    assert old["content"] == new["content"]
    assert msgspec.json.decode(SHAPER.tool_result(given, None))["structuredContent"] == {"n": 1}


def test_only_an_error_result_has_is_error() -> None:
    assert "isError" not in msgspec.json.decode(SHAPER.tool_result(text_result("a"), R2024_11_05))
    assert msgspec.json.decode(SHAPER.tool_result(error_result("a"), MODERN))["isError"] is True


def test_tools_have_the_members_that_the_revision_defines() -> None:
    tool = Tool(
        name="a",
        title="A",
        description="d",
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        annotations=ToolAnnotations(read_only_hint=False),
    )
    for revision in ALL:
        (shaped,) = shape_tools([tool], revision)
        assert set(shaped) <= revision.tool_fields
    assert "annotations" not in shape_tools([tool], R2024_11_05)[0]
    assert "outputSchema" in shape_tools([tool], R2025_06_18)[0]


def test_titles_in_lists_exist_since_2025_06_18() -> None:
    prompt = Prompt(name="p", title="P", arguments=[PromptArgument(name="a", title="A")])
    assert shape_listing([prompt], R2025_03_26) == [{"name": "p", "arguments": [{"name": "a"}]}]
    assert shape_listing([prompt], R2025_06_18)[0]["title"] == "P"


def test_prompt_messages_are_shaped_like_content() -> None:
    prompt = GetPromptResult(messages=[PromptMessage(role="user", content=EVERYTHING[3])])
    old = msgspec.json.decode(SHAPER.prompt_result(prompt, R2024_11_05))
    assert old["messages"][0]["content"]["type"] == "text"
    assert msgspec.json.decode(SHAPER.prompt_result(prompt, None))["messages"]


def test_server_info_has_the_members_that_the_revision_defines() -> None:
    assert set(SHAPER.server_info(R2024_11_05)) == {"name", "version"}
    assert set(SHAPER.server_info(R2025_06_18)) == {"name", "version", "title"}
    assert "description" in SHAPER.server_info(MODERN)
