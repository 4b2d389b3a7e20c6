"""What each number says, on small cases, and what holds for any (SPEC 3.2, "Evidence")."""

import itertools
import time
from math import isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kr.matching import table
from kr.matching.compare import compare
from kr.matching.decide import decide
from kr.matching.evidence import MEANING, NAMES, NEVER_AGAINST, Asked, Candidate, lead, shared_tags, weigh
from kr.matching.terms import root
from kr.matching.topic import topic_of
from kr.matching.weights import DEFAULT, WEIGHTS
from kr.matching.words import concepts
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


def test_what_need_and_report_have_is_not_missing_and_the_need_says_more() -> None:
    asked = query("jobs", question="Do failed jobs reach a dead letter queue?")
    (in_need,) = numbers(asked, candidate("failed jobs and the dead letter queue"))
    (in_both,) = numbers(asked, candidate("failed jobs", report="They go to the dead letter queue."))
    (in_part,) = numbers(asked, candidate("failed jobs"))
    assert in_need["question_key_words_missing"] == in_both["question_key_words_missing"]
    assert in_part["question_key_words_missing"] > in_both["question_key_words_missing"]
    assert in_need["question_in_need"] > in_both["question_in_need"]
    assert in_need["words_not_in_need"] < in_both["words_not_in_need"]


def test_a_rare_word_that_is_missing_says_more_than_a_common_one() -> None:
    (common,) = numbers(query("queue", question="queue list"), candidate("queue"))
    (rare,) = numbers(query("queue", question="queue sharding"), candidate("queue"))
    assert rare["question_in_need"] < common["question_in_need"]
    assert rare["alike_but_rare_word_missing"] > common["alike_but_rare_word_missing"]


def test_a_word_said_twice_is_what_is_asked_about() -> None:
    (once,) = numbers(query("queue", question="sharding of a queue"), candidate("queue"))
    (twice,) = numbers(query("queue sharding", question="sharding of a queue"), candidate("queue"))
    (tagged,) = numbers(query("queue", "sharding", question="sharding of a queue"), candidate("queue"))
    assert once["main_word_not_in_need"] == 0 < twice["main_word_not_in_need"]
    assert tagged["main_word_not_in_need"] == twice["main_word_not_in_need"]


def test_names_are_told_from_other_words() -> None:
    known = candidate("queue of jobs", question="What does maxRetries do?", report="See the S3 bucket.")
    (found,) = numbers(query("maxRetries and backoff_limit", question="Is it on S3, not on disk?"), known)
    (plain,) = numbers(query("retries and a limit", question="Is it in a bucket, not on disk?"), known)
    assert plain["names_missing"] == 0 < found["names_missing"]


def test_the_name_of_the_framework_and_what_questions_are_made_of_are_no_evidence() -> None:
    asked = Asked(query("React queue", question="How can I use a queue in react?"))
    assert set(asked.all) == set(Asked(query("queue", question="queue")).all)


def test_the_topic_asked_for_must_stand_in_the_need() -> None:
    known = candidate("queue", report="A dead letter.")
    (found,) = numbers(query("queue letters"), known)
    assert found["words_not_in_need"] > 0
    assert found["topic_key_words_missing"] == 0
    (found,) = numbers(query("queue sharding"), known)
    assert found["topic_key_words_missing"] > 0


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


def test_an_entry_that_stands_alone_is_ahead_of_those_that_are_not_there_yet() -> None:
    asked = query("retries", question="retries of a queue")
    known = candidate("retries", report="retries of a queue: retries retries queue queue", id="known")
    others = [candidate("x", report="something", id=f"o{number}") for number in range(5)]
    ahead = [numbers(asked, known, *others[:count])[0] for count in range(6)]
    for name in ("words_in_need_ahead", "report_relevance_ahead"):
        found = [numbers_of[name] for numbers_of in ahead]
        assert found[0] < found[1] < found[2] < found[3] < found[4]
    assert ahead[4]["report_relevance_ahead"] == ahead[5]["report_relevance_ahead"]
    assert ahead[4]["report_relevance_ahead"] == pytest.approx(ahead[4]["report_relevance"])


def test_a_skeleton_takes_nothing_away_from_an_entry_that_may_answer() -> None:
    asked = query("retries", question="retries of a queue")
    known = candidate("retries", report="retries of a queue", id="known")
    other = candidate("retries of jobs", report="a queue of jobs", id="other")
    skeletons = [
        candidate(
            "retries of a queue",
            question="retries of a queue",
            report=asked.question,
            id=f"s{n}",
            origin="skeleton",
        )
        for n in range(6)
    ]
    for entries in ([known], [known, other], [other, known]):
        alone = numbers(asked, *entries)
        assert numbers(asked, *entries, *skeletons)[: len(entries)] == alone
        assert numbers(asked, *skeletons, *entries)[len(skeletons) :] == alone


def test_a_skeleton_is_held_against_the_entries_that_may_answer() -> None:
    asked = query("retries", question="retries of a queue")
    skeleton = candidate("retries of a queue", id="s", origin="skeleton")
    twin = skeleton._replace(entry=replace(skeleton.entry, id="t"))
    known = candidate("retries", report="retries of a queue", id="known")
    (alone,) = numbers(asked, skeleton)
    assert numbers(asked, skeleton, twin) == [alone, alone]
    name = "words_in_need_ahead"
    assert numbers(asked, skeleton, known)[0][name] < alone[name]
    assert alone[name] == numbers(asked, candidate("retries of a queue"))[0][name]


def test_an_act_and_a_thing_count_in_whichever_word() -> None:
    known = candidate("purge entries from the modal", report="Unmount it.")
    (same,) = numbers(query("purge entries from the modal"), known)
    (other,) = numbers(query("delete rows of a dialog"), known)
    (foreign,) = numbers(query("encrypt an avatar"), known)
    assert same["acts_in_need"] == pytest.approx(other["acts_in_need"], abs=0.3)
    assert other["acts_in_need"] > 0 == foreign["acts_in_need"]
    assert (
        other["kindred_words_in_need"]
        > 0
        == same["kindred_words_in_need"]
        == foreign["kindred_words_in_need"]
    )
    assert same["concepts_missing"] < foreign["concepts_missing"]


def test_every_word_of_a_concept_is_a_root_and_leads_to_it() -> None:
    acts, things = table("concepts.txt").partition("\n")[2].split("\n\n")
    for line in (*acts.splitlines(), *things.splitlines()):
        roots = tuple(line.split())
        assert len(set(roots)) == len(roots) > 1
        for word in roots:
            assert root(word) == word
            assert [one.is_act for one in concepts(word) if one.roots == roots] == [line in acts.splitlines()]
    assert concepts("sharding") == ()


def test_a_typing_error_finds_its_word_where_it_is_one_that_nobody_writes() -> None:
    (slip,) = numbers(query("debuonce of jobs"), candidate("debounce of jobs"))
    (other,) = numbers(query("dqwxzyv of jobs"), candidate("debounce of jobs"))
    assert slip["words_not_in_need"] < other["words_not_in_need"]


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
@settings(max_examples=40, deadline=None)
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


@given(
    WORDS, TAGS, WORDS, st.lists(st.tuples(WORDS, TAGS.filter(bool), WORDS, WORDS), min_size=1, max_size=3)
)
@settings(max_examples=40, deadline=None)
def test_one_more_tag_that_both_have_speaks_against_nothing(
    topic: str, tags: list[str], question: str, held: list[tuple[str, list[str], str, str]]
) -> None:
    known = [
        candidate(theirs, *with_tags, question=in_words, report=report, id=str(place))
        for place, (theirs, with_tags, in_words, report) in enumerate(held)
    ]
    asked = query(topic, *tags, question=question)
    shared = next((tag for tag in held[0][1] if tag not in tags and tag != "?"), None)
    before = numbers(asked, *known)[0]
    after = numbers(replace(asked, tags=(*tags, shared) if shared else asked.tags), *known)[0]
    assert after == pytest.approx(before)


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
