"""What each number says, on small cases, and what holds for any (SPEC 3.2, "Evidence")."""

import itertools
import time
from math import isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kr.matching.compare import compare
from kr.matching.decide import decide
from kr.matching.evidence import MEANING, NAMES, NEVER_AGAINST, Asked, Candidate, lead, shared_tags, weigh
from kr.matching.topic import topic_of
from kr.matching.weights import DEFAULT, WEIGHTS
from kr.values import MatchRules, Query, replace
from tests.support import calibration
from tests.support.candidates import candidate, query

TOPICS = calibration.topics()
WORDS = st.lists(
    st.sampled_from(
        [*["queue", "worker", "retries", "idempotent", "useMemo", "依赖注入", "max_overflow", "the", "not"]]
    ),
    max_size=5,
).map(" ".join)
TAGS = st.lists(st.sampled_from(["queue", "worker-pool", "retry", "依赖", "?"]), max_size=3)


def numbers(asked: Query, *known: Candidate) -> list[dict[str, float]]:
    return [dict(zip(NAMES, found.numbers, strict=True)) for found in weigh(Asked(asked), known)]


def test_every_number_has_a_meaning_and_a_weight() -> None:
    assert set(MEANING) == set(NAMES) == set(WEIGHTS)
    assert len(numbers(query("x"), candidate())[0]) == len(NAMES)
    assert all(DEFAULT.fitted.weights[place] >= 0 for place in NEVER_AGAINST)


def test_the_question_is_covered_by_need_and_report_together() -> None:
    asked = query("jobs", question="Do failed jobs reach a dead letter queue?")
    (in_need,) = numbers(asked, candidate("failed jobs and the dead letter queue"))
    (in_both,) = numbers(asked, candidate("failed jobs", report="They go to the dead letter queue."))
    (in_part,) = numbers(asked, candidate("failed jobs"))
    for name in ("question_covered", "question_key_words_covered", "words_found", "key_words_covered"):
        assert in_need[name] == pytest.approx(in_both[name])
        assert in_part[name] < in_both[name]
    assert in_part["question_key_words_missing"] > in_both["question_key_words_missing"]
    assert in_need["words_in_need"] > in_both["words_in_need"]
    assert in_need["words_not_in_need"] < in_both["words_not_in_need"]


def test_a_rare_word_that_is_missing_says_more_than_a_common_one() -> None:
    (common,) = numbers(query("queue", question="queue list"), candidate("queue"))
    (rare,) = numbers(query("queue", question="queue sharding"), candidate("queue"))
    assert rare["question_covered"] < common["question_covered"]
    assert rare["alike_but_rare_word_missing"] > common["alike_but_rare_word_missing"]
    assert rare["topic_known_but_rare_word_missing"] > common["topic_known_but_rare_word_missing"]


def test_the_name_of_the_framework_and_what_questions_are_made_of_are_no_evidence() -> None:
    asked = Asked(query("React queue", question="How can I use a queue in react?"))
    assert set(asked.all) == set(Asked(query("queue", question="queue")).all)


def test_the_topic_asked_for_must_stand_in_the_need() -> None:
    known = candidate("queue", report="A dead letter.")
    (found,) = numbers(query("queue letters"), known)
    assert found["topic_key_words_not_in_need"] > 0
    assert found["topic_known_but_more_is_asked"] == 0
    (found,) = numbers(query("queue sharding"), known)
    assert found["topic_known_but_more_is_asked"] > 0
    (found,) = numbers(query("queue"), known)
    assert found["topic_key_words_not_in_need"] == 0
    assert found["topic_alike"] == pytest.approx(1.0)


def test_a_report_that_comes_back_to_what_is_asked_is_more_relevant() -> None:
    asked = query("retries", question="retries of a queue")
    once = candidate("x", report="retries of a queue", id="once")
    often = candidate("x", report="retries of a queue: retries retries queue queue", id="often")
    never = candidate("x", report="something", id="never")
    found = numbers(asked, once, often, never)
    relevance = [numbers_of["report_relevance"] for numbers_of in found]
    assert relevance[1] > relevance[0] > relevance[2] == 0
    assert found[1]["report_relevance_ahead"] == pytest.approx(relevance[1] - relevance[0])
    assert found[0]["report_relevance_ahead"] == pytest.approx(relevance[0] - relevance[1])
    assert numbers(asked, often)[0]["report_relevance_ahead"] == pytest.approx(relevance[1])


def test_words_that_few_entries_have_speak_for_those() -> None:
    asked = query("queue sharding")
    others = [candidate("queue", id=f"o{number}") for number in range(4)]
    found = numbers(asked, candidate("queue sharding", id="a"), *others)
    assert found[0]["particular_words_ahead"] > 0.5
    assert found[1]["particular_words_ahead"] == pytest.approx(-found[0]["particular_words_ahead"])


def test_contradictions_and_tags() -> None:
    (found,) = numbers(query("disable caching", "a", "b"), candidate("enable caching", "B"))
    assert (found["contradiction"], found["shared_tags"]) == (1.0, 1.0)
    (found,) = numbers(query("enable caching"), candidate("enable caching", "B"))
    assert (found["contradiction"], found["shared_tags"]) == (0.0, 0.0)


def test_a_typing_error_finds_its_word_where_it_is_one_that_nobody_writes() -> None:
    (slip,) = numbers(query("debuonce of jobs"), candidate("debounce of jobs"))
    (other,) = numbers(query("dqwxzyv of jobs"), candidate("debounce of jobs"))
    assert slip["words_in_need"] > other["words_in_need"]


@pytest.mark.parametrize(
    ("asked", "known", "shared"),
    [
        (("Caching",), ("cache",), ("Caching",)),
        (("A b", "a-b", "C", "x"), ("a_b", "c", "d"), ("A b", "C")),
        (("virtual-scroll",), (" VIRTUAL_Scroll ",), ("virtual-scroll",)),
        (("file-upload",), ("upload",), ("file-upload",)),
        (("queue",), ("worker",), ()),
        (("依赖注入",), ("dependency-injection",), ("依赖注入",)),
        (("", "?!"), ("", "?!"), ()),
    ],
)
def test_tags_are_shared_by_their_stems_as_the_request_writes_them(
    asked: tuple[str, ...], known: tuple[str, ...], shared: tuple[str, ...]
) -> None:
    assert shared_tags(asked, known) == shared


@given(WORDS, TAGS, WORDS, st.lists(st.tuples(WORDS, TAGS, WORDS, WORDS), max_size=3))
@settings(max_examples=100, deadline=None)
def test_numbers_are_finite_and_no_matter_of_the_order(
    topic: str, tags: list[str], question: str, held: list[tuple[str, list[str], str, str]]
) -> None:
    known = [
        candidate(theirs, *with_tags, question=in_words, report=report, id=str(place))
        for place, (theirs, with_tags, in_words, report) in enumerate(held)
    ]
    asked = Asked(query(topic, *tags, question=question))
    found = weigh(asked, known)
    assert all(
        isfinite(number) for evidence in found for number in (*evidence.numbers, lead(evidence.numbers))
    )
    backward = weigh(asked, known[::-1])[::-1]
    for one, other in zip(found, backward, strict=True):
        assert one.numbers == pytest.approx(other.numbers)
    rules = MatchRules()
    forth, back = decide(asked.query, known, rules), decide(asked.query, known[::-1], rules)
    assert forth == back
    assert all(0.0 <= item.likelihood <= 1.0 for item in forth.considered)


@given(WORDS, TAGS, WORDS, WORDS, TAGS.filter(bool))
@settings(max_examples=100, deadline=None)
def test_a_tag_that_the_entry_has_never_takes_away_what_the_two_share(
    topic: str, tags: list[str], question: str, theirs: str, known_tags: list[str]
) -> None:
    known = candidate(theirs, *known_tags)
    asked = query(topic, *tags, question=question)
    (before,) = numbers(asked, known)
    (after,) = numbers(replace(asked, tags=(*asked.tags, known_tags[0])), known)
    for name in ("shared_tags", "words_found", "words_in_need", "key_words_covered"):
        assert after[name] >= before[name] - 1e-9, name


@given(st.sampled_from(TOPICS), st.sampled_from(TOPICS))
def test_the_comparison_of_topics_is_symmetric(one: str, other: str) -> None:
    forth, back = compare(topic_of(one), topic_of(other)), compare(topic_of(other), topic_of(one))
    assert forth.overlap == pytest.approx(back.overlap)
    assert (forth.contradiction is None) == (back.contradiction is None)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_compare(one: str, other: str) -> None:
    found = compare(topic_of(one), topic_of(other))
    assert 0.0 <= found.overlap <= 1.0
    assert found.overlap == compare(topic_of(other), topic_of(one)).overlap


@pytest.mark.parametrize("unit", ["w{} ", "a-", "aB", "不", "not ", "1.", "ａ", "ABC ", "without a ", "--a "])
def test_a_hostile_request_costs_little(unit: str) -> None:
    text = "".join(itertools.islice(map(unit.format, itertools.count()), 2**20 // len(unit)))
    known = [
        candidate(topic, question=" ".join(f"w{number}x" for number in range(300)), id=topic)
        for topic in TOPICS[:20]
    ]
    started = time.process_time()
    decide(query(text, text, question=text), known, MatchRules())
    assert time.process_time() - started < 10
