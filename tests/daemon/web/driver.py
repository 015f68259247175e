"""A daemon with HTTP in its own process, and Debian's Chromium driven by Playwright.

`Desk` is one browser context. It records console errors, crashes of the page and requests to other
hosts; `Desk.problems` must stay empty. Screenshots go to `.cache/screenshots`.
"""

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.processes import child, status

ROOT: Final = Path(__file__).parents[3]
SCREENSHOTS: Final = ROOT / ".cache" / "screenshots"
AXE: Final = ROOT / ".cache" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
#: The browser must not talk to anybody but the daemon.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENS: Final = (
    "search",
    "timeline",
    "memories",
    "map",
    "knowledge",
    "sources",
    "banks",
    "health",
    "connect",
)


expect.set_options(timeout=20_000)


def require(what: str, is_there: bool) -> None:
    """Skip without a browser on a developer's machine; fail in CI, which must have one."""
    if not is_there:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{what} is missing; scripts/test installs it")
        pytest.skip(f"{what} is missing; run scripts/test as root")


class Api:
    """A small client of the REST API."""

    def __init__(self, base: str, token: str = "") -> None:
        self.base = base
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, self._headers, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{verb} {path}: {error.code} {error.read()!r}") from None

    def add(self, text: str, bank: str = "default", **more: Any) -> dict[str, Any]:
        stored: dict[str, Any] = self.ask(
            "POST", f"/api/v1/banks/{bank}/memories", {"text": text, **more}
        )["memory"]
        return stored

    def get(self, id: str, bank: str = "default") -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/api/v1/banks/{bank}/memories/{id}")
        return found

    def total(self, bank: str = "default", query: str = "") -> int:
        page = self.ask("GET", f"/api/v1/banks/{bank}/memories?limit=1{query}")
        return int(page["total"])


@contextmanager
def serving(home: Path, *arguments: str, **variables: str) -> Generator[Api]:
    """Run `recalld serve` on a free port, with hashed vectors."""
    variables = {"RECALLD_EMBEDDING_HASHED": "true", **variables}
    options = ("serve", "--bind", "127.0.0.1:0", *arguments)
    with child(home, *options, variables=variables) as started:
        assert started.process.stderr is not None
        base = ""
        for _ in range(100):
            try:
                base = status(home)["http"]
                break
            except (KeyError, ValueError):
                assert started.process.poll() is None, started.errors()
        yield Api(base)


@contextmanager
def browser() -> Generator[Browser]:
    found = shutil.which("chromium")
    require("chromium", found is not None)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


class Desk:
    """A browser context with a record of everything that must not happen."""

    def __init__(self, browser: Browser, base: str, **options: Any) -> None:
        self.base = base
        self.problems: list[str] = []
        #: Statuses that a test provokes; the browser reports them as console errors.
        self.expected: set[int] = set()
        self.context: BrowserContext = browser.new_context(
            **{"viewport": {"width": 1280, "height": 860}, "color_scheme": "light", **options}
        )
        self.context.set_default_timeout(20_000)
        self.context.add_init_script("window.fired = []; window.alert = (x) => fired.push(x)")
        self.context.on("page", self._watch)
        self.context.on("request", self._requested)

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            if any(f"status of {status}" in message.text for status in self.expected):
                return
            self.problems.append(f"console: {message.text} {message.location.get('url')}")

    def _requested(self, request: Any) -> None:
        url = request.url
        if not url.startswith((f"{self.base}/", "blob:", "data:")):
            self.problems.append(f"request to {url}")

    def open(self, place: str = "search") -> Page:
        page = self.context.new_page()
        self.go(page, place)
        return page

    def go(self, page: Page, place: str) -> None:
        page.goto(f"{self.base}/#/{place}")
        page.locator("main h1").first.wait_for()

    def shoot(self, page: Page, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png")
