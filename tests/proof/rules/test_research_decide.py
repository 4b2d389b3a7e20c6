"""Which entries are served and offered, and what a research's status is (SPEC 3.2 to 3.4)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log1p
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.models import Entry, Query, Ratings, ResearchStatus, SourceAttempt
from kr.research.decide import (
    Candidate,
    choose,
    judge,
    judge_all,
    match_of,
    offered,
    overlap,
    rank,
    related_of,
    same_topic,
    shared_tags,
    summary_in,
    tier_of,
    with_confidence,
)
from kr.research.miss import research_status
from kr.settings.model import KnowledgeResearch
from kr.times import to_text

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ENTRY = Entry(
    id="vue-1",
    framework="vue",
    framework_version="3.5",
    topic="virtual scrolling",
    tags=("lists",),
    path="frameworks/vue/1.md",
    created=to_text(NOW),
    last_accessed=to_text(NOW),
    status="fresh",
    confidence="high",
)
INSTALLED = replace(ENTRY, fresh_until=to_text(NOW + timedelta(hours=20)))
FINDING = replace(ENTRY, origin="finding")
STALE = replace(ENTRY, status="stale")
SURE, SEED = KnowledgeResearch(), KnowledgeResearch(cache_match="seed", cache_match_floor="framework+topic")


def ago(days: float) -> str:
    return to_text(NOW - timedelta(days=days))


def known(
    one: Entry, ratings: Ratings | None = None, *, is_wording: bool = False, **changes: Any
) -> Candidate:
    [found] = judge_all([(replace(one, **changes), ratings or Ratings(), is_wording)], "3", SURE, NOW)
    return found


def query(topic: str = "virtual scrolling", *tags: str, question: str = "How?") -> Query:
    return Query(framework="vue", framework_version="3", topic=topic, tags=tags, question=question)


def served(asked: Query, held: list[Candidate], rules: KnowledgeResearch) -> Candidate | None:
    chosen = choose(asked, held, rules)
    return chosen and chosen[0]


# --- how fresh an entry is


@pytest.mark.parametrize(
    ("entry", "version", "reasons", "major"),
    [
        (ENTRY, "3", (), None),
        (ENTRY, "4", ("version 3.5, asked for 4",), "4"),
        (replace(STALE, stale_major="4"), "4.1", ("version 3.5, asked for 4.1",), "4"),
        (replace(STALE, stale_major="4"), "3", (), None),
        (STALE, "3", ("marked stale",), None),
        (STALE, "4", ("marked stale", "version 3.5, asked for 4"), None),
        (replace(ENTRY, last_accessed=ago(31)), "3", ("last accessed 31 days ago, more than 30",), None),
        (replace(STALE, origin="placeholder"), "3", ("a placeholder: nothing was found",), None),
    ],
)
def test_marks_are_stored_once_and_for_the_major_that_they_are_about(
    entry: Entry, version: str, reasons: tuple[str, ...], major: str | None
) -> None:
    verdict = judge(entry, version, SURE, NOW)
    assert verdict.status == ("stale" if reasons else "fresh")
    assert (verdict.reasons, verdict.for_major) == (reasons, major)
    assert verdict.needs_marking == (entry.status == "fresh" and bool(reasons))


def test_an_entry_is_judged_with_the_status_that_it_has_now_and_archived_ones_are_left_out() -> None:
    ages = {30: "fresh", 31: "stale", 60: "stale", 61: None}
    rows = [
        (replace(ENTRY, id=f"vue-{days}", topic=f"t {days}", last_accessed=ago(days)), Ratings(), False)
        for days in ages
    ]
    told = {it.entry.id: it.entry.status for it in judge_all(rows, "3", SURE, NOW)}
    assert told == {f"vue-{days}": status for days, status in ages.items() if status}
    short = KnowledgeResearch(cache_ttl_days=30, archive_after_days=10)
    for days, status in ((10, "fresh"), (11, "archived")):
        assert judge(replace(ENTRY, last_accessed=ago(days)), "3", short, NOW).status == status


def test_where_a_topic_has_an_entry_of_the_major_that_is_asked_for_others_step_back() -> None:
    rows = [
        (replace(ENTRY, id=version, topic=topic, framework_version=version), Ratings(), False)
        for version, topic in (("2.7", "Slots"), ("3.1", "slots"), ("unknown", "slots"), ("2.6", "guards"))
    ]
    for version, ids in (("3", {"3.1", "unknown", "2.6"}), ("2", {"2.7", "unknown", "2.6"})):
        assert {it.entry.id for it in judge_all(rows, version, SURE, NOW)} == ids
    assert len(judge_all(rows, "4", SURE, NOW)) == 4


@pytest.mark.parametrize(
    ("origin", "ratings", "refusal"),
    [
        ("excerpt", Ratings(worked=1, wrong=1), None),
        ("excerpt", Ratings(worked=1, wrong=2, note="it hangs"), "it was rated wrong: it hangs"),
        ("placeholder", Ratings(), "it is a placeholder"),
    ],
)
def test_what_is_served_to_nobody_says_why(origin: str, ratings: Ratings, refusal: str | None) -> None:
    judged = known(ENTRY, ratings, origin=origin)
    assert (judged.refusal, judged.is_servable) == (refusal, refusal is None)


# --- which one is served


@pytest.mark.parametrize(
    ("rules", "order"),
    [
        (SURE, ["finding by wording", "topic and tags", "topic", "wording", "keywords"]),
        (SEED, ["topic and tags", "topic", "finding by wording", "wording"]),
    ],
)
def test_of_several_that_match_the_better_one_is_served(rules: KnowledgeResearch, order: list[str]) -> None:
    found = {
        "finding by wording": known(FINDING, topic="else", question="?", is_wording=True),
        "topic and tags": known(ENTRY),
        "topic": known(ENTRY, tags=()),
        "wording": known(ENTRY, topic="else", tags=(), question="?", is_wording=True),
        "keywords": known(ENTRY, topic="the virtual scrolling", tags=()),
        "none": known(ENTRY, topic="routes", tags=()),
    }
    left = {name: it for name, it in found.items() if rules is SURE or name != "keywords"}
    for name in order:
        assert served(query("virtual scrolling", "lists"), [*left.values()], rules) is left.pop(name)
    assert served(query("virtual scrolling", "lists"), [*left.values()], rules) is None


@given(st.permutations([1, 2, 3, 4]))
def test_of_equals_the_last_accessed_is_served_then_the_first_by_id(order: list[int]) -> None:
    late = {1: ago(2), 2: ago(1), 3: ago(1), 4: ago(3)}
    found = [known(ENTRY, id=f"vue-{n}", last_accessed=late[n]) for n in order]
    best = served(query(), found, SURE)
    ranked = rank(query(), [(it, 1.0) for it in found])
    assert best is not None
    assert (best.entry.id, [it.entry.id[-1] for it in ranked]) == ("vue-2", [*"2314"])


@pytest.mark.parametrize("rules", [SURE, SEED])
def test_what_may_not_be_served_is_what_research_stands_on(rules: KnowledgeResearch) -> None:
    stale, fresh = known(FINDING, status="stale"), known(ENTRY, id="vue-2", tags=())
    for held in ([stale, fresh], [fresh, stale]):
        assert served(query("virtual scrolling", "lists"), held, rules) is fresh
    assert choose(query(), [stale], rules) == (stale, "framework+topic")


# --- which are offered, and in which order


@pytest.mark.parametrize("shared", range(5, 11))
def test_from_seventy_of_a_hundred_keywords_on_two_topics_are_one_to_the_seed(shared: int) -> None:
    words = [f"word{letter}" for letter in "abcdefghij"]
    held = known(ENTRY, topic=" ".join(words), tags=())
    asked = query(" ".join([*words[:shared], *(f"other{word}" for word in words[shared:])]))
    assert overlap(asked.topic, held.entry.topic) == pytest.approx(shared / 10)
    assert (tier_of(asked, held, SEED) is not None) == (shared >= 7)


def test_topics_are_folded_and_tags_are_shared_once_by_their_stems() -> None:
    assert same_topic(" Virtual\t SCROLLING", "virtual scrolling")
    assert not same_topic("virtual scrolling", "virtualscrolling")
    assert overlap("the of", "a an") == 0.0
    assert shared_tags(("List", "lists", "state"), ("lists",)) == ("List",)
    assert shared_tags(("+", "*"), ("+",)) == ("+",)


def test_an_answer_says_why_it_was_served() -> None:
    asked = query("long virtual scrolling", "lists", "state")
    match = match_of(asked, known(ENTRY), "framework+wording", 3.5)
    assert (match.tier, match.shared_tags, match.score) == ("framework+wording", ["lists"], 3.5)
    assert (match.topic_overlap, match.entry_status, match.origin) == (0.6667, "fresh", "excerpt")
    assert match_of(query("The OF"), known(ENTRY, topic="the of"), "framework+topic").topic_overlap == 1.0


def score(one: Entry, ratings: Ratings | None = None, bm25: float = 1.0, *tags: str) -> float:
    [found] = rank(query("virtual scrolling", *tags), [(known(one, ratings), bm25)])
    return found.score


def test_what_is_proved_is_worth_more_and_installed_documentation_less() -> None:
    assert score(FINDING) == pytest.approx(score(ENTRY) + 3)
    assert score(INSTALLED) == pytest.approx(score(ENTRY) - 1)
    assert score(ENTRY, bm25=2.5) == pytest.approx(score(ENTRY) + 1.5)
    assert score(ENTRY, Ratings(worked=4)) == pytest.approx(score(ENTRY) + log1p(4), abs=0.01)
    assert score(ENTRY, Ratings(wrong=1), bm25=900.0) < score(replace(ENTRY, topic="x", tags=()), bm25=0.0)


def test_an_equal_topic_and_an_equal_question_give_all_that_they_can() -> None:
    """Of the topics ``token_sort_ratio``, of both texts ``token_set_ratio``, each of 100, and one for each shared tag."""
    same = replace(ENTRY, question="How?")
    assert score(same, None, 0.0) == pytest.approx(10.0)
    assert score(replace(same, topic="scrolling virtual"), None, 0.0) == pytest.approx(10.0)
    assert score(replace(same, topic="zzz", question="qqq"), None, 0.0) < 3
    assert score(same, None, 0.0, "lists") == pytest.approx(11.0)


def candidate(one: Entry, shared: int, of: int, score: float = 9.0, **ratings: Any) -> Candidate:
    return replace(known(one, Ratings(**ratings)), score=score, shared=shared, of=of)


@pytest.mark.parametrize(
    ("shared", "of", "is_near", "is_same"),
    [(0, 5, False, False), (1, 5, False, False), (2, 5, True, False), (3, 5, True, True), (1, 1, True, True)],
)
def test_an_excerpt_is_read_unasked_where_the_needs_share_words(
    shared: int, of: int, *, is_near: bool, is_same: bool
) -> None:
    assert candidate(ENTRY, shared, of).is_near == is_near
    assert candidate(FINDING, shared, of).is_near
    assert candidate(ENTRY, shared, of).may_say_the_same == is_same
    assert candidate(INSTALLED, shared, of).is_worth_offering == is_same
    assert candidate(INSTALLED, shared, of, worked=1).is_worth_offering
    assert candidate(ENTRY, shared, of).is_worth_offering


def test_how_many_words_a_need_shares_is_counted_by_stems_without_the_frameworks_name() -> None:
    asked = query("virtual scrolling of vue", "lists", question="How are rows scrolled in Vue?")
    [found] = rank(asked, [(known(ENTRY, question="Which row scrolls?", tags=("heights",)), 1.0)])
    assert (found.shared, found.of) == (3, 3)


def test_what_has_less_than_half_of_the_best_score_is_left_out() -> None:
    scores = [10.0, 5.0, 4.9, -1000.0]
    listed = [candidate(replace(ENTRY, id=f"vue-{n}"), 2, 2, it) for n, it in enumerate(scores)]
    assert [it.score for it in offered(listed, most=9)] == [10.0, 5.0, -1000.0]
    assert [it.score for it in offered(listed, most=2)] == [10.0, 5.0]


def test_a_candidate_is_told_with_all_that_helps_to_choose() -> None:
    found = candidate(replace(ENTRY, question="How?"), 1, 2, 7.25, worked=2, wrong=1, note="slow")
    told = related_of(found, "# vue\n\n## Summary\n\n> Set the height.\n\n## Details\n\nMore.\n")
    assert (told.id, told.topic, told.question) == (ENTRY.id, ENTRY.topic, "How?")
    assert (told.framework_version, told.origin, told.confidence) == ("3.5", "excerpt", "high")
    assert (told.summary, told.score) == ("Set the height.", 7.25)
    assert (told.worked, told.wrong, told.note) == (2, 1, "slow")


@pytest.mark.parametrize(
    ("report", "summary"),
    [
        ("# a\n\nx\n\n## Summary\n\n> One.\n>\n>  Two.\n\n## Details\n\nThree.", "One. Two."),
        ("# a\n\n## Summary\n\n```py\nx = 1\n```\n\nOne.\n## Details", "x = 1 One."),
        ("by hand\n\n## Part", "by hand"),
        (f"## Summary\n\n{'word ' * 60}", f"{('word ' * 39).strip()}…"),
        (f"## Summary\n\n{'word ' * 30}end. {'word ' * 30}", f"{'word ' * 30}end."),
    ],
)
def test_a_summary_is_its_first_sentences_without_signs_of_quoting(report: str, summary: str) -> None:
    assert summary_in(report) == summary
    assert len(summary) <= 200


def test_a_report_shows_the_confidence_that_its_entry_has_now() -> None:
    line = "**Confidence:** low\n"
    report = f"# a\n\n{line}**Sources:** none\n\n## Summary\n\n{line}\n## Details\n\nx\n"
    assert with_confidence(report, "high") == report.replace("low", "high", 1)
    assert with_confidence("free text\n", "high") == "free text\n"


@pytest.mark.parametrize(
    ("sources", "ended", "status"),
    [
        ({"a": "skipped"}, {"has_budget_ended": True}, "budget-exhausted"),
        ({"a": "timeout"}, {}, "degraded"),
        ({"a": "timeout", "c": "success"}, {"is_answered": True, "is_written": False}, "partial"),
        ({"a": "timeout", "b": "unavailable", "c": "success"}, {"is_answered": True}, "timeout"),
        ({"b": "unavailable", "c": "success"}, {"is_answered": True}, "partial"),
        ({"local_docs": "unavailable", "c": "success"}, {"is_answered": True}, "success"),
    ],
)
def test_the_status_is_the_first_row_of_the_table_that_holds(
    sources: dict[str, Any], ended: dict[str, bool], status: ResearchStatus
) -> None:
    rows = [SourceAttempt(source=source, status=it) for source, it in sources.items()]
    usual = {"is_answered": False, "is_written": True, "has_budget_ended": False}
    assert research_status(rows, **(usual | ended)) == status
