from hypothesis import given
from hypothesis import strategies as st

from kr.matching.terms import (
    NEED,
    QUESTION,
    REPORT,
    TAGS,
    TOPIC,
    WORDINGS,
    keys_of,
    root,
    standing_in,
    terms,
    times_in_report,
    whole,
)

NEEDS = st.tuples(
    st.text(max_size=30), st.lists(st.text(max_size=12), max_size=3), st.none() | st.text(max_size=30)
)


def test_each_term_tells_where_it_stands_and_how_often_the_report_has_it() -> None:
    keys = keys_of(
        ("queue retries", ["workers"], "How are queues drained?"),
        [("job backlog", ["broker"], None)],
        "A queue is a queue. Drained at once.",
    )
    assert keys[root("queue")] & ~(255 << 5) == TOPIC | QUESTION | REPORT
    assert times_in_report(keys[root("queue")]) == 2
    assert keys[root("retries")] == TOPIC
    assert keys[root("workers")] == TAGS
    assert keys[root("drained")] & 31 == QUESTION | REPORT
    assert keys[root("backlog")] == keys[root("broker")] == WORDINGS
    assert standing_in(keys, TAGS) == {root("workers")}
    assert standing_in(keys, NEED) >= {root("queue"), root("backlog"), root("drained")}
    assert standing_in(keys, REPORT) == {term.text for term in terms("A queue is a queue. Drained at once.")}


def test_the_whole_topics_are_keys_that_no_word_is() -> None:
    keys = keys_of((" Queue RETRIES", [], None), [("Job Backlog", [], None)], "=queue retries")
    assert {key for key in keys if key.startswith("=")} == {"=queue retries", whole("job backlog", "")}
    assert keys[whole("queue retries ")] == TOPIC
    assert keys[whole("JOB  backlog", "")] == WORDINGS
    assert whole("queue") not in keys
    assert not any(term.startswith("=") for term in standing_in(keys, NEED))


def test_a_wording_that_says_the_same_is_marked_beside() -> None:
    keys = keys_of(("queues", [], None), [("Queues", [], None)], "")
    assert keys[root("queues")] == TOPIC | WORDINGS
    assert (keys[whole("queues")], keys[whole("queues", "")]) == (TOPIC, WORDINGS)


def test_the_count_has_a_limit() -> None:
    assert times_in_report(keys_of(("t", [], None), [], "queue " * 1000)[root("queue")]) == 255
    assert keys_of(("t", [], None), [], "queue " * 1000)[root("queue")] < 2**31


@given(NEEDS, st.lists(NEEDS, max_size=3), st.text(max_size=60))
def test_keys_are_of_every_place_and_of_no_other(
    own: tuple[str, list[str], str | None], wordings: list[tuple[str, list[str], str | None]], report: str
) -> None:
    keys = keys_of(own, wordings, report)
    assert keys[whole(own[0])] & TOPIC
    assert standing_in(keys, TOPIC) == {term.text for term in terms(own[0])}
    assert standing_in(keys, QUESTION) == {term.text for term in terms(own[2] or "")}
    counted = sum(times_in_report(places) for places in keys.values())
    assert counted == len(terms(report))
    assert keys == keys_of(own, wordings[::-1], report)
