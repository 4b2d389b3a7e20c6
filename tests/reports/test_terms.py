import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.reports.terms import MAX_NAMES, MAX_WORDS, Terms, question_terms


def _found(question: str, text: str, *, framework: str = "x", topic: str = "") -> set[str]:
    terms = question_terms(framework, question, topic)
    return {terms.all[at].word for at in terms.within(text)}


def _weight(terms: Terms, word: str) -> float:
    return next(term.weight for term in terms.all if term.word == word)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("repeatable", "repeated options"),
        ("repeatable", "Repeat it"),
        ("validate", "field_validator"),
        ("redirects", "follow_redirects=True"),
        ("connections", "connecting"),
        ("environment", "env"),
        ("env", "the environment"),
        ("immutable", "faux-immutability"),
        ("queries", "QueryBuilder"),
        ("配置", "如何配置路由"),
    ],
)
def test_near_equal_words_meet(asked: str, written: str) -> None:
    assert _found(asked, written) == {asked}


@pytest.mark.parametrize(
    ("asked", "written"),
    [("model", "module"), ("state", "stage"), ("session", "sessile"), ("port", "portion")],
)
def test_different_words_do_not(asked: str, written: str) -> None:
    assert _found(asked, written) == set()


def test_words_that_are_written_as_one_are_found() -> None:
    assert _found("lower case", "to lowercase") == {"lower", "case"}
    assert _found("token sort ratio", "tokenSortRatio") == {"token", "sort", "ratio"}


def test_generic_verbs_weigh_little_and_the_framework_nothing() -> None:
    terms = question_terms("click", "How do I make a click option repeatable?")
    assert {term.word for term in terms.all} == {"make", "option", "repeatable"}
    assert _weight(terms, "make") < 0.5 < _weight(terms, "repeatable")
    assert [term.word for term in terms.all if term.is_main] == ["option", "repeatable"]


def test_a_question_of_the_frameworks_name_alone_is_asked_with_it() -> None:
    assert [term.word for term in question_terms("click", "What is click?").all] == ["click"]


def test_a_name_weighs_more_than_its_parts() -> None:
    terms = question_terms("x", "What is pool_pre_ping?")
    assert _weight(terms, "pool_pre_ping") > 1 > _weight(terms, "ping")
    assert _found("What is pool_pre_ping?", "`pool_pre_ping`") == {"pool_pre_ping", "pool", "pre", "ping"}
    assert "pool_pre_ping" not in _found("What is pool_pre_ping?", "pool pre ping")


def test_what_the_topic_adds_weighs_less() -> None:
    terms = question_terms("x", "Which heights?", "row heights")
    assert _weight(terms, "heights") == 1.5
    assert _weight(terms, "row") == 0.5


def test_single_letters_ask_for_nothing() -> None:
    assert question_terms("click", "x y z", "x y z", ["x"]).all == ()
    assert question_terms("click", "Plot y over x").all != ()


def test_a_value_is_no_function_word() -> None:
    assert _found("leave out None values", "exclude_none") == {"none"}


def test_repetitions_are_counted() -> None:
    terms = question_terms("x", "alpha")
    assert terms.count("alpha alphas beta Alpha_beta") == {0: 3}


def test_a_glimpse_sees_what_a_look_sees() -> None:
    terms = question_terms("x", "repeatable queries")
    for text in ("Repeat the QUERY", "multiple queries"):
        assert set(terms.glimpse(text)) == terms.within(text) == {0, 1}


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=40))
def test_any_text_can_be_asked_and_searched(question: str, text: str, framework: str) -> None:
    terms = question_terms(framework, question, text)
    assert len(terms.all) <= MAX_WORDS + MAX_NAMES
    assert all(0 <= at < len(terms.all) for at in terms.within(text))
    assert terms.within(text) == terms.within(text)
    terms.glimpse(text)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("colours", "color"),
        ("behaviour", "behaviors"),
        ("serialise", "serialized"),
        ("normalisation", "normalize"),
        ("analyse", "analyzed"),
    ],
)
def test_british_spelling_finds_american_text(asked: str, written: str) -> None:
    assert _found(asked, written) == {asked}


def test_words_that_end_alike_stay_as_they_are() -> None:
    assert not _found("hours of four courses", "hors for cors")
    assert _found("promise", "promises") == {"promise"}


def test_a_function_word_in_backticks_is_a_name() -> None:
    assert "where" in [term.word for term in question_terms("kysely", "How do I say or in `where`?").all]
    assert "where" not in [term.word for term in question_terms("kysely", "Where do I say or?").all]


def test_a_hyphened_word_is_also_written_as_one() -> None:
    assert question_terms("sheet", "A drop-down for a cell").within("Shown as a dropdown")


def test_a_symbol_is_named_as_a_whole_and_in_its_letters() -> None:
    terms = question_terms(
        "form", "Is form.setValue or `reset` called for `Field.run`, not Session, instead of `old`?"
    )
    titles = [
        "form.setValue",
        "setValue",
        "Form > `reset`",
        "form.Field.run",
        "setvalue",
        "Other.run",
        "Session",
        "old",
        "presets",
    ]
    assert [terms.is_symbol(title) for title in titles] == [True] * 4 + [False] * 5


@pytest.mark.parametrize(
    ("title", "is_spelled"),
    [
        ("web.replies.StreamingReply", True),
        ("web.Client.stream_replies", True),
        ("web.replies.Stream", False),  # one word of two
        ("web.replies.StreamingReplyError", False),
        ("Streaming > A reply", False),
    ],
)
def test_a_name_of_all_words_of_a_question_is_spelled_by_it(title: str, is_spelled: bool) -> None:
    assert question_terms("web", "How do I stream a reply?").is_spelled(title) is is_spelled
    assert not question_terms("web", "How do I stream a large reply to a file?").is_spelled(title)


def test_a_language_is_no_name_of_the_package() -> None:
    terms = question_terms("zod", "How do I infer the TypeScript type of a schema?")
    assert {term.word: term.is_name for term in terms.all if term.is_main} == {
        "infer": False,
        "type": False,
        "schema": False,
    }
    assert [term.word for term in question_terms("zod", "TypeScript?").all] == ["typescript"]
