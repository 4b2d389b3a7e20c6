"""What a question implies in the words of documentation."""

from kr.reports.choosing import choose
from kr.reports.implied import implied
from kr.reports.passages import read_answer
from kr.reports.terms import question_terms
from kr.values import Answer, Passage


def test_words_and_phrases_imply_what_documentation_calls_them() -> None:
    found = implied("How do I give up on a download after five seconds?")
    assert found["timeout"] == {"give", "up", "seconds"}
    assert found["get"] == {"download"}
    assert implied("Which one is on?") == {}, "a stem of two letters is no word of the table"


def test_a_value_that_is_given_as_an_example_implies_its_kind() -> None:
    assert {"date", "format"} <= implied('How do I parse "23/11/2026 14:05"?').keys()
    assert {"pattern", "glob"} <= implied("How do I watch *.py files?").keys()


def test_what_is_implied_counts_less_than_what_is_said_and_only_where_it_is_asked_for() -> None:
    question = "How do I shrink a picture?"
    terms = {term.word: term for term in question_terms("x", question, implies=True).all}
    assert terms["resize"].weight < terms["shrink"].weight
    assert not terms["resize"].is_main
    assert "resize" not in {term.word for term in question_terms("x", question).all}


def test_a_passage_in_the_words_of_documentation_covers_the_question() -> None:
    units = read_answer(
        Answer(
            source="local_docs",
            passages=(
                Passage(
                    title="x.Image.thumbnail", text="Resize the image, preserving the aspect ratio.", url=None
                ),
            ),
        )
    ).units
    question = "How do I shrink an image, keeping its proportions?"
    assert choose(units, question_terms("x", question, implies=True)).covers
    assert not choose(units, question_terms("x", question)).covers
