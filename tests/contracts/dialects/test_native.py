"""The native dialect: what is remembered is recalled, updated, forgotten and restored."""

from collections.abc import Iterator

import pytest

from tests.contracts.client import Client, Home, OpenClient, connect


@pytest.fixture
def client(daemon: Home) -> Iterator[Client]:
    """A client with a bank of its own."""
    client = connect(daemon, "unix")
    yield client
    client.close()


def test_a_result_has_id_date_source_and_score(client: Client) -> None:
    stored = client.call("remember", text="We release on Fridays", tags=["release"]).json

    found = client.call("recall", query="release day").json

    (memory,) = found["memories"]
    assert memory["id"] == stored["id"]
    assert memory["text"] == "We release on Fridays"
    assert memory["source"] == "contract"  # the name of the client
    assert memory["tags"] == ["release"]
    assert memory["date"].endswith("Z")
    assert 0.1 <= memory["score"] <= 1
    assert "note" not in found


def test_newer_memories_come_before_older_ones_of_nearly_equal_relevance(client: Client) -> None:
    client.call("remember", text="We deploy on Tuesdays")
    client.call("remember", text="We deploy on Wednesdays now")

    found = client.call("recall", query="when do we deploy?").json["memories"]

    assert [memory["text"] for memory in found] == [
        "We deploy on Wednesdays now",
        "We deploy on Tuesdays",
    ]


def test_remembering_a_known_memory_again_makes_it_new(client: Client) -> None:
    first = client.call("remember", text="We deploy on Tuesdays").json
    client.call("remember", text="We deploy on Wednesdays")
    again = client.call("remember", text="We deploy on Tuesdays").json

    assert again == {**first, "known": True}
    newest = client.call("recent", limit=1).json["memories"]
    assert [memory["id"] for memory in newest] == [first["id"]]


def test_tags_filter_and_all_of_them_must_match(client: Client) -> None:
    both = client.call("remember", text="Tea is green", tags=["tea", "colour"]).json["id"]
    one = client.call("remember", text="Tea is hot", tags=["tea"]).json["id"]

    def ids(tool: str, **arguments: object) -> set[str]:
        found = client.call(tool, tags=arguments.pop("tags"), **arguments).json["memories"]
        return {memory["id"] for memory in found}

    assert ids("recall", query="tea", tags=["tea"]) == {both, one}
    assert ids("recall", query="tea", tags=["tea", "colour"]) == {both}
    assert ids("recent", tags=["colour"]) == {both}


def test_an_empty_result_says_what_was_searched_and_withheld(client: Client) -> None:
    nothing = client.call("recall", query="tea").json
    assert nothing["memories"] == []
    assert "(0 entries)" in nothing["note"] and "bank" in nothing["note"]

    client.call("remember", text="We release on Fridays")
    strict = client.call("recall", query="release in Greenland", min_score=1).json
    assert strict["memories"] == []
    assert "(1 entries) was searched by keywords and meaning" in strict["note"]
    assert "1 with a score below 1 withheld" in strict["note"]

    tagged = client.call("recall", query="release", tags=["none"]).json
    assert "with the tag none" in tagged["note"]


def test_an_update_replaces_text_and_tags_and_keeps_the_id(client: Client) -> None:
    id = client.call("remember", text="We deploy on Tuesdays", tags=["old"]).json["id"]

    changed = client.call("update", id=id, text="We deploy on Sundays", tags=["new"]).json

    assert (changed["id"], changed["text"], changed["tags"]) == (
        id,
        "We deploy on Sundays",
        ["new"],
    )
    (found,) = client.call("recall", query="deploy on Sundays").json["memories"]
    assert (found["id"], found["tags"]) == (id, ["new"])
    assert client.call("recall", query="deploy", tags=["old"]).json["memories"] == []


def test_an_update_without_a_change_is_refused(client: Client) -> None:
    id = client.call("remember", text="We deploy on Tuesdays").json["id"]
    assert client.call("update", id=id).text == "Error: text: give a new text, new tags, or both"


def test_forget_returns_a_token_that_restores_the_memory(client: Client) -> None:
    id = client.call("remember", text="We deploy on Tuesdays").json["id"]

    gone = client.call("forget", ids=[id]).json
    assert gone["forgotten"] == 1
    assert client.call("recall", query="deploy").json["memories"] == []

    assert client.call("forget", undo=gone["undo"]).json == {"restored": 1}
    (found,) = client.call("recall", query="deploy").json["memories"]
    assert found["id"] == id
    assert client.call("forget", undo=gone["undo"]).is_error


def test_an_unknown_id_forgets_nothing(client: Client) -> None:
    id = client.call("remember", text="We deploy on Tuesdays").json["id"]

    assert client.call("forget", ids=[id, "nobody"]).text == "Error: no item with id 'nobody'"

    assert len(client.call("recent").json["memories"]) == 1


def test_other_dialects_find_what_native_stores(open_client: OpenClient) -> None:
    client = open_client(bank="native-shared")
    client.call("remember", text="The garden has nine beehives")

    assert client.call("hindsight_search", bank_id="native-shared", query="beehives").json[
        "results"
    ]
    assert client.call("search", query="beehives").json["results"]


def test_clear_context_can_be_undone_with_its_token(client: Client) -> None:
    client.call("mcp__claude-recall__store_memory", content="Never force-push to main")
    cleared = client.call("mcp__claude-recall__clear_context", confirm=True).json

    assert client.call("forget", undo=cleared["undo"]).json == {"restored": 1}
