import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.text.keywords import FUNCTION_WORDS, MAX_KEYWORDS, keywords

WORDS = st.sampled_from(
    [
        "useEffect",
        "max_overflow",
        "how",
        "the",
        "OAuth2",
        "虚拟滚动",
        "v-model",
        "N+1",
        "don't",
        "ＡＢＣ",
        "İ",
        "ǅ",
        "テーブル",
        "가상",
        "हिन्दी",
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=12).map(" ".join))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("virtual scroll configuration", ("virtual", "scroll", "configuration")),
        ("useEffect", ("use", "effect")),
        ("response_model_exclude_unset", ("response", "model", "exclude", "unset")),
        ("XMLHttpRequest URLs", ("xml", "http", "request", "urls")),
        ("OAuth2 flow", ("oauth2", "flow")),
        ("虚拟滚动 rowKey", ("虚拟", "拟滚", "滚动", "row", "key")),
        ("列", ("列",)),
        ("テーブル", ("テー", "ーブ", "ブル")),
        ("가상 스크롤", ("가상", "스크", "크롤")),
        ("ﾃｰﾌﾞﾙ", ("テー", "ーブ", "ブル")),
        ("ＦａｓｔＡＰＩ", ("fast", "api")),
        ("How do I use the scroll, and the scroll?", ("use", "scroll")),
        ("MySQL and onOk", ("mysql", "onok")),
        ("fixed-header, v2.7", ("fixed", "header", "v2", "7")),
        ("Straße", ("strasse",)),
        ("हिन्दी", ("हिन्दी",)),
        ("the of and", ()),
        ("?!… --", ()),
        ("", ()),
    ],
)
def test_splits_and_folds(text: str, expected: tuple[str, ...]) -> None:
    assert keywords(text) == expected


@given(TEXTS)
def test_is_idempotent(text: str) -> None:
    once = keywords(text)
    assert keywords(" ".join(once)) == once


@given(TEXTS)
def test_holds_no_function_word_and_nothing_twice(text: str) -> None:
    found = keywords(text)
    assert not FUNCTION_WORDS.intersection(found)
    assert len(found) == len(set(found)) <= MAX_KEYWORDS
    assert all(found)


@given(st.sampled_from(sorted(FUNCTION_WORDS)))
def test_drops_function_words_in_any_case(word: str) -> None:
    assert not {word, word.upper()}.intersection(keywords(f"{word.upper()} {word.title()} {word}"))


@pytest.mark.parametrize("unit", ["w1 ", "a-", "aB", "虚拟", "_", "'", "ａ", "e\u0301", "not "])
def test_a_hostile_text_costs_little(unit: str) -> None:
    text = unit * (2**20 // len(unit))
    started = time.process_time()
    assert len(keywords(text)) <= MAX_KEYWORDS
    assert time.process_time() - started < 4


def test_counts_the_first_keywords_only() -> None:
    text = " ".join(f"word{number}" for number in range(1000))
    assert len(keywords(text)) == MAX_KEYWORDS
    assert keywords(text, limit=3) == ("word0", "word1", "word2")
