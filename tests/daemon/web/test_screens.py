"""Every screen and operation of the web UI, in a real browser."""

import re
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.daemon.web.driver import Api, Desk, browser, serving

TOPICS = ("release", "billing", "deploy")


def seed(api: Api) -> None:
    for number in range(30):
        topic = TOPICS[number % 3]
        api.add(
            f"The {topic} meeting number {number} decided to ship the {topic} service on Fridays",
            title=f"{topic.title()} note {number}" if number % 5 == 0 else "",
            tags=[topic],
            source=("claude-code", "cursor")[number % 2],
            session="planning" if number % 4 == 0 else None,
            occurred_at=f"2026-11-{number % 9 + 1:02d}T10:00:00Z",
        )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def api(home: Path) -> Generator[Api]:
    with serving(home, HOME=str(home)) as started:
        seed(started)
        yield started


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def desk(chromium: Browser, api: Api) -> Generator[Desk]:
    made = Desk(chromium, api.base)
    yield made
    made.context.close()
    assert made.problems == []


def eventually(check: Callable[[], Any], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def row(page: Page, text: str) -> Any:
    return page.locator("[data-row]", has_text=text)


def test_search_shows_hits_while_typing_with_reasons_and_near_misses(desk: Desk) -> None:
    page = desk.open()
    page.keyboard.type("billing meeting", delay=5)
    first = page.locator(".hit").first
    expect(first.locator("mark").first).to_have_text(re.compile("billing", re.IGNORECASE))
    first.get_by_role("button", name="Why?").click()
    expect(first.locator(".why")).to_contain_text("Words")
    expect(first.locator(".why")).to_contain_text("BM25")
    expect(first.locator(".why")).to_contain_text("Cosine")
    page.get_by_text("Relevant", exact=True).click()
    page.locator("#q").fill("billing xylophone")
    expect(page.locator(".near .hit").first).to_contain_text("is below 0.6")
    expect(page.locator(".near .hit").first).to_contain_text("missing")
    desk.shoot(page, "search")


def test_an_agents_view_shows_the_answer_of_the_tool_and_its_tokens(desk: Desk) -> None:
    page = desk.open("search?q=billing")
    page.get_by_role("button", name="As an agent sees it").click()
    view = page.locator(".agent")
    expect(view).to_contain_text("tokens")
    expect(view.locator("pre")).to_contain_text("billing")


def test_facets_narrow_the_results_and_stay_in_the_address(desk: Desk) -> None:
    page = desk.open("search?q=meeting")
    page.get_by_role("button", name=re.compile("^cursor")).click()
    expect(page.locator(".hit .meta", has_text="claude-code")).to_have_count(0)
    eventually(lambda: "sources=cursor" in page.evaluate("location.hash"))
    page.reload()
    expect(page.get_by_role("button", name=re.compile("^cursor"))).to_have_attribute(
        "aria-pressed", "true"
    )


def test_the_timeline_shows_a_memory_of_another_client_at_once(desk: Desk, api: Api) -> None:
    page = desk.open("timeline")
    expect(page.locator(".days h2").first).to_be_visible()
    expect(page.locator(".live.on")).to_be_visible()

    api.add("A live event from another program", source="other")

    expect(row(page, "A live event from another program")).to_be_visible()
    desk.shoot(page, "timeline")


def test_a_memory_is_edited_and_its_parts_are_shown(desk: Desk, api: Api) -> None:
    memory = api.add("The draft of the plan", tags=["plan"], session="planning")
    page = desk.open(f"memory/{memory['id']}")
    expect(page.locator(".head")).to_contain_text("Stored by")
    for part in ("History", "Before and after", "Similar", "Raw JSON"):
        expect(page.get_by_role("heading", name=part)).to_be_visible()
    page.keyboard.press("e")
    page.get_by_label("Text").fill("The final plan")
    page.get_by_label("Tags").fill("plan, final")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article")).to_have_text("The final plan")
    stored = api.get(memory["id"])
    assert (stored["text"], stored["tags"]) == ("The final plan", ["plan", "final"])
    desk.shoot(page, "memory")


def test_two_tabs_detect_a_conflicting_edit_and_overwrite_nothing(desk: Desk, api: Api) -> None:
    desk.expected = {409}
    memory = api.add("The first version of a shared text")
    place = f"memory/{memory['id']}?edit=1"
    mine, other = desk.open(place), desk.open(place)
    mine.get_by_label("Text").fill("My version")
    other.get_by_label("Text").fill("The version of the other tab")
    other.get_by_role("button", name="Save").click()
    expect(other.locator("article")).to_have_text("The version of the other tab")

    mine.get_by_role("button", name="Save").click()

    conflict = mine.locator(".conflict")
    expect(conflict).to_contain_text("The version of the other tab")
    assert api.get(memory["id"])["text"] == "The version of the other tab"
    expect(mine.get_by_label("Text")).to_have_value("My version")
    desk.shoot(mine, "conflict")
    conflict.get_by_role("button", name="Save mine over it").click()
    expect(mine.locator("article")).to_have_text("My version")
    expect(other.locator("article")).to_have_text("My version")
    assert api.get(memory["id"])["text"] == "My version"


def test_a_forgotten_memory_comes_back_with_undo_also_after_a_reload(desk: Desk, api: Api) -> None:
    api.add("Something to forget and to bring back")
    before = api.total()
    page = desk.open("memories?contains=bring")
    page.locator("a[data-id]", has_text="Something to forget").focus()
    page.keyboard.press("x")
    expect(page.locator(".message")).to_contain_text("Forgot")
    assert api.total() == before - 1
    page.locator(".message").get_by_role("button", name="Undo").click()
    expect(page.locator(".message", has_text="Undone")).to_be_visible()
    assert api.total() == before
    page.locator("a[data-id]", has_text="Something to forget").focus()
    page.keyboard.press("x")
    eventually(lambda: api.total() == before - 1)
    page.reload()
    page.get_by_role("button", name="Undo …").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).first.click()
    eventually(lambda: api.total() == before)


def test_erasing_says_what_it_does_and_asks_first(desk: Desk, api: Api) -> None:
    memory = api.add("A secret that must go")
    before = api.total()
    page = desk.open(f"memory/{memory['id']}")
    page.get_by_role("button", name="Erase …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be undone")
    expect(dialog).to_contain_text("does not reach")
    assert dialog.get_by_role("button", name="Erase for good").is_disabled()
    dialog.get_by_label("Type erase").fill("erase")
    dialog.get_by_role("button", name="Erase for good").click()
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    assert api.total() == before - 1


def test_many_memories_are_previewed_tagged_moved_exported_and_undone(desk: Desk, api: Api) -> None:
    api.ask("POST", "/api/v1/banks", {"name": "archive"})
    for number in range(7):
        api.add(f"bulk entry {number}", source="bulk")
    page = desk.open("memories?sources=bulk")
    page.get_by_label("Select all 7").check()
    page.get_by_role("button", name="Tag", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("7 memories")
    expect(dialog).to_contain_text("bulk entry 6")
    dialog.get_by_label("Tags").fill("seen")
    dialog.get_by_role("button", name="Add tags").click()
    expect(page.locator(".message")).to_contain_text("Tagged 7 memories")
    assert api.total(query="&tags=seen") == 7
    page.locator(".message").get_by_role("button", name="Undo").click()
    eventually(lambda: api.total(query="&tags=seen") == 0)
    page.get_by_label("Select all 7").check()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Export").click()
    assert Path(download.value.path()).read_text().count("bulk entry") >= 7
    page.get_by_role("button", name="Move").click()
    dialog.get_by_label("To the bank").select_option("archive")
    dialog.get_by_role("button", name="Move").click()
    eventually(lambda: api.total("archive") == 7)
    assert api.total(query="&sources=bulk") == 0
    page.keyboard.press("u")
    eventually(lambda: api.total(query="&sources=bulk") == 7)
    page.get_by_label("Select all 7").check()
    page.get_by_role("button", name="Forget").click()
    dialog.get_by_role("button", name="Forget").click()
    expect(page.locator(".empty")).to_contain_text("No memory matches")
    page.keyboard.press("u")
    eventually(lambda: api.total(query="&sources=bulk") == 7)


def test_knowledge_shows_quotations_and_changes_a_status(desk: Desk, api: Api) -> None:
    content = {
        "knowledge_cards": [
            {"category": "decision", "title": "Ship on Fridays", "summary": "We ship on Fridays"}
        ],
        "risks": [{"title": "Weekend outage", "detail": "Nobody is there", "level": "high"}],
        "action_items": [{"title": "Write the runbook", "detail": "before Friday"}],
    }
    api.ask(
        "POST",
        "/tools/awareness_record",
        {"action": "submit_insights", "memory_id": "default", "content": content},
    )
    page = desk.open("knowledge")
    expect(row(page, "Ship on Fridays")).to_contain_text("verified")
    page.get_by_text("Risks", exact=True).click()
    expect(row(page, "Weekend outage")).to_contain_text("high")
    page.get_by_text("Skills", exact=True).click()
    expect(page.locator("main")).to_contain_text(re.compile("skills", re.IGNORECASE))
    page.get_by_text("Tasks", exact=True).click()
    row(page, "Write the runbook").get_by_label("Status").select_option("completed")
    expect(page.locator(".message")).to_contain_text("Saved")
    tasks = api.ask("GET", "/api/v1/banks/default/tasks?statuses=completed")["tasks"]
    assert [task["title"] for task in tasks] == ["Write the runbook"]
    desk.shoot(page, "knowledge")


def test_a_source_is_synced_and_its_documents_are_listed(desk: Desk, api: Api, home: Path) -> None:
    folder = home / "notes"
    folder.mkdir()
    for number in range(4):
        (folder / f"note{number}.md").write_text(f"# Note {number}\n\nText of note {number}.\n")
    definition = {"kind": "filesystem", "root": str(folder)}
    api.ask("POST", "/api/v1/sources", {"name": "notes", "definition": definition})
    page = desk.open("sources")
    page.get_by_role("button", name="Sync now").click()
    expect(page.get_by_label("notes", exact=True)).to_contain_text("4 added")
    expect(page.get_by_label("notes", exact=True)).to_contain_text("healthy")
    page.get_by_role("button", name="Documents").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("Note 2|note2")).click()
    expect(page.get_by_role("dialog").locator("ol a").first).to_be_visible()
    desk.shoot(page, "sources")


def test_a_bank_is_created_checked_backed_up_restored_and_imported_into(
    desk: Desk, api: Api, home: Path
) -> None:
    desk.expected = {503}  # the answer while the bank is being restored
    file = home / "import.jsonl"
    file.write_text("".join(f'{{"text": "imported {number}"}}\n' for number in range(5)))
    page = desk.open("banks")
    page.get_by_label("Name of a new bank").fill("fresh")
    page.get_by_role("button", name="Create").click()
    bank = page.get_by_label("fresh", exact=True)
    bank.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("A file or folder").fill(str(file))
    dialog.get_by_role("button", name="Dry run").click()
    expect(dialog).to_contain_text("5 would be imported")
    assert api.total("fresh") == 0
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog).to_contain_text("5 imported")
    dialog.get_by_role("button", name="Close").first.click()
    bank.get_by_role("button", name="Check").click()
    expect(bank).to_contain_text("No problem found in 5 rows")
    bank.get_by_role("button", name="Backups").click()
    dialog.get_by_role("button", name="Back up now").click()
    expect(dialog.locator("tbody tr")).to_have_count(1)
    expect(dialog.locator("tbody tr")).to_contain_text("/")
    api.add("after the backup", "fresh")
    page.on("dialog", lambda asked: asked.accept())
    dialog.get_by_role("button", name="Restore").first.click()
    expect(page.locator(".message", has_text="Restored 5 memories")).to_be_visible()
    assert api.total("fresh") == 5
    desk.shoot(page, "banks")


def test_health_shows_problems_calls_and_latency(desk: Desk) -> None:
    page = desk.open("health")
    expect(page.locator("main")).to_contain_text("Nothing is degraded")
    for part in ("Calls per minute", "Search latency", "Slow calls", "Connected clients"):
        expect(page.get_by_role("heading", name=part)).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Calls in the last hour"))).to_be_visible()
    desk.shoot(page, "health")


def test_the_first_run_stores_and_finds_a_memory_and_an_entry_is_tested(desk: Desk) -> None:
    page = desk.open("connect")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("Stored.")).to_be_visible()
    page.get_by_label("2. A question").fill("when does the release train leave?")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("Found it.")).to_be_visible()
    client = page.locator("details", has_text="Cursor").first
    client.locator("summary").click()
    expect(client).to_contain_text("mcp.json")
    client.get_by_role("button", name="Test the connection").click()
    expect(client.get_by_role("status")).to_contain_text("tools", timeout=30_000)
    desk.shoot(page, "connect")


def test_the_map_draws_memories_and_a_click_opens_one(desk: Desk) -> None:
    page = desk.open("map")
    canvas = page.get_by_role("img", name=re.compile("Map of"))
    expect(canvas).to_be_visible()
    page.get_by_text("Session", exact=True).click()
    expect(page.locator(".legend")).to_contain_text("planning")
    page.get_by_role("button", name="Zoom in").click()
    desk.shoot(page, "map")
    page.locator("main li a").first.click()
    expect(page.locator("article")).to_be_visible()


def test_everything_can_be_reached_with_the_keyboard(desk: Desk) -> None:
    page = desk.open("timeline")
    page.keyboard.press("/")
    expect(page.get_by_role("heading", name="Search")).to_be_visible()
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("deploy")
    expect(page.locator(".hit mark").first).to_have_text("deploy")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(1).locator("a.snippet")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("article")).to_contain_text("deploy")
    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page.get_by_role("heading", name="Banks")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
