"""Review in a real browser: signing in, approving, improving a text, by keyboard-reachable forms, in both themes (rule 8)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.page.conftest import Site, site
from tests.server.page.test_page_in_chromium import CHROMIUM, chromium, page_of, serious
from tests.server.page.test_review import FINDING, HELD, REVIEW_TOKEN, rate, save
from tests.support.servers import listening

__all__ = ["chromium"]  # the fixture

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.timeout(400),
]


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, review_token=REVIEW_TOKEN) as found:
        yield found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_person_signs_in_approves_rates_and_improves(
    review: Site,
    chromium: Any,
    theme: str,
) -> None:
    save(review, HELD)
    entry_id = save(review, FINDING)["id"]
    rate(review, entry_id, "wrong", "it is gone in 5")
    with (
        listening(review.app) as served,
        page_of(chromium, served.url, color_scheme=theme, viewport={"width": 390, "height": 900}) as page,
    ):
        page.goto("/review")
        assert serious(page, theme) == []
        page.get_by_label("Your name").fill("Ann Example")
        page.get_by_label("Review token").fill(REVIEW_TOKEN)
        page.get_by_role("button", name="Sign in to review").click()
        page.get_by_text("You review as Ann Example.").wait_for()
        assert serious(page, theme) == []
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(width) <= 0
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("agents get it from now on").wait_for()
        assert page.get_by_text(str(HELD["answer"])).count() == 0

        page.get_by_role("link", name=str(FINDING["question"])).click()
        page.get_by_text("withdrawn").first.wait_for()
        page.get_by_text("Improve the text").click()
        assert serious(page, theme) == []
        assert page.evaluate(width) <= 0
        text = page.get_by_label("Report, as person:Ann Example")
        text.fill(text.input_value().replace("z.strictObject`", "z.object(...).strict()`"))
        page.get_by_label("What verified it").fill("npm test")
        page.get_by_role("button", name="Save as yours").click()
        page.get_by_text("Your text is kept").wait_for()
        assert page.locator("aside").get_by_text("person:Ann Example").first.is_visible()
        page.get_by_label("Note", exact=True).fill("in our gateway")
        page.get_by_role("button", name="It worked").click()
        page.get_by_text("Your rating is kept").wait_for()
    written = review.client.get(f"/v1/entries/{entry_id}").json()["written_by"]
    assert written == "person:Ann Example"
