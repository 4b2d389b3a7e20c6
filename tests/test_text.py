"""How topics and questions are compared (rule 3.1, 3.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.text import (
    NEGATING_WORDS,
    SMALL,
    beginning,
    contraries,
    derive_topic,
    identifiers,
    keywords,
    search_words,
    searchable,
    stem,
    summary_of,
    tokens,
    tokens_of,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("validate a form", "Validating forms"),
        ("retry failed requests", "retrying a failed request"),
        ("the caches of queries", "cache query"),
        ("stopped workers", "stopping worker"),
        ("lazy routes", "lazy route"),
        ("naïve Größe", "NAÏVE GRÖSSE"),
        ("全角ＡＢＣ", "全角abc"),
    ],
)
def test_inflection_case_and_small_words_make_no_other_need(one: str, other: str) -> None:
    assert keywords(one) == keywords(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("convert JSON to XML", "convert XML to JSON"),
        ("turn on strict mode", "turn off strict mode"),
        ("class", "clas"),
        ("status codes", "state codes"),
        ("run before commit", "run after commit"),
        ("wait for jobs", "never wait for jobs"),
        ("wait for jobs", "don't wait for jobs"),
        ("copy to a file", "copy from a file"),
    ],
)
def test_order_and_words_that_turn_a_need_round_make_another(one: str, other: str) -> None:
    assert keywords(one) != keywords(other)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("turn it on", "turn it off", False),
        ("enable caching", "caching", False),
        ("don't wait", "wait", False),
        ("DON’T wait", "dont wait", True),
        ("增加超时", "减少超时", False),
        ("允许跨域", "禁止跨域", False),
        ("show rows", "print rows", False),
        ("print rows", "list rows", True),
        ("case-sensitive", "case-insensitive", False),
    ],
)
def test_contraries_are_what_must_not_differ(one: str, other: str, is_same: bool) -> None:
    assert (contraries(one) == contraries(other)) is is_same


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What does --max-cost do?", {"--max-cost"}),
        ("What does `useMemo` memoize", {"usememo"}),
        ("call asyncio.gather() twice", {"asyncio.gather"}),
        ("set max_entries and HTTP2", {"max_entries", "http2"}),
        ("pin @acme/core", {"@acme/core"}),
        ("an ordinary sentence. And another one", set()),
        ("left-aligned text", set()),
        ("run psql -V", {"-V"}),
        ("C++, not C#", {"c++", "c#"}),
        ("x >= 5 && y == z", {">=", "&&", "=="}),
    ],
)
def test_identifiers_are_names_of_code(text: str, named: set[str]) -> None:
    assert identifiers(text) == named


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("How do I close a database session after each request?", "close database session after request"),
        ("How can I turn off strict mode in vue?", "turn off strict mode"),
        ("What is the best way to not wait for jobs?", "not wait jobs"),
        ("Do I log users in or out?", "log users in out"),
        ("How do I get a cookie?", "get cookie"),
        ("How do I do a request with GET?", "request GET"),
        ("How do I run one test?", "run one test"),
        ("Why?", "Why"),
        ("如何启用暗色模式？", "如何启用暗色模式"),
    ],
)
def test_the_topic_is_the_question_without_its_asking_words(question: str, topic: str) -> None:
    assert derive_topic("vue", question) == topic


@given(st.sampled_from(sorted(NEGATING_WORDS)), st.sampled_from(["strict mode", "the cache", "a worker"]))
def test_a_topic_keeps_every_word_that_turns_a_need_round(word: str, rest: str) -> None:
    assert word in derive_topic("vue", f"How do I set {word} {rest}?").split()


@given(st.text(max_size=200))
def test_words_of_any_text_are_folded_and_told_again_alike(text: str) -> None:
    assert tokens(text) == [token.casefold() for token in tokens(text)]
    assert keywords(text) == keywords(text.upper().lower()) or not text.isascii()
    assert not set(search_words(text)) & (SMALL | NEGATING_WORDS)
    assert len(search_words(text)) == len(set(search_words(text)))


@pytest.mark.parametrize(
    "words", ["retry retries retried retrying", "try tries tried trying", "cache caches cached caching"]
)
def test_all_inflections_have_one_stem_and_begin_alike(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1
    assert all(word.startswith(beginning(other)) for word in words.split() for other in words.split())


def test_an_identifier_is_found_by_its_words_and_chinese_by_its_characters() -> None:
    assert {"use", "memo", "usememo"} <= set(tokens(searchable("useMemo")))
    assert {"max", "entries"} <= set(tokens(searchable("max_entries")))
    assert search_words("启用") == ["启", "用"]
    assert search_words("vue slots", without=frozenset({"vue"})) == ["slots"]


def test_a_summary_ends_with_a_sentence_where_one_fits() -> None:
    assert (
        summary_of("One sentence here. And then a longer one that does not fit.", 30) == "One sentence here."
    )
    assert summary_of("word " * 50, 20) == "word word word…"


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fours", 2), ("虚拟滚动", 4), ("ab 虚拟", 3)]
)
def test_tokens_are_a_quarter_of_the_characters_and_wide_ones_whole(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens
