"""The page in a real browser: scripts of strangers that must not run, themes and widths, the keyboard (rule 8)."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kr.server.page import VIEWS
from tests.server.page.conftest import Site
from tests.support.servers import listening
from tests.support.stores import ROOT

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.timeout(400),  # a browser and what it shows share the machine with the rest of the suite
]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = (ROOT / "tests" / "data" / "axe" / "axe.min.js").read_text(encoding="utf-8")
WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
RULES = {"light": WCAG, "dark": {"type": "rule", "values": ["color-contrast"]}}
"""Of axe, by theme: they differ in their colours alone."""


@pytest.fixture(scope="module")
def address(sprint: Site) -> Iterator[str]:
    """Serve the page on a port of loopback."""
    with listening(sprint.app) as served:
        yield served.url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def page_of(chromium: Any, address: str, **options: Any) -> Iterator[Any]:
    """Open a page that must say nothing on the console: a script that was refused, or failed, says something."""
    context = chromium.new_context(base_url=address, **options)
    page = context.new_page()
    said: list[str] = []
    page.on(
        "console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page
        assert said == []
    finally:
        context.close()


def serious(page: Any, theme: str) -> list[Any]:
    """Return what axe finds serious."""
    page.evaluate(AXE)
    found = page.evaluate("only => axe.run(document, {runOnly: only})", RULES[theme])["violations"]
    bad = [rule for rule in found if rule["impact"] in {"serious", "critical"}]
    return [(rule["id"], node["html"], node["failureSummary"]) for rule in bad for node in rule["nodes"]]


def hostile_entry(page: Any) -> str:
    page.goto("/entries?framework=vue")
    return str(page.locator("#found tbody a").first.get_attribute("href"))


def addresses(page: Any) -> list[str]:
    return [*VIEWS, "/entries?q=cleanup", "/entries?q=zzzz", hostile_entry(page)]


@pytest.mark.effort(10, least=3)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_no_script_of_strangers_runs(
    chromium: Any, address: str, theme: str, effort: int
) -> None:
    with page_of(chromium, address, color_scheme=theme) as page:
        first = ["/", "/candidates", "/lessons", hostile_entry(page)]
        for path in [*first, *(path for path in addresses(page) if path not in first)][:effort]:
            page.goto(path)
            assert page.title().endswith(" · kr"), path  # the hostile text would name it
            for summary in page.locator("summary").all():
                summary.click()
            assert serious(page, theme) == [], path


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_window(chromium: Any, address: str, width: int) -> None:
    with page_of(chromium, address, viewport={"width": width, "height": 900}) as page:
        for path in addresses(page):
            page.goto(path)
            over = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, path


def test_a_choice_is_made_by_the_keyboard(chromium: Any, address: str) -> None:
    with page_of(chromium, address) as page:
        page.goto("/candidates")
        question = page.locator("article.need h2").first.inner_text()
        before = page.locator("article.need").count()
        page.locator("article.need").first.get_by_role("button", name="This answers").first.focus()
        page.keyboard.press("Enter")
        page.get_by_role("status").filter(has_text="From now on this wording finds").wait_for()
        page.locator(".message:focus").wait_for()  # a moment later; the focus is not lost with the button
        after = page.locator("article.need h2").all_inner_texts()
        assert question not in after
        assert len(after) == before - 1


def test_the_first_tab_leads_to_the_content(chromium: Any, address: str) -> None:
    with page_of(chromium, address) as page:
        page.goto("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.locator("#main:focus").wait_for()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('main') !== null")
