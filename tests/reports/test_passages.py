from kr.reports.passages import MAX_SOURCES, ranked, read_answer
from kr.reports.terms import question_terms
from kr.values import Answer, Passage


def _answer(*texts: str, source: str = "web_search") -> Answer:
    return Answer(
        source=source,
        passages=tuple(Passage(text=text, url=f"https://{n}.example/") for n, text in enumerate(texts)),
    )


def _order(question: str, *texts: str, source: str = "web_search") -> list[int]:
    units = read_answer(_answer(*texts, source=source)).units
    return [row.unit.origin.number for row in ranked(units, question_terms("x", question))]


def test_a_rare_keyword_weighs_more() -> None:
    assert _order("alpha beta", "alpha one", "alpha two", "beta three") == [3, 1, 2]


def test_different_keywords_count_more_than_one_repeated() -> None:
    assert _order("alpha beta", "alpha alpha alpha alpha alpha alpha", "beta alpha") == [2, 1]


def test_inflections_meet() -> None:
    assert _order("Is it repeatable?", "Nothing.", "Repeated options are lists.") == [2]


def test_a_heading_lifts_what_stands_below() -> None:
    assert _order("alpha", "text about alpha", "# Alpha\n\ntext about alpha") == [2, 1]


def test_a_page_loses_what_shares_no_keyword_and_an_answer_does_not() -> None:
    assert _order("alpha", "alpha", "beta") == [1]
    assert _order("gamma", "alpha", "beta") == [1, 2]
    assert _order("alpha", "beta", "alpha", source="context7") == [2, 1]


def test_installed_documentation_keeps_its_order() -> None:
    assert _order("alpha beta", "alpha", "nothing", "alpha beta", source="local_docs") == [1, 2, 3]


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


def test_a_source_that_was_cut_before_is_told_once() -> None:
    whole = Passage(text="alpha", url="https://whole.example/")
    cut = [Passage(text=text, url="https://cut.example/", is_cut=True) for text in ("a", "b", "c " * 400_000)]
    material = read_answer(Answer(source="web_search", passages=(whole, *cut)))
    assert material.omitted == ("Of Source 2, only the beginning was read.",)
