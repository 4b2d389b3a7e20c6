import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.reports.passages import Ranked, ranked, read_answer
from kr.reports.summary import Summary, caveats, summarize
from kr.reports.terms import question_terms
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


def _caveats(question: str, *texts: str, source: str = "web_search") -> list[str]:
    passages = tuple(Passage(text=text, url=f"https://a.example/{at}") for at, text in enumerate(texts))
    terms = question_terms("click", question)
    units = read_answer(Answer(source=source, passages=passages)).units
    rows = ranked(units, terms)
    rest = [Ranked(unit, 0.0) for unit in units if all(unit is not row.unit for row in rows)]
    return [quotation.text for quotation in caveats([*rows, *rest], terms, 9)]


_REPEATABLE = "# Repeatable options\n\nTo make an option repeatable, pass the argument for many values.\n\n"


@pytest.mark.parametrize(
    "heading",
    [
        "Caveats",
        "Limitations",
        "Known issues",
        "Gotchas",
        "Warning",
        "Breaking changes in 9.0",
        "Deprecated",
        "Migration guide",
        "Migrating from 7.x",
        "3.2. Important notes",
        "注意事项",
        "已知问题",
        "限制",
        "三、使用限制",
    ],
)
@pytest.mark.parametrize("source", ["web_search", "context7"])
def test_what_stands_below_a_heading_of_caveats_is_one(heading: str, source: str) -> None:
    text = f"{_REPEATABLE}## {heading}\n\nThe shell expands nothing there. 环境变量会被忽略，请另行设置。\n"
    assert _caveats("How do I make an option repeatable?", text, source=source) == [
        "The shell expands nothing there.",
        "环境变量会被忽略，请另行设置。",
    ]


def test_caveats_of_a_page_about_something_else_are_not_told() -> None:
    other = "# Colours\n\nThe terminal has sixteen.\n\n## Known issues\n\nSome terminals show none of them.\n"
    assert _caveats("How do I make an option repeatable?", _REPEATABLE, other) == []


def test_a_heading_that_the_question_asks_for_announces_nothing() -> None:
    text = "# Migrations\n\nA migration is a file. It has two functions.\n\n# Squashing\n\nMigrations squash well.\n"
    assert _caveats("How do I write a migration?", text) == []
    for heading in ("Rate limiting", "速率限制", "Release notes", "The issues page"):
        told = f"{_REPEATABLE}# {heading}\n\nThe shell expands nothing there.\n"
        assert _caveats("How do I make an option repeatable?", told, source="context7") == [], heading


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"{_REPEATABLE}This is deprecated in version 3.",
            [
                "To make an option repeatable, pass the argument for many values.",
                "This is deprecated in version 3.",
            ],
        ),
        ("# Repeatable options\n\nDeprecated since version 8.0.", ["Deprecated since version 8.0."]),
        ("# Colours\n\nSixteen are there.\n\nThis is deprecated in version 3.", []),
    ],
)
def test_a_caveat_that_points_back_comes_with_its_subject(text: str, told: list[str]) -> None:
    assert _caveats("How do I make an option repeatable?", text, source="context7") == told


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


@pytest.mark.parametrize(
    "warning",
    [
        '!!! warning "Memory"\n    Big tables use much memory.',
        "**Warning**: sort() mutates the given one.",
        "**Note:** Safari below 14 isn't among the browsers.",
        ":::caution Heights\nThey must be the same.\n:::",
        "- **Warning:** The shell expands nothing.",
    ],
)
def test_a_warning_that_is_set_apart_is_a_caveat_where_the_question_is_spoken_of(warning: str) -> None:
    other = "# Colours\n\nThe terminal has sixteen.\n\n**Note:** Some terminals show none of them.\n"
    question = "How do I make an option repeatable?"
    for source in ("context7", "web_search"):
        assert len(_caveats(question, f"{_REPEATABLE}{warning}\n", source=source)) == 1
    assert _caveats(question, _REPEATABLE, other) == []


def test_no_section_of_caveats_falls_out_behind_another() -> None:
    changes = "".join(f"The option number {n} has another name here now.\n\n" for n in range(30))
    text = (
        f"{_REPEATABLE}## Breaking changes\n\n{changes}## Caveats\n\nOne is slow. Two are slower than that.\n\n"
        "| Size | Time |\n|---|---|\n| 9 | 8 |\n\n## Limitations\n\nThe shell expands nothing there.\n"
    )
    rows = read_answer(Answer(source="context7", passages=(Passage(text=text),))).units
    terms = question_terms("click", "How do I make an option repeatable?")
    found = caveats(ranked(rows, terms), terms, 9)
    assert "Two are slower than that." in [quotation.text for quotation in found]
    assert "| Size | Time |\n| --- | --- |\n| 9 | 8 |" in [quotation.text for quotation in found]
    assert "The shell expands nothing there." in [quotation.text for quotation in found]
    cut = [quotation.unit.heading for quotation in found if quotation.is_cut]
    assert set(cut) == {"Breaking changes"}


def test_what_is_said_in_brackets_of_another_parameter_is_no_caveat() -> None:
    text = f"{_REPEATABLE}- `extra`: (Deprecated) more for an option.\n- `option`: (Deprecated) the repeatable one.\n"
    found = _caveats("How do I make an option repeatable?", text, source="context7")
    assert found == ["`option`: (Deprecated) the repeatable one."]
