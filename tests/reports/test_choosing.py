import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.reports.choosing import MOST, Choice, choose, is_warned_off, ranked
from kr.reports.passages import read_answer
from kr.reports.terms import question_terms

from kr.values import Answer, Passage


def _answer(*texts: str, source: str = "web_search") -> Answer:
    passages = (Passage(text=text, url=f"https://{n}.example/") for n, text in enumerate(texts))
    return Answer(source=source, passages=tuple(passages))


def _order(question: str, *texts: str, source: str = "web_search") -> list[int]:
    units = read_answer(_answer(*texts, source=source)).units
    return [row.unit.origin.number for row in ranked(units, question_terms("x", question))]


def _choice(question: str, *texts: str, source: str = "web_search", tags: tuple[str, ...] = ()) -> Choice:
    return choose(read_answer(_answer(*texts, source=source)).units, question_terms("x", question, tags=tags))


def _taken(question: str, *texts: str, source: str = "web_search", tags: tuple[str, ...] = ()) -> list[int]:
    return [row.unit.origin.number for row in _choice(question, *texts, source=source, tags=tags).taken]


def test_a_rare_keyword_weighs_more() -> None:
    assert _order("alpha beta", "alpha one", "alpha two", "beta three") == [3, 1, 2]


def test_a_pages_section_for_contributors_comes_last_unless_it_is_asked_for() -> None:
    others = "# Contributing\n\nTo add alpha, submit alpha and beta."
    assert _order("alpha beta", others, "# Alpha\n\nAlpha, beta.") == [2, 1]
    assert _order("contributing alpha", others, "# Alpha\n\nAlpha is one.")[0] == 1


def test_different_keywords_count_more_than_one_repeated() -> None:
    assert _order("alpha beta", "alpha alpha alpha alpha alpha alpha", "beta alpha") == [2, 1]


def test_inflections_meet() -> None:
    assert _order("Is it repeatable?", "Nothing.", "Repeated options are lists.") == [2]


def test_a_heading_lifts_what_stands_below() -> None:
    assert _order("alpha", "text about alpha", "# Alpha\n\ntext about alpha") == [2, 1]


def test_tags_count() -> None:
    texts = ("The pool keeps connections.", "The pool keeps connections of threads.")
    assert _taken("How large is the pool?", *texts, tags=("threads",))[0] == 2


def test_a_page_loses_what_shares_no_keyword_and_an_answer_does_not() -> None:
    assert _order("alpha", "alpha", "beta") == [1]
    assert _order("gamma", "alpha", "beta") == [1, 2]
    assert _order("alpha", "beta", "alpha", source="context7") == [2, 1]


def test_installed_documentation_that_comes_later_counts_less() -> None:
    assert _order("alpha", "alpha one", "alpha two", "alpha six", source="local_docs") == [1, 2, 3]


def test_a_passage_far_below_the_best_is_left_out() -> None:
    best = "# Alpha beta\n\nThe alpha of a beta is set with gamma and delta."
    assert _taken("How do I set alpha beta gamma delta?", best, "Some delta.") == [1]


def test_of_a_package_less_is_left_out_than_of_pages() -> None:
    texts = (
        "# Alpha beta\n\nThe alpha of a beta is set with gamma.",
        "# Beta\n\nThe beta of an alpha is large.",
    )
    question = "How do I set alpha beta gamma?"
    assert _taken(question, *texts, source="local_docs") == [1, 2]
    assert _taken(question, *texts) == [1]


def test_what_says_the_same_is_taken_once() -> None:
    text = "The alpha of a beta is set in the file, as it always was and will be."
    assert _taken("alpha beta", text, f"{text} Yes.") == [1]


@given(
    st.lists(st.text("abc \n#", max_size=60), min_size=1, max_size=12),
    st.sampled_from(["context7", "web_search"]),
)
def test_never_more_than_five_and_the_best_first(texts: list[str], source: str) -> None:
    choice = _choice("a b", *texts, source=source)
    scores = [row.score for row in choice.taken]
    assert len(scores) <= MOST
    assert scores == sorted(scores, reverse=True)
    assert set(choice.taken) <= set(choice.rows)


_NEW = "# Cursors\n\nPass `cursor` to read the next rows of a page."


@pytest.mark.parametrize(
    "old",
    [
        "# Rows by cursor (deprecated)\n\nThe cursor of a page reads the next rows.",
        "# Legacy cursors\n\nThe cursor of a page reads the next rows.",
        "# Cursor\n\nDeprecated since 4.0: a page reads the next rows with a cursor of its own.",
        "# Cursor\n\nThis cursor is no longer recommended. It reads the next rows of a page.",
        "# Pitfall: a cursor of rows\n\nThe cursor of a page reads the next rows.",
        "# Don't read rows with a cursor\n\nThe cursor of a page reads the next rows.",
    ],
)
def test_what_a_source_warns_off_is_not_taken_where_there_is_another(old: str) -> None:
    assert _taken("How do I read the next rows of a page with a cursor?", old, _NEW, source="context7") == [2]
    assert _taken("How do I read the next rows of a page with a cursor?", old, source="context7") == [1]


@pytest.mark.parametrize(
    ("heading", "is_history"),
    [
        ("3.5 Transactions", False),
        ("9.3. Unix Socket commands", False),
        ("2.1", True),
        ("2.1.0 (2026-03-01)", True),
        ("v2.1 fixes", True),
    ],
)
def test_a_number_before_a_heading_is_no_version(heading: str, *, is_history: bool) -> None:
    units = read_answer(_answer(f"# {heading}\n\nA transaction is undone as a whole.")).units
    (row,) = ranked(units, question_terms("x", "How do I undo a transaction?"))
    assert row.is_warned_off is is_history


def test_a_warning_that_is_asked_for_is_none() -> None:
    units = read_answer(_answer("# Deprecated options\n\nThey go in 9.0.")).units
    assert not is_warned_off(units[0], question_terms("x", "Which options are deprecated?"))
    assert is_warned_off(units[0], question_terms("x", "Which options are there?"))


@pytest.mark.parametrize(
    ("told", "is_warned"),
    [
        ("It keeps cookies. The argument `old` is deprecated.", False),
        ("Deprecated since 4.0: Calling it with a second argument is deprecated.", False),
        ("The `old` parameter has been removed.", False),
        ("This argument is deprecated.", True),
        ("Deprecated since 4.0: Use a client, whose arguments are the same.", True),
    ],
)
def test_a_deprecated_parameter_is_no_deprecated_passage(told: str, is_warned: bool) -> None:
    unit = read_answer(_answer(f"# Session\n\nA session sends requests. {told}")).units[0]
    assert is_warned_off(unit, question_terms("x", "How do I send requests?")) is is_warned


def test_what_is_set_aside_does_not_lead() -> None:
    offset = "# Offset pagination\n\nOffset pagination skips rows and takes a page of them."
    cursor = "# Cursor pagination\n\nA cursor takes the rows after it."
    assert _taken("How do I paginate with a cursor instead of offset?", offset, cursor)[0] == 2


@pytest.mark.parametrize(
    ("question", "covers"),
    [
        ("How do I set the size of the connection pool?", True),
        ("How do I encrypt a column with a tenant's own key?", False),
        ("How do I use it?", True),
    ],
)
def test_what_does_not_cover_the_question_is_no_answer(question: str, covers: bool) -> None:
    text = "The connection pool has a size, which the column of the settings tells."
    assert _choice(question, text).covers is covers
    assert _choice(question, text, source="context7").covers


def _covers(
    question: str, *texts: str, topic: str = "", tags: tuple[str, ...] = (), source: str = "local_docs"
) -> bool:
    units = read_answer(_answer(*texts, source=source)).units
    return choose(units, question_terms("x", question, topic, tags)).covers


@pytest.mark.parametrize("source", ["local_docs", "web_search"])
def test_topic_and_tags_tell_what_a_story_is_about(source: str) -> None:
    story = "After the laptop sleeps my server keeps dead clients; how does it drop them?"
    broken = "# Broken connections\n\nA connection may be broken on both sides: ping it, and close it without a pong."
    assert _covers(
        story, broken, topic="detect broken connections", tags=("connection", "ping"), source=source
    )
    assert not _covers(story, broken, topic="client memory leak", tags=("memory", "profiling"), source=source)
    assert not _covers(story, broken, source=source)


def test_one_passage_has_to_say_most_of_the_tags() -> None:
    texts = (
        "# Rows\n\nA stream of rows.",
        "# Cells\n\nThe memory of cells.",
        "# Sheets\n\nA workbook of sheets.",
    )
    tags = ("stream", "memory", "workbook")
    assert not _covers("How do I write a big file?", *texts, topic="large file", tags=tags)
    together = "# Rows\n\nA stream of rows keeps the memory of a large workbook file small."
    assert _covers("How do I write a big file?", together, *texts, topic="large file", tags=tags)


def test_the_first_passage_has_to_be_about_the_need() -> None:
    about, beside = "# Rate limits\n\nA rate limit of requests.", "# Colours\n\nA colour of requests."
    topic, tags = "limit request rate", ("requests",)
    assert _covers("How do I limit requests?", about, beside, topic=topic, tags=tags)
    assert not _covers("How do I limit requests?", beside, topic=topic, tags=tags)


def test_a_passage_that_says_all_of_a_short_question_answers_it() -> None:
    text = "A slot is a place for content in a template."
    assert _covers("What is a slot?", text)
    assert not _covers("What is a named scope?", text)


def test_nothing_covers_nothing() -> None:
    assert choose((), question_terms("x", "alpha")) == Choice((), (), covers=False)


def _names(question: str, **documented: str) -> list[str]:
    passages = tuple(
        Passage(text=text, title=name.replace("__", "."), url=f"x 1.0: {name}")
        for name, text in documented.items()
    )
    choice = choose(
        read_answer(Answer(source="local_docs", passages=passages)).units, question_terms("x", question)
    )
    return [row.unit.title for row in choice.taken]


def test_a_name_that_several_classes_have_takes_one_place() -> None:
    text = "Leaves out the clients of a room when an event is sent to all of them, except the sender itself"
    question = "How do I send an event to all clients of a room except the sender?"
    documented = {"Namespace__except": f"{text}.", "Operator__except": f"{text}, of this operator."}
    assert _names(
        question,
        **documented,
        Socket__join="Sends an event to all clients of a room that they and the sender joined before.",
    ) == [
        "Namespace.except",
        "Socket.join",
    ]


def test_options_that_were_told_with_their_function_are_not_told_again() -> None:
    options = "```ts\ninterface WhenOptions {\n  is?: Schema;\n  then?: Schema;\n}\n```\n\n- `is`: the condition.\n- `then`: the type."
    assert _names(
        "Which option sets the condition of a type?",
        Alternatives__conditional=f"```ts\ndeclare function conditional(options: WhenOptions): this;\n```\n\nAdds a type on a condition.\n\n{options}",
        Joi__WhenOptions=options,
        Joi__type="Tells the type of a schema and its condition.",
    ) == ["Alternatives.conditional", "Joi.type"]


def test_the_section_beside_a_deprecated_one_takes_its_place() -> None:
    deprecated = "Cancel a request with a cancel token: the token cancels the request."
    texts = {f"Filler__f{n}": f"Sends a request, number {n} of {n + 2}." for n in range(6)}
    passages = (
        Passage(text=deprecated, title="Cancellation > CancelToken (deprecated)", url="x 1: a"),
        *(
            Passage(text=text, title=name.replace("__", "."), url=f"x 1: {name}")
            for name, text in texts.items()
        ),
        Passage(text="Call abort() of the controller.", title="Cancellation > AbortController", url="x 1: b"),
    )
    units = read_answer(Answer(source="local_docs", passages=passages)).units
    taken = choose(units, question_terms("x", "How do I cancel a running request?")).taken
    assert taken[0].unit.title == "Cancellation > AbortController"


@pytest.mark.parametrize(
    ("text", "covers"),
    [
        ("Validate the document: it returns true where it is valid.", False),
        ("Validate a document against a schema, which is another document.", True),
    ],
)
def test_one_heavy_word_of_a_short_question_makes_no_page_an_answer(text: str, *, covers: bool) -> None:
    question = "How do I validate a document against a JSON schema?"
    assert _choice(question, f"# validate\n\n{text}", source="web_search").covers is covers


@pytest.mark.parametrize(
    ("text", "covers"),
    [
        ("Fake timers, of which the test fakes each.", True),
        ("The code of a test depends on the time.", False),
    ],
)
def test_rare_words_say_what_is_asked(text: str, *, covers: bool) -> None:
    question = "How do I test code that depends on fake timers?"
    assert _choice(question, text, source="local_docs").covers is covers


def test_a_type_without_a_word_about_it_stands_behind_what_is_explained() -> None:
    bag = (
        "```typescript\ninterface Config {\n  mock: boolean;\n  module: string;\n  restore: boolean;\n}\n```"
    )
    explained = "Mocks a module, which is restored afterwards."
    passages = (
        Passage(text=bag, title="Config", url="x 1: a"),
        Passage(text=explained, title="mock", url="x 1: b"),
    )
    units = read_answer(Answer(source="local_docs", passages=passages)).units
    rows = ranked(units, question_terms("x", "How do I mock a module and restore it?"))
    assert max(rows, key=lambda row: row.score).unit.title == "mock"


def test_an_index_or_an_overview_of_signatures_comes_behind_what_tells_something() -> None:
    overview = "# Functions\n\n| Type | Function |\n| --- | --- |\n" + "| void | **timer**(int timer) |\n" * 6
    told = "# Timer\n\nA single shot timer calls a slot once after a time."
    options = "# Options\n\n| Option | Meaning |\n| --- | --- |\n| timer | how long the timer waits for the slot |\n"
    assert _choice("How do I call a slot with a timer?", overview, told).taken[0].unit.heading == "Timer"
    assert _choice("How long does the timer wait?", overview, options).taken[0].unit.heading == "Options"


def test_code_of_the_same_words_is_not_alike_on_a_page() -> None:
    names = [f"option{n}" for n in range(12)]
    code = "\n".join(f"allow.{name} = {{}};" for name in names)
    on, off = code.replace("{}", "true"), code.replace("{}", "false", 6).replace("{}", "true")
    page = f"## setDefaults()\n\nDefaults:\n\n```\n{on}\n```\n\n## strictMode()\n\nDefaults:\n\n```\n{off}\n```\n"
    assert len(_choice("Which option is allowed?", page).taken) == 2
