"""Measures the web UI in Chromium: first paint, keystroke to painted results, a long list.

    scripts/bench.py browser                   10,000 memories for the search, 100,000 for the list
    scripts/bench.py browser --search 1000 --list 5000 --data DIR

Memories are imported into a data directory and kept there, so a second run only measures. The
search uses the installed model; the list has no vectors. Needs chromium and the development
environment. Run it on a quiet machine.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[2]
FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WORDS: Final = [
    "release",
    "billing",
    "database",
    "deploy",
    "search",
    "memory",
    "session",
    "token",
    "index",
    "cache",
    "vector",
    "schema",
    "migration",
    "meeting",
    "decision",
    "incident",
    "runbook",
    "customer",
    "invoice",
    "latency",
    "backup",
    "restore",
    "daemon",
]
QUERIES: Final = ("release meeting", "backup of the database", "why latency", "deploy decision")

#: Records the time from each key press to the frame that shows the answer to it.
RECORDER: Final = """
window.samples = [];
let began = 0;
addEventListener("keydown", (event) => {
  if (event.key.length === 1) began = event.timeStamp;
}, true);
new MutationObserver(() => {
  if (!began) return;
  const start = began;
  began = 0;
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => samples.push(performance.now() - start);
    channel.port2.postMessage(0);
  });
}).observe(document.querySelector(".tools [role=status]"), {
  childList: true,
  characterData: true,
  subtree: true,
});
"""
#: Scrolls through the list for two seconds and returns the time between frames, in milliseconds.
SCROLL: Final = """
(box) => new Promise((resolve) => {
  const frames = [];
  let last = performance.now();
  const step = (now) => {
    frames.push(now - last);
    last = now;
    box.scrollTop += 400;
    if (frames.length < 120) requestAnimationFrame(step);
    else resolve(frames.slice(1));
  };
  requestAnimationFrame(step);
})
"""


class Daemon:
    """`recalld serve` on a free port, with a data directory of its own."""

    def __init__(self, home: Path, **variables: str) -> None:
        self._environment = {**os.environ, "RECALLD_HOME": str(home), **variables}
        self._command = [sys.executable, "-m", "daemon"]
        self._process = subprocess.Popen(
            [*self._command, "serve", "--bind", "127.0.0.1:0"],
            env=self._environment,
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
        )
        self.base = self._address()

    def _address(self) -> str:
        for _ in range(200):
            said = subprocess.run(
                [*self._command, "status", "--json"],
                env=self._environment,
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            ).stdout
            if said.strip() and json.loads(said).get("http"):
                return str(json.loads(said)["http"])
        raise SystemExit("browser: the daemon did not start")

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=verb)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read())

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def fill(daemon: Daemon, file: Path, count: int, *, with_vectors: bool) -> None:
    """Import `count` memories unless they are there; with vectors, wait until they are computed."""
    if not daemon.ask("GET", "/api/v1/banks")["banks"]:
        chance = random.Random(1)
        with file.open("w") as lines:
            for number in range(count):
                text = " ".join(chance.choices(WORDS, k=14))
                lines.write(json.dumps({"text": f"{text} number {number}"}) + "\n")
        daemon.ask("POST", "/api/v1/banks", {"name": "default"})
        daemon.ask("POST", "/api/v1/banks/default/import", {"path": str(file)})
    if with_vectors:
        daemon.ask("POST", "/api/v1/banks/default/search", {"query": WORDS[0]})
        while daemon.ask("GET", "/api/v1/banks/default")["pending_vectors"]:
            time.sleep(1)


def keystrokes(page: Page, base: str) -> list[float]:
    page.goto(f"{base}/#/search?bank=default")
    page.locator("#q").fill("release meeting")
    page.locator(".hit").first.wait_for(timeout=60_000)
    page.evaluate(RECORDER)
    for query in QUERIES:
        page.locator("#q").fill("")
        for letter in query:
            seen = page.evaluate("samples.length")
            page.keyboard.press("Space" if letter == " " else letter)
            for _ in range(200):
                if page.evaluate("samples.length") > seen:
                    break
    return list(page.evaluate("samples"))


def first_paint(page: Page, address: str) -> list[float]:
    """The first contentful paint of an address in a tab that is open already."""
    found: list[float] = []
    entry = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    page.goto(address)
    for _ in range(15):
        page.reload()
        while (value := page.evaluate(entry)) is None:
            pass
        found.append(float(value))
    return found


def report(name: str, values: list[float]) -> None:
    ordered = sorted(values)
    middle = statistics.median(ordered)
    late = ordered[int(len(ordered) * 0.95)]
    print(f"{name}: p50 {middle:.1f} ms, p95 {late:.1f} ms, {len(ordered)} samples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", type=int, default=10_000, help="memories of the search")
    parser.add_argument("--list", type=int, default=100_000, help="memories of the list")
    parser.add_argument("--data", type=Path, default=ROOT / ".cache" / "browser")
    parser.add_argument("--fill-only", action="store_true", help="import and measure nothing")
    chosen = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for count, variables in (
            (chosen.search, {}),
            (chosen.list, {"RECALLD_EMBEDDING_HASHED": "true"}),
        ):
            home = chosen.data / str(count)
            home.mkdir(parents=True, exist_ok=True)
            daemon = Daemon(home, **variables)
            try:
                fill(daemon, home / "import.jsonl", count, with_vectors=count == chosen.search)
                if chosen.fill_only:
                    continue
                page = browser.new_page(viewport={"width": 1280, "height": 860})
                if count == chosen.search:
                    report("first paint", first_paint(page, daemon.base))
                    almost_empty = "data:text/html,<p>hello"
                    report("first paint of one line", first_paint(page, almost_empty))
                    report(f"key to results, {count:,} memories", keystrokes(page, daemon.base))
                else:
                    page.goto(f"{daemon.base}/#/memories?bank=default")
                    box = page.locator(".long")
                    page.locator("a[data-id]").first.wait_for(timeout=60_000)
                    report(f"frame while scrolling, {count:,} memories", box.evaluate(SCROLL))
                    box.evaluate("(node) => { node.scrollTop = node.scrollHeight }")
                    began = time.monotonic()
                    page.locator("a[data-id]", has_text="number 0").last.wait_for()
                    print(f"jump to the end: {(time.monotonic() - began) * 1000:.0f} ms")
            finally:
                daemon.stop()
        browser.close()


if __name__ == "__main__":
    main()
