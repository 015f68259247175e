"""Hostile text, accessibility, tokens, small screens and long lists, in a real browser."""

from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.daemon.web.driver import AXE, SCREENS, Api, Desk, browser, require, serving
from tests.daemon.web.hostile_text import HOSTILE
from tests.support.web import token_file

LONG = 3_000
SECRET = "0123456789abcdef0123456789abcdef01234567"
#: Elements that only stored text could have brought into the page.
FOREIGN = (
    "main script, main iframe, main img, main object, main embed, main form[action], main base"
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    home = tmp_path_factory.mktemp("web")
    with serving(home, HOME=str(home)) as started:
        file = home / "long.jsonl"
        file.write_text(
            "".join(f'{{"text": "entry number {number} of many"}}\n' for number in range(LONG))
        )
        started.ask("POST", "/api/v1/banks", {"name": "long"})
        started.ask("POST", "/api/v1/banks/long/import", {"path": str(file)})
        for number, text in enumerate(HOSTILE):
            started.add(
                f"{text} {number}",
                "hostile",
                title=text,
                tags=[text],
                source=text,
                session=text[:100],
                context=text,
                category=text[:60],
                metadata={"key": text},
            )
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


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.fired") == []
    assert page.locator(FOREIGN).count() == 0


def test_there_are_at_least_200_hostile_texts() -> None:
    assert len(set(HOSTILE)) >= 200


def test_no_hostile_text_runs_on_any_screen(desk: Desk, api: Api) -> None:
    page = desk.open("memories?bank=hostile")
    assert api.total("hostile") == len(HOSTILE)
    box = page.locator(".long")
    for top in range(0, len(HOSTILE) * 62, 600):
        box.evaluate("(node, top) => { node.scrollTop = top }", top)
    expect(page.locator(".long a[data-id]").last).to_be_visible()
    assert_harmless(page)
    for screen in SCREENS:
        desk.go(page, f"{screen}?bank=hostile")
        expect(page.locator("main [role=status]", has_text="Loading")).to_have_count(0)
        assert_harmless(page)
    for text in ("script alert", "<img src=x onerror=alert(1)>", "javascript:alert(1)"):
        desk.go(page, f"search?bank=hostile&min=0&q={quote(text)}")
        expect(page.locator(".hit").first).to_be_visible()
        for button in page.get_by_role("button", name="Why?").all()[:5]:
            button.click()
        page.get_by_role("button", name="As an agent sees it").click()
        expect(page.locator(".agent pre")).to_be_visible()
        assert_harmless(page)
    desk.shoot(page, "hostile")


def test_hostile_text_stays_text_in_a_memory_and_in_its_editor(desk: Desk, api: Api) -> None:
    listed = api.ask("GET", "/api/v1/banks/hostile/memories?limit=500")["memories"]
    page = desk.open("search?bank=hostile")
    for memory in listed[:: len(listed) // 8]:
        desk.go(page, f"memory/{memory['id']}?bank=hostile&edit=1")
        expect(page.get_by_label("Text")).to_have_value(memory["text"])
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("article")).to_have_text(memory["text"])
        assert_harmless(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_screen(chromium: Browser, api: Api, scheme: str) -> None:
    require("axe-core", AXE.is_file())
    desk = Desk(chromium, api.base, color_scheme=scheme)
    source = AXE.read_text()
    page = desk.open("search?bank=long&q=entry")
    memory = api.ask("GET", "/api/v1/banks/long/memories?limit=1")["memories"][0]["id"]
    # The colours differ between the schemes, and nothing else does.
    rules = {"resultTypes": ["violations"]}
    if scheme == "dark":
        rules["runOnly"] = ["color-contrast"]
    found: list[str] = []
    for place in ("search?bank=long&q=entry+7", *SCREENS[1:], f"memory/{memory}"):
        desk.go(page, place if "?" in place else f"{place}?bank=long")
        expect(page.locator("main [role=status]", has_text="Loading")).to_have_count(0)
        desk.shoot(page, f"{place.partition('?')[0].partition('/')[0]}-{scheme}")
        page.evaluate(source)
        result: dict[str, Any] = page.evaluate("(rules) => axe.run(rules)", rules)
        for each in result["violations"]:
            if each["impact"] in ("serious", "critical"):
                found += [f"{place}: {each['id']}: {node['html'][:120]}" for node in each["nodes"]]
    desk.context.close()
    assert found == []
    assert desk.problems == []


def test_every_screen_fits_on_320_pixels(chromium: Browser, api: Api) -> None:
    desk = Desk(chromium, api.base, viewport={"width": 320, "height": 640}, reduced_motion="reduce")
    page = desk.open("search?bank=hostile&q=script")
    for screen in SCREENS:
        desk.go(page, f"{screen}?bank=hostile")
        expect(page.locator("main [role=status]", has_text="Loading")).to_have_count(0)
        desk.shoot(page, f"{screen}-320")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, screen
    desk.context.close()
    assert desk.problems == []


def test_a_long_list_draws_only_the_rows_in_view_and_reaches_its_end(desk: Desk) -> None:
    page = desk.open("memories?bank=long")
    expect(page.locator(".head")).to_contain_text(f"{LONG:,} memories")
    box = page.locator(".long")
    expect(page.locator("a[data-id]").first).to_have_text(f"entry number {LONG - 1} of many")
    box.evaluate("(node) => { node.scrollTop = node.scrollHeight }")
    expect(page.locator("a[data-id]").last).to_have_text("entry number 0 of many")
    assert page.locator(".long-row").count() < 60


def test_the_token_is_entered_once_and_kept_for_the_tab(chromium: Browser, tmp_path: Path) -> None:
    path = token_file(tmp_path, f'[[token]]\nname = "laptop"\nsecret = "{SECRET}"\n')
    with serving(tmp_path, HOME=str(tmp_path), RECALLD_TOKEN_FILE=path) as started:
        Api(started.base, SECRET).add("only with a token")
        desk = Desk(chromium, started.base)
        desk.expected = {401}
        page = desk.context.new_page()
        page.goto(started.base)
        page.get_by_role("dialog").get_by_label("Token").fill(SECRET)
        page.get_by_role("button", name="Use this token").click()
        expect(page.locator("main")).to_contain_text("only with a token")
        expect(page.locator(".live.on")).to_be_visible()
        page.reload()
        expect(page.locator("main")).to_contain_text("only with a token")
        other = desk.context.new_page()
        other.goto(started.base)
        expect(other.get_by_role("dialog").get_by_label("Token")).to_be_visible()
        assert page.evaluate("Object.keys(localStorage).join()").find("token") == -1
        desk.context.close()
        assert desk.problems == []


def test_an_unreachable_daemon_is_explained_and_a_retry_helps(desk: Desk, api: Api) -> None:
    page = desk.open("health")
    expect(page.locator("main")).to_contain_text("Calls per minute")
    page.route("**/api/v1/banks/long/timeline**", lambda route: route.abort())
    page.goto(f"{api.base}/#/timeline?bank=long")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    page.unroute("**/api/v1/banks/long/timeline**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".days")).to_be_visible()
    desk.problems = [each for each in desk.problems if "ERR_FAILED" not in each]


def test_hostile_names_of_banks_and_addresses_stay_text(desk: Desk, api: Api) -> None:
    desk.expected = {400, 404}
    accepted = 0
    for text in HOSTILE:
        try:
            api.ask("POST", "/api/v1/banks", {"name": text})
            accepted += 1
        except AssertionError as refused:
            assert " 400 " in str(refused)
    assert accepted >= 200
    page = desk.open("banks")
    expect(page.locator(".bank option")).to_have_count(accepted + 2)
    assert_harmless(page)
    for text in HOSTILE[:40:4]:
        # The address of the page may name any bank, screen or memory.
        desk.context.pages[0].goto(f"{api.base}/#/search?bank={quote(text)}&q={quote(text)}")
        page.locator("main").wait_for()
        page.goto(f"{api.base}/#/{quote(text)}/{quote(text)}")
        page.locator("main").wait_for()
        assert_harmless(page)
