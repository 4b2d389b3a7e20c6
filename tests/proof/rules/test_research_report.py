"""What a report that kr makes of its sources holds: lines of theirs, quoted, and notes of its own (SPEC 3.7, F1 step 6)."""

import re
from datetime import date
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.models import PLACEHOLDER_MARK, Query
from kr.report import parse_report
from kr.research.report import Report, Synthesis, build_report
from kr.sources.base import Answer, Passage
from kr.text import tokens_of

TODAY = date(2026, 1, 2)
QUERY = Query(
    framework="tool",
    framework_version="2",
    topic="retry",
    tags=("http",),
    question="How do I retry a request?",
)
PROSE = st.sampled_from(
    ["Retries are set once.", "A request is sent again.", "Slots are filled.", "word " * 90]
)
CODE = st.sampled_from(
    ["retry(3)", "client.get('/', retries=3)\nclient.close()", "slot = fill()", "\n".join(["x = 1"] * 200)]
)
BLOCKS = st.one_of(PROSE, CODE.map("```python\n{}\n```".format))
PASSAGES = st.lists(
    st.builds(
        Passage,
        text=st.lists(BLOCKS, min_size=1, max_size=4).map("\n\n".join),
        title=st.sampled_from(["tool.get", "Guide: Retry", "", None]),
        url=st.sampled_from(["https://a.example/", "https://b.example/x", None]),
    ),
    min_size=1,
    max_size=8,
)
OF_KR = re.compile(
    r"(?:(?:`[^`]+`|\*\*.+\*\*)(?: \(Source \d+\))?|Source \d+):|Named besides: .*\.|"
    r"All that was found stands in Summary and Code Examples\.|No code examples were found\.|"
    r"What code there is stands in Summary and Details\."
)


def build(*passages: Passage, source: str = "context7", query: Query = QUERY, **options: Any) -> Report:
    given = {name: options.pop(name) for name in ("version", "is_gap", "url") if name in options}
    answer = Answer(source=source, passages=passages, **given)
    return build_report(query, answer=answer, today=TODAY, **options)


def parts(report: Report) -> dict[str, str]:
    parsed = parse_report(report.text)
    assert parsed is not None
    return {**parsed.header, **parsed.sections, "title": parsed.title}


def page(text: str, title: str | None = "Guide", **more: Any) -> Passage:
    return Passage(text=text, title=title, url=more.pop("url", "https://a.example/"), **more)


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"


def examples(section: str) -> list[str]:
    return re.findall(r"(?ms)^```\w*\n(.*?)\n```$", section)


# --- the whole


@given(PASSAGES, st.integers(600, 2_000), st.sampled_from(["context7", "web_search", "local_docs"]))
def test_every_line_is_a_sources_and_quoted_or_names_a_source(
    passages: list[Passage], most: int, source: str
) -> None:
    report = build(*passages, source=source, max_tokens=most)
    assert tokens_of(report.text) <= most
    told = parts(report)
    given_lines = {line.strip() for one in passages for line in one.text.splitlines()}
    for name in ("Summary", "Details", "Code Examples"):
        outside = re.sub(r"(?ms)^(```+)\w*\n.*?\n\1$", "", told[name])
        for line in filter(None, outside.split("\n")):
            assert line.startswith(">") or OF_KR.fullmatch(line), line
        for code in examples(told[name]):
            assert set(map(str.strip, code.split("\n"))) <= given_lines | {""}


@given(PASSAGES)
def test_one_or_two_whole_examples_stand_apart_and_in_no_other_place(passages: list[Passage]) -> None:
    told = parts(build(*passages))
    found = examples(told["Code Examples"])
    assert len(found) <= 2
    whole = [code for one in passages for code in examples(one.text)]
    assert set(found) <= set(whole)
    assert len(set(found)) == len(found)
    for code in found:
        assert code not in examples(told["Summary"])
        assert code not in examples(told["Details"])


def test_the_header_has_the_seeds_five_lines() -> None:
    report = build(page("Retry it."), page("More.", url="https://b.example/"))
    assert report.text.startswith(
        "# tool - retry\n\n**Framework:** tool\n**Version:** 2\n**Research Date:** 2026-01-02\n"
        "**Confidence:** medium\n**Sources:** https://a.example/, https://b.example/\n\n## Summary\n"
    )
    installed = build(page("Retry it.", url="tool 2.0"), source="local_docs")
    assert parts(installed)["Sources"] == "tool 2.0 (installed)"
    assert parts(build_report(QUERY, answer=None, today=TODAY))["Sources"] == "none"


@pytest.mark.parametrize(
    ("own", "of_answer", "told"),
    [
        ("https://a.example/x", "https://b.example/", "https://a.example/x"),
        (None, "https://b.example/", "https://b.example/"),
        ("", "https://b.example/", "https://b.example/"),
        ("tool 2.0", "https://b.example/", "tool 2.0"),
        (None, None, "no address"),
    ],
)
def test_each_source_is_attributed_with_its_address(
    own: str | None, of_answer: str | None, told: str
) -> None:
    report = build(page("Retry it.", url=own), url=of_answer, source="deepwiki")
    assert parts(report)["Source Attribution"] == f"- Source 1: {told} (via deepwiki)"


def test_only_sources_that_are_shown_are_attributed_each_once() -> None:
    pages = [page(f"Text {n} about it.", f"Page {n}", url=f"https://{n % 3}.example/") for n in range(6)]
    assert parts(build(*pages))["Source Attribution"] == "\n".join(
        f"- Source {n + 1}: https://{n}.example/ (via context7)" for n in range(3)
    )
    long = [page("word " * 700, f"Page {n}", url=f"https://{n}.example/") for n in range(9)]
    told = parts(build(*long, max_tokens=500))
    assert told["Source Attribution"].startswith("- Source 1: ")
    for number in re.findall(r"Source (\d):", told["Source Attribution"]):
        assert number == "1" or f"(Source {number})" in told["Details"]
    assert "Source 9" not in told["Source Attribution"]


@pytest.mark.parametrize(
    ("source", "passages", "confidence"),
    [
        ("context7", [page(fenced("retry(3)"))], "high"),
        ("context7", [page("Retry it.")], "medium"),
        ("deepwiki", [page(fenced("retry(3)"))], "medium"),
        ("web_search", [page("Retry it."), page("Do it again.", url="https://b.example/")], "medium"),
        ("web_search", [page("Retry it."), page("Do it again.")], "low"),
        ("web_search", [page("Retry it."), page("Retry it.", url="https://b.example/")], "low"),
        ("local_docs", [page(fenced("retry(3)"))], "low"),
    ],
)
def test_the_confidence_is_the_tables(source: str, passages: list[Passage], confidence: str) -> None:
    report = build(*passages, source=source)
    assert (report.confidence, parts(report)["Confidence"]) == (confidence, confidence)
    assert f"- Confidence: {confidence}, from " in report.text
    assert report.origin == ("installed" if source == "local_docs" else "researched")


# --- Summary


def test_the_summary_is_the_best_passages_first_lines_as_they_stand() -> None:
    told = parts(build(page("First line.\nSecond line.\n\nThird."), page("Other.", "Else")))
    assert told["Summary"] == "`Guide`:\n\n> First line.\n> Second line.\n>\n> Third."
    assert "First line." not in told["Details"]
    nameless = parts(build(page("First line.", None)))
    assert nameless["Summary"] == "Source 1:\n\n> First line."


@given(st.lists(st.integers(1, 120), min_size=1, max_size=12), st.booleans())
def test_a_long_passage_gives_the_summary_whole_lines_and_the_rest_to_the_details(
    sizes: list[int], is_first_long: bool
) -> None:
    lines = [f"{n}{'a' * size}" for n, size in enumerate(sizes)]
    if is_first_long:
        lines[0] = "0" + " word" * 300
    told = parts(build(page("\n".join(lines))))
    quoted = [line.removeprefix("> ") for line in told["Summary"].split("\n") if line.startswith("> ")]
    if is_first_long:
        assert quoted[0].endswith("word …")
        assert 300 < len(quoted[0]) < 700
        assert len(quoted) == 1
    else:
        assert quoted == lines[: len(quoted)]
        assert sum(map(len, quoted)) <= 320 or len(quoted) == 1
        assert len(quoted) == len(lines) or sum(map(len, lines[: len(quoted) + 1])) > 320
        assert all(f"> {line}" in told["Details"] for line in lines[len(quoted) :])


@pytest.mark.parametrize(
    ("title", "text", "summary"),
    [
        (
            "tool.get",
            f"{fenced('def get()')}\n\nGets it.",
            f"`tool.get`:\n\n{fenced('def get()')}\n\n> Gets it.",
        ),
        ("A guide", f"{fenced('get()')}\n\nGets it.", "**A guide**:\n\n> Gets it."),
        ("A guide", f"{fenced('get()')}\n\n{fenced('put()')}", f"**A guide**:\n\n{fenced('get()')}"),
        ("tool.get", fenced("def get()"), f"`tool.get`:\n\n{fenced('def get()')}"),
        ("A guide", f"Gets it.\n\n{fenced('get()')}", "**A guide**:\n\n> Gets it."),
    ],
)
def test_a_symbols_summary_shows_its_declaration_and_a_guides_its_words(
    title: str, text: str, summary: str
) -> None:
    assert parts(build(page(text, title)))["Summary"] == summary


# --- Code Examples


def test_the_examples_are_those_that_hold_most_of_the_question() -> None:
    pages = [
        page(f"One.\n\n{fenced('slot = fill()')}", "A"),
        page(f"Two.\n\n{fenced('retry(request)')}", "B"),
        page(f"Three.\n\n{fenced('http.retry(request, 3)')}", "C"),
    ]
    told = parts(build(*pages))
    assert examples(told["Code Examples"]) == ["http.retry(request, 3)", "retry(request)"]
    assert "slot = fill()" in told["Details"]
    assert told["Code Examples"].startswith("`C`:\n\n```python\n")


def test_an_example_without_a_word_of_the_question_is_better_than_none() -> None:
    told = parts(build(page(f"One.\n\n{fenced('slot = fill()')}"), page(f"Two.\n\n{fenced('tag = 1')}", "B")))
    assert examples(told["Code Examples"]) == ["slot = fill()"]


def test_two_examples_are_of_two_passages() -> None:
    both = f"One.\n\n{fenced('retry(request)')}\n\nThen.\n\n{fenced('http.retry(request)')}"
    assert len(examples(parts(build(page(both)))["Code Examples"])) == 1
    again = page(f"Two.\n\n{fenced('http.retry(request)')}", "B")
    assert examples(parts(build(page(both), again))["Code Examples"]) == ["http.retry(request)"]


@pytest.mark.parametrize(
    "command",
    [
        "npm install retry",
        "$ npm install retry",
        "> yarn add retry",
        "# apt-get install retry",
        "sudo apt install retry",
        "python -m pip install retry",
        "python3 -m pip install retry",
        "uv add retry",
        "  pip3 install retry",
    ],
)
def test_a_command_that_installs_is_no_example(command: str) -> None:
    told = parts(build(page(f"Get it.\n\n{fenced(command, 'sh')}\n\nThen use it.")))
    assert examples(told["Code Examples"]) == []
    assert command.strip() in told["Details"]
    assert told["Code Examples"] == "What code there is stands in Summary and Details."


def test_what_declares_a_name_is_no_example_of_its_use() -> None:
    symbol = page(f"{fenced('def retry(request)')}\n\nAgain.\n\n{fenced('retry(mine)')}", "tool.retry")
    told = parts(build(page("Words."), symbol))
    assert examples(told["Code Examples"]) == ["retry(mine)"]
    assert examples(told["Details"]) == ["def retry(request)"]


def test_an_example_that_has_no_room_stands_in_the_details_in_part() -> None:
    long = "\n".join(f"retry(request_{n})" for n in range(300))
    told = parts(build(page(f"Words.\n\n{fenced(long)}"), max_tokens=500))
    assert examples(told["Code Examples"]) == []
    [part] = examples(told["Details"])
    assert part in long
    assert part != long
    assert parts(build(page("Words.")))["Code Examples"] == "No code examples were found."


# --- Details


def test_what_all_passages_have_is_shown_once() -> None:
    same = page(f"{fenced('def get()')}\n\nSame.", "tool.get")
    told = build(same, same, page(f"{fenced('def get()')}\n\nOther.", "tool.get")).text
    assert told.count("def get()") == 1
    assert told.count("> Same.") == 1
    assert told.count("> Other.") == 1
    only = parts(build(page("Same.")))
    assert only["Details"] == "All that was found stands in Summary and Code Examples."


def test_of_a_long_passage_the_lines_next_to_each_other_that_hold_most_of_the_question_are_shown() -> None:
    lines = [f"Line {n} of weather and of wind." for n in range(200)]
    lines[100] = "A request is sent again: retry it over http."
    told = parts(build(page("Words."), page("\n".join(lines), "B")))["Details"]
    shown = [line.removeprefix("> ") for line in told.split("\n") if line.startswith("> ")]
    assert lines[100] in shown
    places = [lines.index(line) for line in shown]
    assert all(after == before + 1 for before, after in pairwise(places))
    assert 600 < sum(map(len, shown)) <= 1_000


def test_the_second_passage_is_shown_at_length_and_later_ones_in_a_few_lines() -> None:
    pages = [page("\n".join([f"{n} word"] * 400), f"Page {n}") for n in range(6)]
    told = parts(build(*pages, max_tokens=3_000))["Details"]
    sizes = [len(part) for part in re.split(r"(?m)^\*\*Page \d\*\*:$", told)[1:]]
    assert len(sizes) == 6
    assert min(sizes[:2]) > 900
    assert max(sizes[2:]) < 600


def test_symbols_for_which_there_is_no_room_are_named_once() -> None:
    symbols = [page(f"Words {n}. " * 60, f"tool.call_{n // 2}") for n in range(60)]
    told = parts(build(page("First."), *symbols, max_tokens=600))["Details"]
    shown, _, named = told.partition("Named besides: ")
    names = named.rstrip(".").split(", ")
    assert len(names) == len(set(names)) > 5
    assert all(re.fullmatch(r"`tool\.call_\d+`", name) for name in names)
    assert not any(f"{name}:" in shown for name in names)
    assert len(named) < 300
    assert "Named besides" not in parts(build(page("First."), *symbols[:2]))["Details"]
    guides = [page(f"Words {n}. " * 60, f"A guide {n}") for n in range(60)]
    assert "Named besides" not in parts(build(page("First."), *guides, max_tokens=600))["Details"]


# --- Caveats


def caveats(report: Report) -> list[str]:
    head, *notes = parts(report)["Caveats & Version-Specific Notes"].split("\n- ")
    assert head == "Notes by kr:\n"
    return notes


@pytest.mark.parametrize(
    ("wanted", "found", "source", "note"),
    [
        ("2", None, "context7", "Version: none is what the source names; the request is about 2."),
        ("2", "3", "context7", "Version: 3 is what the source names; the request is about 2."),
        ("2", "3.1", "local_docs", "Version: 3.1 is installed; the request is about 2."),
    ],
)
def test_the_notes_say_of_which_version_the_text_is(
    wanted: str, found: str | None, source: str, note: str
) -> None:
    asked = Query(framework="tool", framework_version=wanted, topic="retry", tags=(), question="How?")
    assert caveats(build(page("Retry."), version=found, source=source, query=asked))[2] == note


def test_the_notes_begin_with_the_question() -> None:
    assert caveats(build(page("Retry.")))[0] == "Question: How do I retry a request?"
    assert caveats(build_report(QUERY, answer=None, today=TODAY))[0] == "Question: How do I retry a request?"


def test_a_page_of_which_the_beginning_was_read_is_named() -> None:
    cut = caveats(build(page("Retry."), page("More.", url="https://b.example/", is_cut=True)))
    assert "Of https://b.example/, only the beginning was read." in cut
    assert "only the beginning" not in build(page("Retry.")).text


def test_of_what_went_wrong_six_notes_are_kept_and_of_silent_sources_their_names() -> None:
    notes = [
        "context7: http://10.0.0.1 refused",
        "deepwiki: timeout",
        "context7: again",
        "persona_load_failed: lean",
        " ",
        *(f"note {n}: x" for n in range(9)),
    ]
    told = caveats(build(page("Retry."), notes=notes))[3:]
    assert told == ["No answer came from: context7, deepwiki.", *(f"note {n}: x" for n in range(5))]
    assert caveats(build(page("Retry."), notes=["note 0: x"]))[3:] == ["note 0: x"]


# --- a model's text


def written(summary: str, details: str) -> Synthesis:
    return Synthesis(summary=summary, details=details, model="m-1")


def test_a_models_text_stands_in_place_of_the_passages() -> None:
    passages = page(f"One.\n\n{fenced('retry(request)')}"), page("Two.", url="https://b.example/")
    told = parts(build(*passages, synthesis=written("Set it.", "Like this.")))
    assert (told["Summary"], told["Details"]) == ("> Set it.", "> Like this.")
    assert examples(told["Code Examples"]) == ["retry(request)"]
    assert told["Source Attribution"].count("- Source ") == 2
    assert (
        "- Summary and Details were written by m-1 from the sources."
        in told["Caveats & Version-Specific Notes"]
    )
    with_code = parts(build(*passages, synthesis=written("Set it.", fenced("retry(1)"))))
    assert examples(with_code["Code Examples"]) == ["retry(request)"]
    bare = parts(build(page("One."), synthesis=written("Set it.", "")))
    assert (bare["Details"], bare["Code Examples"]) == (
        "No details were written.",
        "No code examples were found.",
    )


@given(st.integers(1, 60), st.integers(1, 60), st.integers(300, 1_500))
def test_a_models_text_is_kept_as_far_as_whole_paragraphs_fit(few: int, many: int, most: int) -> None:
    summary = "\n\n".join([fenced("a()\n" * 10)] * few)
    details = "\n\n".join(f"{fenced(f'b_{n}()')}\n\nWords of {n}." for n in range(many))
    report = build(
        page(f"One.\n\n{fenced('retry(request)')}"), synthesis=written(summary, details), max_tokens=most
    )
    assert tokens_of(report.text) <= most
    told = parts(report)
    assert set(examples(told["Summary"])) == {("a()\n" * 10).strip()}
    assert examples(told["Details"]) == [f"b_{n}()" for n in range(len(examples(told["Details"])))]
    assert told["Summary"].count("\n```") == len(examples(told["Summary"])) * 2 - 1


# --- nothing was found


def test_a_placeholder_says_so_and_names_what_comes_nearest_each_once() -> None:
    nothing = build_report(QUERY, answer=None, today=TODAY)
    told = parts(nothing)
    assert (nothing.origin, nothing.confidence, told["Confidence"]) == ("placeholder", "low", "low")
    assert told["Summary"] == PLACEHOLDER_MARK
    assert told["Details"] == "No details were found."
    assert told["Source Attribution"] == "No source answered."
    assert "- Confidence: low, since no source answered." in nothing.text
    near = [page("x", f"tool.call_{n // 2}", url="tool 2.0") for n in range(30)]
    gap = parts(build(*near, page("y", None), source="local_docs", is_gap=True))
    names = gap["Details"].partition(":\n\n")[2].split("\n")
    assert names == [f"- tool.call\\_{n}, tool 2.0".replace("\\", "") for n in range(8)]
    assert gap["Source Attribution"] == "Nothing was taken from a source."
    assert "what was found does not cover the question" in gap["Caveats & Version-Specific Notes"]


@pytest.mark.parametrize(
    "old", [None, "", " \n", f"{PLACEHOLDER_MARK}\n", f"# a\n\n{PLACEHOLDER_MARK}\n\nb\n"]
)
def test_no_report_or_a_placeholder_is_no_baseline(old: str | None) -> None:
    assert build_report(QUERY, answer=None, baseline=old, today=TODAY).origin == "placeholder"


def test_a_gap_leaves_the_older_report_in_place() -> None:
    old = build(page("Retry it.")).text
    for answer in (None, Answer(source="local_docs", passages=(page("x"),), is_gap=True)):
        kept = build_report(QUERY, answer=answer, baseline=old, today=TODAY)
        assert (kept.origin, kept.confidence) == ("baseline", "low")
        assert "> Retry it." in kept.text
