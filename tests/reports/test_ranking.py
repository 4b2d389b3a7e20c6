from hypothesis import given
from hypothesis import strategies as st
from kr.reports.ranking import rank, rarity
from kr.reports.terms import question_terms

_WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "filler", "\n\n", "- `alpha`:"]), max_size=30
).map(" ".join)


def _order(question: str, *texts: tuple[str, str]) -> list[int]:
    return [row.index for row in rank(texts, question_terms("x", question))[0]]


def test_a_title_that_is_the_question_comes_first() -> None:
    assert _order("add row", ("p.Table", "add a row"), ("p.Table.add_row", "add a row")) == [1, 0]
    assert _order("row", ("p.Table.add_row_count", "a row"), ("p.row", "a row")) == [1, 0]


def test_a_definition_lifts() -> None:
    assert _order("multiple", ("", "multiple things are here"), ("", "- `multiple`: things are here")) == [
        1,
        0,
    ]


def test_words_that_stand_together_lift() -> None:
    apart = "alpha filler filler\n\nfiller filler\n\nfiller beta"
    together = "filler filler filler\n\nalpha beta\n\nfiller"
    assert _order("alpha beta", ("", apart), ("", together)) == [1, 0]


def test_what_holds_nothing_is_left_out() -> None:
    assert _order("alpha", ("", "beta"), ("", "alpha")) == [1]
    assert _order("alpha", ("", "")) == []


def test_factors_and_a_given_rarity_are_used() -> None:
    texts = [("", "alpha"), ("", "alpha")]
    terms = question_terms("x", "alpha")
    assert [row.index for row in rank(texts, terms, factors=[0.5, 1.0])[0]] == [1, 0]
    assert rank(texts, terms, rare=[7.0])[1] == [7.0]


def test_an_end_of_time_leaves_the_rest_unread() -> None:
    rows, _ = rank([("", "alpha")] * 200, question_terms("x", "alpha"), expired=lambda: True)
    assert 0 < len(rows) < 200


def test_the_rarer_the_heavier() -> None:
    common, rare, absent = rarity(question_terms("x", "alpha beta gamma"), [{0}, {0}, {0, 1}])
    assert 0 < common < rare < absent


@given(st.lists(st.tuples(_WORDS, _WORDS), max_size=8))
def test_a_ranking_is_the_same_for_the_same_texts_and_in_order(texts: list[tuple[str, str]]) -> None:
    terms = question_terms("x", "alpha beta gamma")
    rows, rare = rank(texts, terms)
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    assert all(row.score > 0 for row in rows)
    assert (rows, rare) == rank(texts, question_terms("x", "alpha beta gamma"))
