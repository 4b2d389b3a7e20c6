from hypothesis import given
from hypothesis import strategies as st

from kr.rules.corpus import words_of
from kr.rules.keywords import keywords
from kr.rules.passages import MAX_SOURCES, best_sentences, caveats, ranked, read_answer, score, weights
from kr.values import Answer, Passage


def _answer(*texts: str, source: str = "web_search") -> Answer:
    return Answer(
        source=source,
        passages=tuple(Passage(text=text, url=f"https://{n}.example/") for n, text in enumerate(texts)),
    )


def test_a_rare_keyword_weighs_more() -> None:
    units = read_answer(_answer("alpha one", "alpha two", "alpha beta")).units
    weight = weights("alpha beta", units)
    assert weight["beta"] > weight["alpha"] > 0
    assert score(["beta", "beta"], weight) == weight["beta"]
    assert [unit.origin.number for unit in ranked(units, weight)] == [3, 1, 2]


def test_a_heading_lifts_what_stands_below() -> None:
    units = read_answer(_answer("text about alpha", "# Alpha\n\ntext about alpha")).units
    assert [unit.origin.number for unit in ranked(units, weights("alpha", units))] == [2, 1]


def test_a_unit_is_a_heading_and_what_follows() -> None:
    units = read_answer(
        _answer("before\n\n# One\n\na\n\n```py\nx\n```\n\n- b\n\n## Two\n\n| c |\n|---|\n| d |")
    ).units
    assert [(unit.heading, [block.kind for block in unit.blocks]) for unit in units] == [
        (None, ["prose"]),
        ("One", ["prose", "code", "list"]),
        ("Two", ["table"]),
    ]


def test_repeated_passages_are_kept_once_and_many_addresses_are_told() -> None:
    assert len(read_answer(_answer("same text", "same text")).units) == 1
    material = read_answer(_answer(*(f"text {n}" for n in range(MAX_SOURCES + 5))))
    assert len(material.origins) == MAX_SOURCES
    assert len(material.omitted) == 1


def test_a_cut_passage_is_told() -> None:
    material = read_answer(_answer("word " * 200_000))
    assert material.omitted == ("Of a passage of Source 1, only the beginning was read.",)


def test_sentences_keep_the_order_of_the_source() -> None:
    text = "Nothing here to be seen. First alpha and beta meet.\nThen, e.g. Gamma, alpha alone is left. Alpha, beta, gamma all meet."
    units = read_answer(_answer(text)).units
    found = [sentence for _, sentence in best_sentences(units, weights("alpha beta gamma", units), 2)]
    assert found == ["First alpha and beta meet.", "Alpha, beta, gamma all meet."]


def test_items_of_a_list_are_sentences_and_half_a_code_span_hides_nothing() -> None:
    units = read_answer(
        _answer("- alpha item number one\n- beta\n\nSee `alpha stays here. <img src=x> alpha`.")
    ).units
    found = [sentence for _, sentence in best_sentences(units, weights("alpha", units), 5)]
    assert found[0] == "alpha item number one"
    assert not any("<img" in sentence for sentence in found)


def test_caveats_speak_of_versions_and_warnings() -> None:
    text = (
        "All is well. The option `x` is deprecated since v3. 注意：该选项已弃用。 Warning: it blocks. Go on."
    )
    units = read_answer(_answer(text)).units
    found = [sentence for _, sentence in caveats(units, {}, 9)]
    assert found == ["The option `x` is deprecated since v3.", "注意：该选项已弃用。", "Warning: it blocks."]


@given(st.lists(st.sampled_from(["alpha", "betaGamma", "漢字", "don't", "x_y", "é"]), max_size=30))
def test_words_of_a_short_text_are_its_keywords(words: list[str]) -> None:
    text = " ".join(words)
    assert words_of(text) == frozenset(keywords(text))


def test_words_of_a_long_text_are_all_there() -> None:
    text = "\n".join(f"word{n} filler" for n in range(3000))
    assert {f"word{n}" for n in range(3000)} <= words_of(text)
