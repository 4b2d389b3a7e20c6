"""What fits a question best goes first, and a gap is told."""

import sqlite3
from collections.abc import Iterator

from kr.documents.index import Index, Question, Ranking, ask, fill, markdown, rank_texts
from kr.documents.text import Section


def index(package: str, *sections: Section) -> Index:
    connection = sqlite3.connect(":memory:")
    fill(connection, sections)
    return Index(package, connection)


def name(name: str, text: str, *, is_secondary: bool = False) -> Section:
    return Section(
        name=name,
        text=text,
        place="a.py",
        signature=f"def {name}()",
        form="python",
        is_secondary=is_secondary,
    )


OWN = (
    name("tool.run", "Run a command and wait for its end."),
    name("tool.cache_result", "Keep what a function returned."),
    name("tool._impl.cache_result", "Keep what a function returned, here inside.", is_secondary=True),
    name("tool.stop", "Stop whatever runs."),
)


def asked(question: str, *dependencies: Index) -> Ranking:
    return ask(index("tool", *OWN), Question.of(question), dependencies)


def names(ranking: Ranking) -> list[str]:
    return [one.section.name for one in ranking.passages]


def test_small_words_are_not_searched_and_identifiers_also_in_their_parts() -> None:
    assert Question.of("How do I use cacheResult(...)?").words == ("cache", "result", "cacheresult")
    assert Question.of("`a.b_c` and doThis").spelled == {"b_c", "dothis"}


def test_the_best_goes_first_by_its_stems() -> None:
    assert names(asked("How do I keep the results that functions return?"))[0] == "tool.cache_result"


def test_what_the_question_spells_goes_before_what_says_more() -> None:
    assert names(asked("Why does stop() not end a command that runs?"))[0] == "tool.stop"


def test_a_text_that_stands_twice_is_told_once() -> None:
    double = (*OWN, name("tool.again.run", "Run a command and wait for its end."))
    ranking = ask(index("tool", *double), Question.of("run a command"))
    assert sum(one.endswith(".run") for one in names(ranking)) == 1


def test_dependencies_are_opened_for_unknown_words_alone() -> None:
    opened: list[str] = []

    def others() -> Iterator[Index]:
        opened.append("secrets")
        yield index("secrets", name("secrets.SecretText", "A secret that is not printed."))

    assert names(ask(index("tool", *OWN), Question.of("run a command"), others()))
    assert opened == []
    ranking = asked(
        "How does it keep a secret?",
        index("secrets", name("secrets.SecretText", "A secret that is not printed.")),
    )
    assert [(one.section.name, one.package) for one in ranking.passages if one.package != "tool"] == [
        ("secrets.SecretText", "secrets")
    ]


def test_a_gap_is_where_the_best_passages_hold_none_of_the_rare_words() -> None:
    assert not asked("Keep what a function returned").is_gap
    assert not asked("Why does my service keep waiting for what a function returned?").is_gap
    ranking = asked("How does a Kubernetes ingress webhook run?")
    assert (ranking.is_gap, names(ranking)) == (True, ["tool.run", "tool.stop"])
    assert (asked("Turbines?").is_gap, asked("Turbines?").passages) == (True, ())


def test_words_that_look_like_a_query_are_words() -> None:
    assert asked('run" OR NEAR(name:* -"').passages
    assert ask(index("t", *OWN), Question.of("?!")).passages == ()


def test_a_name_reads_as_code_above_its_docstring() -> None:
    assert markdown(name("tool.go", "See :func:`run`.")) == "```python\ndef tool.go()\n```\n\nSee `run`."
    code = Section(name="t", text="", place="a.d.ts", signature="const a: `x`;", form="typescript")
    assert markdown(code) == "```ts\nconst a: `x`;\n```"


def test_texts_are_cut_and_ranked() -> None:
    page = "# Start\n\nWelcome here.\n\n## Timeouts\n\nSet `timeout` in seconds."
    found = rank_texts([("Manual", "https://x.example/", page)], Question.of("How long is a timeout?"))
    assert [(one.name, one.place) for one in found] == [("Manual: Start > Timeouts", "https://x.example/")]
    assert len(rank_texts([("Manual", "p", page)], Question.of("Elephants?"))) == 2
