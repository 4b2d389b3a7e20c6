"""Which entries are served and offered, and what a research's status is (SPEC 3.2 to 3.4)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.models import Entry, Query, Ratings, ResearchStatus, SourceAttempt
from kr.research.decide import (
    Candidate,
    Verdict,
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
SURE, SEED = KnowledgeResearch(), KnowledgeResearch(cache_match="seed", cache_match_floor="framework+topic")


def ago(days: float) -> str:
    return to_text(NOW - timedelta(days=days))


def known(one: Entry, ratings: Ratings | None = None, *, is_wording: bool = False) -> Candidate:
    [found] = judge_all([(one, ratings or Ratings(), is_wording)], "3", KnowledgeResearch(), NOW)
    return found


def query(topic: str = "virtual scrolling", *tags: str, question: str = "How?") -> Query:
    return Query(framework="vue", framework_version="3", topic=topic, tags=tags, question=question)


# --- how fresh an entry is


def test_who_says_nothing_gets_the_limits_of_the_seed() -> None:
    ages = {30: "fresh", 31: "stale", 60: "stale", 61: "archived"}
    for days, status in ages.items():
        assert judge(replace(ENTRY, last_accessed=ago(days)), "3", KnowledgeResearch(), NOW).status == status
    assert judge(replace(ENTRY, created=ago(9_000)), "3", KnowledgeResearch(), NOW).status == "fresh"


@pytest.mark.parametrize(
    ("entry", "version", "verdict"),
    [
        (ENTRY, "3", Verdict("fresh", ())),
        (ENTRY, "4", Verdict("stale", ("version 3.5, asked for 4",), "4", needs_marking=True)),
        (
            replace(ENTRY, status="stale", stale_major="4"),
            "4.1",
            Verdict("stale", ("version 3.5, asked for 4.1",), "4"),
        ),
        (replace(ENTRY, status="stale", stale_major="4"), "3", Verdict("fresh", ())),
        (replace(ENTRY, status="stale"), "3", Verdict("stale", ("marked stale",))),
        (
            replace(ENTRY, status="stale"),
            "4",
            Verdict("stale", ("marked stale", "version 3.5, asked for 4")),
        ),
        (
            replace(ENTRY, last_accessed=ago(31)),
            "3",
            Verdict("stale", ("last accessed 31 days ago, more than 30",), needs_marking=True),
        ),
        (
            replace(ENTRY, last_accessed=ago(31), status="stale", stale_major="4"),
            "3",
            Verdict("stale", ("last accessed 31 days ago, more than 30",), needs_marking=True),
        ),
        (
            replace(ENTRY, last_accessed=ago(31), status="stale"),
            "3",
            Verdict("stale", ("marked stale", "last accessed 31 days ago, more than 30")),
        ),
        (
            replace(ENTRY, origin="placeholder", status="stale"),
            "3",
            Verdict("stale", ("a placeholder: nothing was found",)),
        ),
    ],
)
def test_marks_are_stored_once_and_for_the_major_that_they_are_about(
    entry: Entry, version: str, verdict: Verdict
) -> None:
    assert judge(entry, version, KnowledgeResearch(), NOW) == verdict


def test_a_limit_below_the_archives_counts() -> None:
    short = KnowledgeResearch(cache_ttl_days=30, archive_after_days=10)
    assert judge(replace(ENTRY, last_accessed=ago(10)), "3", short, NOW).status == "fresh"
    assert judge(replace(ENTRY, last_accessed=ago(11)), "3", short, NOW).status == "archived"
    assert judge(replace(ENTRY, last_accessed="some day"), "3", short, NOW).status == "stale"


def test_an_entry_is_judged_with_the_status_that_it_has_now_and_archived_ones_are_left_out() -> None:
    rows = [
        (replace(ENTRY, id=f"vue-{days}", topic=f"t {days}", last_accessed=ago(days)), Ratings(), False)
        for days in (1, 31, 61)
    ]
    found = judge_all(rows, "3", KnowledgeResearch(), NOW)
    assert [(it.entry.id, it.entry.status, it.is_servable) for it in found] == [
        ("vue-1", "fresh", True),
        ("vue-31", "stale", False),
    ]


def test_where_a_topic_has_an_entry_of_the_major_that_is_asked_for_others_step_back() -> None:
    rows = [
        (replace(ENTRY, id=version, topic=topic, framework_version=version), Ratings(), False)
        for version, topic in (("2.7", "Slots"), ("3.1", "slots"), ("unknown", "slots"), ("2.6", "guards"))
    ]
    for version, ids in (("3", {"3.1", "unknown", "2.6"}), ("2", {"2.7", "unknown", "2.6"})):
        assert {it.entry.id for it in judge_all(rows, version, KnowledgeResearch(), NOW)} == ids
    assert len(judge_all(rows, "4", KnowledgeResearch(), NOW)) == 4


@pytest.mark.parametrize(
    ("entry", "ratings", "refusal"),
    [
        (ENTRY, Ratings(), None),
        (ENTRY, Ratings(worked=1, wrong=1), None),
        (ENTRY, Ratings(wrong=1), "it was rated wrong"),
        (ENTRY, Ratings(worked=1, wrong=2, note="it hangs"), "it was rated wrong: it hangs"),
        (replace(ENTRY, origin="placeholder"), Ratings(), "it is a placeholder"),
    ],
)
def test_what_is_served_to_nobody_says_why(entry: Entry, ratings: Ratings, refusal: str | None) -> None:
    judged = known(entry, ratings)
    assert judged.refusal == refusal
    assert judged.is_servable == (refusal is None)


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
        "finding by wording": known(replace(FINDING, topic="else", question="?"), is_wording=True),
        "topic and tags": known(ENTRY),
        "topic": known(replace(ENTRY, tags=())),
        "wording": known(replace(ENTRY, topic="else", tags=(), question="?"), is_wording=True),
        "keywords": known(replace(ENTRY, topic="the virtual scrolling", tags=())),
        "none": known(replace(ENTRY, topic="routes", tags=())),
    }
    asked = query("virtual scrolling", "lists")
    left = {name: it for name, it in found.items() if rules is SURE or name != "keywords"}
    for name in order:
        chosen = choose(asked, [*left.values()], rules)
        assert chosen is not None
        assert chosen[0] is left.pop(name)
    assert choose(asked, [*left.values()], rules) is None


@given(st.permutations([1, 2, 3, 4]))
def test_of_equals_the_last_accessed_is_served_then_the_first_by_id(order: list[int]) -> None:
    late = {1: ago(2), 2: ago(1), 3: ago(1), 4: ago(3)}
    found = [known(replace(ENTRY, id=f"vue-{n}", last_accessed=late[n])) for n in order]
    chosen = choose(query(), found, SURE)
    assert chosen is not None
    assert chosen[0].entry.id == "vue-2"
    ranked = rank(query(), [(it, 1.0) for it in found])
    assert [it.entry.id for it in ranked] == ["vue-2", "vue-3", "vue-1", "vue-4"]


@pytest.mark.parametrize("rules", [SURE, SEED])
def test_what_may_not_be_served_is_what_research_stands_on(rules: KnowledgeResearch) -> None:
    stale = known(replace(FINDING, status="stale"))
    fresh = known(replace(ENTRY, id="vue-2", tags=()))
    for given_entries in ([stale, fresh], [fresh, stale]):
        chosen = choose(query("virtual scrolling", "lists"), given_entries, rules)
        assert chosen is not None
        assert chosen[0] is fresh
    assert choose(query(), [stale], rules) == (stale, "framework+topic")


def test_the_seeds_third_tier_is_served_where_the_floor_allows() -> None:
    by_tag = known(replace(ENTRY, topic="routes"))
    asked = query("virtual scrolling", "lists")
    assert (
        tier_of(asked, by_tag, KnowledgeResearch(cache_match="seed", cache_match_floor="framework+tags"))
        == "framework+tags"
    )
    assert tier_of(asked, by_tag, SEED) is None
    assert tier_of(asked, by_tag, SURE) is None
    assert (
        tier_of(query("routes"), by_tag, KnowledgeResearch(cache_match="seed", cache_fuzzy_match=False))
        == "framework+topic"
    )
    assert tier_of(asked, by_tag, KnowledgeResearch(cache_match="seed", cache_fuzzy_match=False)) is None


@pytest.mark.parametrize("shared", range(5, 11))
def test_from_seventy_of_a_hundred_keywords_on_two_topics_are_one_to_the_seed(shared: int) -> None:
    words = [f"word{letter}" for letter in "abcdefghij"]
    held = known(replace(ENTRY, topic=" ".join(words), tags=()))
    asked = query(" ".join([*words[:shared], *(f"other{word}" for word in words[shared:])]))
    assert overlap(asked.topic, held.entry.topic) == pytest.approx(shared / 10)
    assert (tier_of(asked, held, SEED) is not None) == (shared >= 7)


def test_equal_topics_are_folded_and_their_blanks_count_once() -> None:
    assert same_topic(" Virtual\t SCROLLING", "virtual scrolling")
    assert not same_topic("virtual scrolling", "virtualscrolling")
    assert overlap("the of", "a an") == 0.0


def test_shared_tags_are_the_requests_each_once_by_their_stems() -> None:
    assert shared_tags(("List", "lists", "state"), ("lists",)) == ("List",)
    assert shared_tags(("+", "*"), ("+",)) == ("+",)
    assert shared_tags((), ("lists",)) == shared_tags(("lists",), ()) == ()


def test_an_answer_says_why_it_was_served() -> None:
    asked = query("long virtual scrolling", "lists", "state")
    match = match_of(asked, known(ENTRY), "framework+wording", 3.5)
    assert (match.tier, match.shared_tags, match.score) == ("framework+wording", ["lists"], 3.5)
    assert (match.topic_overlap, match.entry_status, match.origin) == (0.6667, "fresh", "excerpt")
    small = replace(ENTRY, topic="the of")
    assert match_of(query("The OF"), known(small), "framework+topic").topic_overlap == 1.0


# --- which are offered, and in which order


def test_what_fits_better_goes_first() -> None:
    """Whichever of the things that rank is the better one, all others alike."""
    asked = query("virtual scrolling", "lists", question="How do I scroll virtually?")
    plain = replace(ENTRY, id="z", topic="routes", tags=(), question="What is it?")
    for better in (
        replace(plain, topic="scrolling routes"),
        replace(plain, question="How is it scrolled virtually?"),
        replace(plain, tags=("lists",)),
        replace(plain, origin="finding"),
    ):
        for order in ([better, plain], [plain, better]):
            first = rank(asked, [(known(it), 1.0) for it in order])[0]
            assert first.entry == better
    [one, other] = rank(asked, [(known(plain), 1.0), (known(replace(plain, id="a")), 1.5)])
    assert one.entry.id == "a"
    assert one.score - other.score == pytest.approx(0.5)


def score(one: Entry, ratings: Ratings | None = None, bm25: float = 1.0) -> float:
    [found] = rank(query("virtual scrolling", question="How?"), [(known(one, ratings), bm25)])
    return found.score


def test_a_finding_is_worth_more_than_an_excerpt_and_installed_documentation_less() -> None:
    assert score(FINDING) == pytest.approx(score(ENTRY) + 3)
    assert score(INSTALLED) == pytest.approx(score(ENTRY) - 1)
    assert score(ENTRY, Ratings(worked=4)) == pytest.approx(score(ENTRY) + log1p(4), abs=0.01)
    assert score(ENTRY, Ratings(wrong=1), bm25=900.0) < score(replace(ENTRY, topic="x", tags=()), bm25=0.0)


def test_an_equal_topic_and_an_equal_question_give_all_that_they_can() -> None:
    """Of the topics ``token_sort_ratio``, of both texts ``token_set_ratio``, each of 100, and one for each shared tag."""
    same = replace(ENTRY, question="How?", tags=())
    assert score(same, bm25=0.0) == pytest.approx(10.0)
    other = replace(ENTRY, topic="scrolling virtual", question="How?", tags=())
    assert score(other, bm25=0.0) == pytest.approx(10.0)
    nothing = replace(ENTRY, topic="zzz", question="qqq", tags=())
    assert score(nothing, bm25=0.0) < 3
    tagged = rank(
        query("virtual scrolling", "lists", question="How?"), [(known(replace(same, tags=("lists",))), 0.0)]
    )
    assert tagged[0].score == pytest.approx(11.0)


def candidate(
    one: Entry, shared: int, of: int, ratings: Ratings | None = None, score: float = 9.0
) -> Candidate:
    return replace(known(one, ratings), score=score, shared=shared, of=of)


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
    assert candidate(INSTALLED, shared, of, Ratings(worked=1)).is_worth_offering
    assert candidate(ENTRY, shared, of).is_worth_offering


def test_how_many_words_a_need_shares_is_counted_by_stems_without_the_frameworks_name() -> None:
    asked = query("virtual scrolling of vue", "lists", question="How are rows scrolled in Vue?")
    [found] = rank(asked, [(known(replace(ENTRY, question="Which row scrolls?", tags=("heights",))), 1.0)])
    assert (found.shared, found.of) == (3, 3)


def test_what_has_less_than_half_of_the_best_score_is_left_out() -> None:
    scores = [10.0, 5.0, 4.9, -1000.0]
    listed = [candidate(replace(ENTRY, id=f"vue-{n}"), 2, 2, score=it) for n, it in enumerate(scores)]
    assert [it.score for it in offered(listed, most=9)] == [10.0, 5.0, -1000.0]
    assert [it.score for it in offered(listed, most=2)] == [10.0, 5.0]
    assert offered([], most=3) == []


def test_a_candidate_is_told_with_all_that_helps_to_choose() -> None:
    asked = replace(ENTRY, question="How?")
    found = candidate(asked, 1, 2, Ratings(worked=2, wrong=1, note="slow"), score=7.25)
    told = related_of(found, "# vue\n\n## Summary\n\n> Set the height.\n\n## Details\n\nMore.\n")
    assert (told.id, told.topic, told.question, told.framework_version) == (
        ENTRY.id,
        ENTRY.topic,
        "How?",
        "3.5",
    )
    assert (told.summary, told.origin, told.confidence) == ("Set the height.", "excerpt", "high")
    assert (told.worked, told.wrong, told.score, told.note) == (2, 1, 7.25, "slow")
    liked = candidate(ENTRY, 1, 2, Ratings(worked=2, note="slow"))
    assert related_of(liked, "").note is None


@pytest.mark.parametrize(
    ("report", "summary"),
    [
        ("# a\n\nx\n\n## Summary\n\n> One.\n>\n>  Two.\n\n## Details\n\nThree.", "One. Two."),
        ("# a\n\n## Summary\n\n```py\nx = 1\n```\n\nOne.\n## Details", "x = 1 One."),
        ("by hand\n\n## Part", "by hand"),
        ("## Summary\n\n### Not the end\n", "### Not the end"),
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
    shown = with_confidence(report, "high")
    assert shown == report.replace("**Confidence:** low", "**Confidence:** high", 1)
    assert with_confidence("free text\n", "high") == "free text\n"


# --- a research's status


def status_of(
    *attempts: tuple[str, str], is_answered: bool = False, is_written: bool = True, has_ended: bool = False
) -> ResearchStatus:
    rows = [SourceAttempt(source=source, status=status) for source, status in attempts]  # type: ignore[arg-type]
    return research_status(rows, is_answered=is_answered, is_written=is_written, has_budget_ended=has_ended)


def test_the_status_is_the_first_row_of_the_table_that_holds() -> None:
    timeout, unavailable, answered = ("a", "timeout"), ("b", "unavailable"), ("c", "success")
    assert status_of(("a", "skipped"), has_ended=True) == "budget-exhausted"
    assert status_of(timeout) == "degraded"
    assert status_of(timeout, answered, is_answered=True, is_written=False) == "partial"
    assert status_of(timeout, unavailable, answered, is_answered=True) == "timeout"
    assert status_of(unavailable, answered, is_answered=True) == "partial"
    assert status_of(("local_docs", "unavailable"), answered, is_answered=True) == "success"
    assert status_of(answered, is_answered=True) == "success"
