from hypothesis import given
from hypothesis import strategies as st

from kr.rules.passages import ranked, read_answer
from kr.rules.summary import Summary, caveats, summarize
from kr.rules.terms import question_terms
from kr.values import Answer, Passage

OPTIONS = """\
# Option.value_from_envvar

Reads the variable of the environment. This method also takes care of repeated options (i.e. options with `multiple` set to `True`).

# Option

- `show_default`: show the default of this option in its help text.
- `prompt`: a deprecated option cannot be prompted. Any other option can.
- `multiple`: if this is set to `True` then the argument is accepted multiple times and recorded.

# Flags

An option may be a flag. Every option has a name. The option is optional.
"""


def _summarize(question: str, *texts: str, source: str = "context7", count: int = 5) -> Summary:
    answer = Answer(source=source, passages=tuple(Passage(text=text) for text in texts))
    terms = question_terms("click", question)
    return summarize(ranked(read_answer(answer).units, terms), terms, count)


def _texts(question: str, *texts: str, count: int = 5) -> list[str]:
    return [quotation.text for quotation in _summarize(question, *texts, count=count).quotations]


def test_a_rare_word_in_another_form_beats_an_everyday_one() -> None:
    found = _texts("How do I make an option repeatable?", OPTIONS)
    assert found[0] == "Reads the variable of the environment."
    assert found[1].startswith("This method also takes care of repeated options")
    assert not any("deprecated" in text or "optional" in text for text in found)


def test_a_name_that_the_best_sentence_gives_is_told_where_it_is_defined() -> None:
    found = _texts("How do I make an option repeatable?", OPTIONS)
    assert any(text.startswith("`multiple`: if this is set to `True`") for text in found)


def test_where_no_sentence_holds_enough_the_nearest_passage_begins() -> None:
    text = "# Other\n\nNothing of it.\n\n# Caching\n\nFirst this is said. Then that is told."
    found = _summarize("How do I configure the eviction of cached blobs per tenant?", text)
    assert not found.is_answer
    assert [quotation.text for quotation in found.quotations] == ["First this is said.", "Then that is told."]


def test_code_alone_has_no_summary() -> None:
    assert _summarize("alpha", "```\nalpha\n```").quotations == ()
    assert _summarize("alpha").quotations == ()


def test_a_sentence_that_points_back_brings_what_it_points_at() -> None:
    text = "The cache is kept in memory. It evicts the oldest blobs of each tenant. Blobs are files."
    assert _texts("Which blobs of a tenant does it evict?", text)[:2] == [
        "The cache is kept in memory.",
        "It evicts the oldest blobs of each tenant.",
    ]


def test_fragments_links_and_questions_do_not_lead() -> None:
    text = (
        "# A\n\nWhat is an idle connection?\n\n"
        "- [Ten idle connections that you should close](https://a.example/idle-connections)\n\n"
        "# B\n\nThe server closes a connection that is idle for a minute."
    )
    assert _texts("Why are idle connections closed?", text, count=1) == [
        "The server closes a connection that is idle for a minute."
    ]


def test_the_same_is_told_once() -> None:
    text = "# A\n\nThe pool has a size limit.\n\n# B\n\nThe pool has a size limit of five."
    assert len(_texts("How is the pool size limited?", text)) == 1


def test_half_a_code_span_hides_nothing() -> None:
    found = _texts("alpha", "See `alpha stays here. <img src=x> alpha`. Alpha is <b>bold</b> here.")
    assert all("<img" not in text.replace("`alpha stays here. <img src=x> alpha`", "") for text in found)
    assert not any("<b>" in text for text in found)


def test_caveats_speak_of_versions_and_warnings_where_the_question_is_spoken_of() -> None:
    text = (
        "# Alpha\n\nAll is well. The option `alpha` is deprecated since v3. 注意：alpha 选项已弃用。 "
        "Warning: alpha blocks. Beta is removed. Go on."
    )
    answer = Answer(source="context7", passages=(Passage(text=text),))
    terms = question_terms("x", "alpha")
    found = caveats(ranked(read_answer(answer).units, terms), terms, 9)
    assert [quotation.text for quotation in found] == [
        "The option `alpha` is deprecated since v3.",
        "注意：alpha 选项已弃用。",
        "Warning: alpha blocks.",
    ]


_PIECES = st.lists(
    st.sampled_from(
        [
            "alpha ",
            "Alpha beta. ",
            "This is gamma. ",
            "`code` ",
            "\n\n",
            "- `alpha`: beta\n",
            "# Heading\n\n",
            "```\nalpha\n```\n\n",
            "`",
            "[link](https://a.example/) ",
            "| a |\n|---|\n| b |\n\n",
            "漢字。",
        ]
    ),
    max_size=25,
).map("".join)


@given(st.lists(_PIECES, min_size=1, max_size=3), st.sampled_from(["alpha", "alpha beta gamma", "", "漢字"]))
def test_a_summary_is_taken_from_the_text_and_short(texts: list[str], question: str) -> None:
    found = _summarize(question, *texts, source="web_search")
    assert len(found.quotations) <= 5
    for quotation in found.quotations:
        said = " ".join(" ".join(block.text.split()) for block in quotation.unit.blocks)
        assert quotation.original in said
        assert "\n" not in quotation.text
