"""The page as its HTML: what each view says, what forms do, and what nobody may do (rule 8)."""

import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from kr.server.page import ACTIONS, VIEWS
from kr.store import saving
from tests.server.page.conftest import Site, message, one, post, site, soup
from tests.support.program import request
from tests.support.sprint import SCRIPT
from tests.support.stores import draft

TOKEN = "a-token-of-sixteen-characters"
OURS = re.compile(
    "html|head|meta|title|link|body|a|header|div|span|nav|ul|li|main|p|footer|h[1-4]|strong|dl|dt|dd|section|svg|line|g|rect"
    "|text|circle|table|thead|tbody|tr|th|td|details|summary|form|label|input|select|option|button|time|article|aside|code|pre"
    "|ol|blockquote|i|b|em|mark"
)
"""The elements of the page: a hostile text brings none of its own."""


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_says_what_it_is_and_may_load_nothing_from_elsewhere(sprint: Site, path: str) -> None:
    response = sprint.client.get(path)
    page = BeautifulSoup(response.text, "html.parser")
    assert (response.status_code, len(page.select("h1"))) == (200, 1)
    assert one(page, f'nav a[href="{path}"]')["aria-current"] == "page"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", VIEWS)
def test_an_empty_knowledge_base_says_what_to_do_next(empty: Site, path: str) -> None:
    page = soup(empty, path)
    if path != "/candidates":
        assert one(page, ".empty code"), page.get_text()
    assert one(page, ".empty h2")
    assert not empty.project.database.exists()  # looking makes nothing


@pytest.mark.parametrize("path", [*VIEWS, "/entries?framework=vue", "/lessons?phase=code-review", "entry"])
def test_hostile_text_is_text(sprint: Site, path: str) -> None:
    if path == "entry":
        path = str(one(soup(sprint, "/entries?framework=vue"), "#found tbody a")["href"])
    page = soup(sprint, path)
    assert all(OURS.fullmatch(tag.name) for tag in page.find_all(True))
    for tag in page.find_all(True):
        assert not [name for name in tag.attrs if name.startswith("on") or name in {"style", "srcdoc"}]
        assert str(tag.get("href", "/")).startswith(("/", "?", "#", "https://"))


def test_the_report_stands_with_its_code_highlighted_and_its_links_marked(sprint: Site) -> None:
    link = one(soup(sprint, "/entries?framework=vue"), "#found tbody a")
    report = one(soup(sprint, str(link["href"])), ".report")
    assert [heading.get_text() for heading in report.select("h2")][:3] == [
        "Summary",
        "Details",
        "Code Examples",
    ]
    assert report.select("pre code span")
    assert SCRIPT in report.get_text()
    links = {str(found["href"]): found["rel"] for found in report.select("a")}
    assert "https://example.org/ok" in links
    assert all(rel == ["noopener", "noreferrer", "nofollow"] for rel in links.values())


def test_a_search_finds_and_a_filter_narrows(sprint: Site) -> None:
    found = [
        row.get_text() for row in soup(sprint, "/entries?q=useEffect+cleanup").select("#found tbody th a")
    ]
    assert found
    assert "useEffect" in found[0]
    statuses = {
        row.get_text()
        for row in soup(sprint, "/entries?status=stale").select("#found tbody td:nth-of-type(4)")
    }
    assert statuses == {"stale"}
    assert "Nothing fits" in soup(sprint, "/entries?q=zzzzzz").get_text()
    assert soup(sprint, "/entries?page=-3&status=nonsense").select("#found tbody tr")


def test_from_a_question_that_candidates_were_offered_to_to_a_hit_by_its_wording(empty: Site) -> None:
    with empty.project.app() as app:
        saving.save(
            app.store,
            draft("vue", "repeatable options"),
            "# repeatable\n\nGiven twice.\n",
            empty.project.clock(),
        )
    query = {
        "framework": "vue",
        "framework_version": "8",
        "topic": "repeatable arguments",
        "tags": ["arguments"],
    }
    asked = request(config_overrides={"if_unsure": "candidates"})
    asked["research_query"] = {**query, "question": "Can an argument be given twice?"}

    def ask() -> Any:
        return empty.client.post("/v1/research", json=asked).json()

    assert [near["id"] for near in ask()["results"]["related"]] == ["vue-repeatable-options"]
    need = one(soup(empty, "/candidates"), "article.need")
    assert "Can an argument be given twice?" in need.get_text()
    assert "finds the entry" in message(empty, post(empty, one(need, ".near form")))
    answer = ask()
    assert (answer["status"], answer["results"]["cache_entry_id"]) == ("cache-hit", "vue-repeatable-options")
    assert "Can an argument be given twice?" in soup(empty, "/entries/vue-repeatable-options").get_text()


def test_saying_that_none_answers_settles_it_without_a_wording(sprint: Site) -> None:
    before = sprint.project.sql("SELECT count(*) FROM wordings")
    settled = post(sprint, soup(sprint, "/candidates").select("article.need > form")[-1])
    assert "none of them" in message(sprint, settled)
    assert sprint.project.sql("SELECT count(*) FROM wordings") == before


def test_an_entry_that_was_not_near_cannot_be_the_answer(sprint: Site) -> None:
    form = soup(sprint, "/candidates").select("article.need form")[0]
    response = post(sprint, form, entry="vue-elsewhere")
    assert (response.status_code, "was not offered" in response.text) == (404, True)


def test_what_is_archived_comes_back(sprint: Site) -> None:
    link = soup(sprint, "/entries").select("#found tbody a")[3]
    form = one(soup(sprint, str(link["href"])), "aside form")
    assert "in the archive" in message(sprint, post(sprint, form))
    row = one(soup(sprint, "/archive?reason=manual"), "tbody tr")
    assert link.get_text() in row.get_text()
    restore = one(row, "form")
    assert "live again" in message(sprint, post(sprint, restore))
    assert link.get_text() in soup(sprint, "/entries").get_text()
    # The form of before: it has left the archive.
    assert post(sprint, restore).status_code == 404


def test_an_earlier_text_is_read_where_the_present_one_stands(empty: Site) -> None:
    with empty.project.app() as app:
        for text in ("# a\n\nThe first text.\n", "# a\n\nThe present text.\n"):
            saving.save(app.store, draft("vue", "slots"), text, empty.project.clock())
    page = soup(empty, "/entries/vue-slots")
    assert "The present text." in one(page, ".report").get_text()
    earlier = soup(empty, str(one(page, ".facts li a")["href"]))
    assert "The first text." in one(earlier, ".report").get_text()
    assert one(earlier, ".notice a")["href"] == "/entries/vue-slots"
    for number in ("7", "0", "99999"):
        soup(empty, f"/entries/vue-slots?text={number}", status=404)


def test_lessons_are_shown_by_phase_and_judged(sprint: Site) -> None:
    page = soup(sprint, "/lessons")
    chips = [chip.get_text(" ", strip=True).split()[0] for chip in page.select(".chips a")]
    assert chips == [
        "All",
        "story-creation",
        "story-review",
        "dev-execution",
        "code-review",
        "e2e-inspection",
    ]
    assert "2 lessons held back" in one(page, ".notice").get_text()  # test_review.py: a reviewer judges them
    item = one(soup(sprint, "/lessons?phase=code-review"), "#list .lesson.live")
    text = one(item, ".summary").get_text()
    retire = next(form for form in item.select("form") if "Retire" in form.get_text())
    assert "not given" in message(sprint, post(sprint, retire))
    lessons = soup(sprint, "/lessons?phase=code-review").select("#list .lesson.retired")
    assert text in [one(item, ".summary").get_text() for item in lessons]
    for mark in ("bring-back", "pin", "unpin"):
        assert post(sprint, retire, mark=mark).status_code == 303
    assert post(sprint, retire, mark="delete").status_code == 404
    assert post(sprint, retire, id="none").status_code == 404


def test_stories_and_sources_tell_what_they_cost(sprint: Site) -> None:
    rows = soup(sprint, "/spending").select("tbody tr")
    charged = [int(row.select("td.num")[0].get_text()) for row in rows]
    assert charged == sorted(charged, reverse=True)
    ((total,),) = sprint.project.sql("SELECT count(*) FROM source_calls WHERE charged")
    assert f"{total:,} calls" in one(soup(sprint, "/spending"), ".lead").get_text(" ", strip=True)
    cards = {one(card, "h2").get_text(" ", strip=True) for card in soup(sprint, "/sources").select(".card")}
    assert cards == {"context7 working", "deepwiki paused", "web_search working"}


@pytest.mark.parametrize("path", [*ACTIONS, "/sign-in", "/sign-out"])
@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://localhost:1"])
def test_a_form_of_another_page_is_refused(sprint: Site, path: str, origin: str | None) -> None:
    before = list(sprint.project.sql("SELECT * FROM requests"))
    headers = {} if origin is None else {"Origin": origin}
    response = sprint.client.post(path, data={"id": "x", "request": "r0000"}, headers=headers)
    assert response.status_code == 403
    assert sprint.project.sql("SELECT * FROM requests") == before


@pytest.mark.parametrize("entry_id", ["none", "..%2f..%2fetc%2fpasswd", "a/b", "%00", SCRIPT])
def test_an_id_that_nothing_has_is_a_page(sprint: Site, entry_id: str) -> None:
    page = soup(sprint, f"/entries/{entry_id}", status=404)
    assert one(page, "[role=alert]")
    assert not page.select("script")


def test_a_database_that_cannot_serve_is_told_on_the_page(empty: Site) -> None:
    empty.project.base.mkdir(parents=True)
    empty.project.database.write_bytes(b"no database" * 100)
    for path in VIEWS.keys() - {"/lessons"}:  # their file is the authority: they need no database
        assert "kr.db" in one(soup(empty, path, status=503), "[role=alert]").get_text()


def test_outside_loopback_a_person_signs_in_with_the_token(tmp_path: Path) -> None:
    with site(tmp_path, token=TOKEN) as closed:
        client, html_wanted = closed.client, {"accept": "text/html"}
        assert client.get("/entries").status_code == 401  # a program is told so
        sent = client.get("/entries", headers=html_wanted)
        assert (sent.status_code, sent.headers["location"]) == (303, "/sign-in")
        form = one(soup(closed, sent.headers["location"]), "form")
        wrong = post(closed, form, token="guessed-guessed-guessed")
        assert (wrong.status_code, "That is not the token" in wrong.text) == (403, True)
        assert client.get("/entries").status_code == 401
        right = post(closed, form, token=TOKEN)
        assert (right.status_code, right.headers["location"]) == (303, "/")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in cookie
        leave = one(soup(closed, "/entries"), "form.sign-out")
        copied = dict(client.cookies)
        assert post(closed, leave).status_code == 303
        assert (
            client.get("/entries", headers={"Cookie": f"kr_session={copied['kr_session']}"}).status_code
            == 401
        )
        assert client.get("/entries", headers=html_wanted).status_code == 303
        assert client.get("/v1/stats", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
