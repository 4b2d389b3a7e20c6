"""Which entry is served, and in which order the others are offered (rule 3.2, 3.3). Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.models import NO_RATINGS, TIERS, Entry, Query, Ratings
from kr.research.decide import (
    Candidate,
    choose,
    judge_all,
    offered,
    rank,
    related_of,
    tier_of,
)
from kr.settings.model import KnowledgeResearch
from kr.times import to_text

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SURE = KnowledgeResearch()
WORDS = ("virtual", "scrolling", "lists", "routes", "slots", "cache")
TAGS = st.lists(st.sampled_from(("lists", "routing", "state", "Caching")), max_size=3, unique=True)
TOPICS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def entry(topic: str = "virtual scrolling", **changes: Any) -> Entry:
    number = changes.pop("number", 1)
    values: dict[str, Any] = {
        "id": f"vue-{number}",
        "framework": "vue",
        "framework_version": "3.5",
        "topic": topic,
        "tags": ("lists",),
        "path": f"frameworks/vue/{number}.md",
        "created": to_text(NOW),
        "last_accessed": to_text(NOW),
        "status": "fresh",
        "confidence": "high",
        "question": None,
    }
    return Entry(**(values | changes))


def known(one: Entry, ratings: Ratings = Ratings(), *, is_wording: bool = False) -> Candidate:  # noqa: B008 - frozen
    (found,) = judge_all([(one, ratings, is_wording)], "3.5", KnowledgeResearch(), NOW)
    return found


def query(
    topic: str = "virtual scrolling", tags: tuple[str, ...] = ("lists",), question: str = "How?"
) -> Query:
    return Query(framework="vue", framework_version="3.5", topic=topic, tags=tags, question=question)


@pytest.mark.parametrize(
    ("topic", "question", "tier"),
    [
        ("Virtual  SCROLLING", "How?", "framework+topic+tags"),
        ("the virtual scrolling", "How?", "framework+keywords"),
        ("virtually scrolled", "How?", None),
        ("scrolling virtual", "How?", None),
        ("virtual scrolling", "How is it turned off?", "framework+topic+tags"),
        ("virtual scrolling of lists", "How?", None),
        ("no virtual scrolling", "How?", None),
        ("virtual scrolls", "How is it turned off?", None),
        ("virtual scrolls", "What of `rowHeight`?", None),
    ],
)
def test_served_is_only_what_needs_no_judgement(topic: str, question: str, tier: str | None) -> None:
    assert tier_of(query(topic, question=question), known(entry(question="How?")), SURE) == tier


def test_a_known_wording_is_served_whatever_the_topic() -> None:
    assert tier_of(query("something else"), known(entry(), is_wording=True), SURE) == "framework+wording"


def test_without_fuzzy_matching_an_equal_topic_alone_is_served() -> None:
    config = KnowledgeResearch(cache_fuzzy_match=False)
    assert tier_of(query("Virtual Scrolling"), known(entry()), config) == "framework+topic+tags"
    assert tier_of(query("virtual scrolls"), known(entry()), config) is None
    assert tier_of(query("other"), known(entry(), is_wording=True), config) is None


def test_an_excerpt_of_installed_documentation_serves_an_equal_topic_or_wording_alone() -> None:
    excerpt = entry(fresh_until=to_text(NOW + timedelta(hours=20)))
    assert tier_of(query("virtual scrolls"), known(excerpt), SURE) is None
    assert tier_of(query(), known(excerpt), SURE) == "framework+topic+tags"
    assert tier_of(query("other"), known(excerpt, is_wording=True), SURE) == "framework+wording"


@pytest.mark.parametrize("until", [None, to_text(NOW + timedelta(hours=20))])
def test_a_finding_of_the_same_keywords_or_wording_goes_before_an_excerpt_of_the_very_topic(
    until: str | None,
) -> None:
    excerpt = known(entry(fresh_until=until))
    finding = entry("the virtual scrolling", number=2, origin="finding", question="How?")
    worded = entry("all at once", number=3, origin="finding")
    for other in (known(finding), known(worded, is_wording=True)):
        chosen = choose(query(), [excerpt, other], SURE)
        assert chosen is not None
        assert chosen[0].entry.id == other.entry.id


def test_a_candidate_of_another_version_says_so() -> None:
    (found,) = judge_all([(entry(framework_version="2.7"), NO_RATINGS, False)], "3.5", SURE, NOW)
    assert related_of(found, "").note == "version 2.7, asked for 3.5"
    assert related_of(known(entry()), "").note is None


@given(TOPICS, TAGS, TOPICS, TAGS, st.sampled_from(TIERS))
def test_seed_mode_serves_as_seed_000_has_it(
    asked: str, asked_tags: list[str], held: str, held_tags: list[str], floor: Any
) -> None:
    """Tier 1: topic (70 % of common keywords) and a tag; tier 2: topic; tier 3: a tag. At or above the floor is served."""
    mine, theirs = set(asked.split()), set(held.split())
    is_topic = len(mine & theirs) / max(len(mine), len(theirs)) >= 0.7
    is_tag = bool({tag.casefold() for tag in asked_tags} & {tag.casefold() for tag in held_tags})
    expected = {(True, True): 0, (True, False): 1, (False, True): 2}.get((is_topic, is_tag))
    config = KnowledgeResearch(cache_match="seed", cache_match_floor=floor)
    found = tier_of(query(asked, tuple(asked_tags)), known(entry(held, tags=tuple(held_tags))), config)
    is_served = expected is not None and expected <= TIERS.index(floor)
    assert found == (TIERS[expected] if is_served and expected is not None else None)


def test_seed_mode_is_not_moved_by_the_entrys_own_question_but_by_a_wording_that_somebody_confirmed() -> None:
    config = KnowledgeResearch(cache_match="seed", cache_match_floor="framework+topic+tags")
    own = known(entry(question="How?"), is_wording=True)
    assert tier_of(query("routes", ("routing",)), own, config) is None
    confirmed = known(entry(question="What?"), is_wording=True)
    assert tier_of(query("routes", ("routing",)), confirmed, config) == "framework+wording"


def test_what_was_rated_wrong_is_not_served_until_as_many_say_that_it_worked() -> None:
    assert not known(entry(), Ratings(wrong=1)).is_servable
    assert known(entry(), Ratings(worked=1, wrong=1)).is_servable
    persons = entry(origin="finding", written_by="person:ada")
    assert known(persons, Ratings(wrong=1)).is_servable
    assert not known(persons, Ratings(wrong=2)).is_servable
    assert not known(persons, Ratings(wrong=1, by_person=True)).is_servable


def test_an_excerpt_of_installed_documentation_is_no_measure_for_findings() -> None:
    day = to_text(NOW + timedelta(hours=20))
    found = [
        (known(entry(number=1, fresh_until=day)), 40.0),
        (known(entry("slots", number=2, tags=(), question="What is it?", origin="finding")), 5.0),
    ]
    ranked = rank(query(), found)
    assert [it.entry.id for it in offered(ranked, most=3)] == ["vue-1", "vue-2"]


@pytest.mark.parametrize(
    ("asked", "known_topic"),
    [
        ("make cookie", "get cookie"),
        ("cookie", "use cookie"),
        ("run tests", "run one test"),
        ("why cookie", "cookie"),
    ],
)
def test_who_gets_a_thing_is_not_served_how_one_is_made(asked: str, known_topic: str) -> None:
    assert tier_of(query(asked, tags=()), known(entry(known_topic, tags=())), SURE) is None
    assert tier_of(query(f"the {asked}", tags=()), known(entry(asked, tags=())), SURE) == "framework+keywords"
