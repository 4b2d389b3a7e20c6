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
A, B = "https://a.example/", "https://b.example/"
PROSE = ["Retries are set once.", "A request is sent again.", "Slots are filled.", "word " * 90]
CODE = ["retry(3)", "client.get('/', retries=3)\nclient.close()", "slot = fill()", "\n".join(["x = 1"] * 200)]
BLOCKS = st.sampled_from([*PROSE, *map("```python\n{}\n```".format, CODE)])
PASSAGES = st.lists(
    st.builds(
        Passage,
        text=st.lists(BLOCKS, min_size=1, max_size=4).map("\n\n".join),
        title=st.sampled_from(["tool.get", "Guide: Retry", "", None]),
        url=st.sampled_from([A, B, None]),
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


def nothing(**options: Any) -> Report:
    return build_report(QUERY, answer=None, today=TODAY, **options)


def parts(report: Report) -> dict[str, str]:
    parsed = parse_report(report.text)
    assert parsed is not None
    return {**parsed.header, **parsed.sections, "title": parsed.title}


def page(text: str, title: str | None = "Guide", url: str | None = A, **more: Any) -> Passage:
    return Passage(text=text, title=title, url=url, **more)


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"


def examples(section: str) -> list[str]:
    return re.findall(r"(?ms)^```\w*\n(.*?)\n```$", section)


def quoted(section: str) -> list[str]:
    return [line.removeprefix("> ") for line in section.split("\n") if line.startswith("> ")]


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
    assert len(set(found)) == len(found) <= 2
    assert set(found) <= {code for one in passages for code in examples(one.text)}
    assert not set(found) & {*examples(told["Summary"]), *examples(told["Details"])}


def test_the_header_has_the_seeds_five_lines() -> None:
    assert build(page("Retry it."), page("More.", url=B)).text.startswith(
        "# tool - retry\n\n**Framework:** tool\n**Version:** 2\n**Research Date:** 2026-01-02\n"
        f"**Confidence:** medium\n**Sources:** {A}, {B}\n\n## Summary\n"
    )
    installed = build(page("Retry it.", url="tool 2.0"), source="local_docs")
    assert parts(installed)["Sources"] == "tool 2.0 (installed)"
    assert parts(nothing())["Sources"] == "none"


@pytest.mark.parametrize(
    ("own", "of_answer", "told"), [(A, B, A), (None, B, B), ("", B, B), (None, None, "no address")]
)
def test_each_source_is_attributed_with_its_address(
    own: str | None, of_answer: str | None, told: str
) -> None:
    report = build(page("Retry it.", url=own), url=of_answer, source="deepwiki")
    assert parts(report)["Source Attribution"] == f"- Source 1: {told} (via deepwiki)"


def test_only_sources_that_are_shown_are_attributed_each_once() -> None:
    pages = [page(f"Text {n} about it.", f"Page {n}", url=f"https://{n % 3}.example/") for n in range(6)]
    told = [f"- Source {n + 1}: https://{n}.example/ (via context7)" for n in range(3)]
    assert parts(build(*pages))["Source Attribution"] == "\n".join(told)
    long = [page("word " * 700, f"Page {n}", url=f"https://{n}.example/") for n in range(9)]
    shown = parts(build(*long, max_tokens=500))
    numbers = re.findall(r"Source (\d):", shown["Source Attribution"])
    assert set(numbers) == {"1", *re.findall(r"\(Source (\d)\)", shown["Details"])}
    assert len(numbers) < 9


@pytest.mark.parametrize(
    ("source", "passages", "confidence"),
    [
        ("context7", [page(fenced("retry(3)"))], "high"),
        ("context7", [page("Retry it.")], "medium"),
        ("deepwiki", [page(fenced("retry(3)"))], "medium"),
        ("web_search", [page("Retry it."), page("Do it again.", url=B)], "medium"),
        ("web_search", [page("Retry it."), page("Do it again.")], "low"),
        ("web_search", [page("Retry it."), page("Retry it.", url=B)], "low"),
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
    assert parts(build(page("First line.", None)))["Summary"] == "Source 1:\n\n> First line."


@given(st.lists(st.integers(1, 120), min_size=1, max_size=12))
def test_a_long_passage_gives_the_summary_whole_lines_and_the_rest_to_the_details(sizes: list[int]) -> None:
    lines = [f"{n}{'a' * size}" for n, size in enumerate(sizes)]
    told = parts(build(page("\n".join(lines))))
    first = quoted(told["Summary"])
    assert first == lines[: len(first)]
    assert len("\n".join(first)) <= 320
    assert len(first) == len(lines) or len("\n".join(lines[: len(first) + 1])) >= 320
    assert set(lines[len(first) :]) <= set(quoted(told["Details"]))


def test_a_symbols_summary_shows_its_declaration_and_a_guides_its_words() -> None:
    text = f"{fenced('def get()')}\n\nGets it."
    declared = f"`tool.get`:\n\n{fenced('def get()')}\n\n> Gets it."
    assert parts(build(page(text, "tool.get")))["Summary"] == declared
    assert parts(build(page(text, "A guide")))["Summary"] == "**A guide**:\n\n> Gets it."


# --- Code Examples


def test_the_examples_are_those_that_hold_most_of_the_question_of_two_passages() -> None:
    both = f"One.\n\n{fenced('retry(request)')}\n\nThen.\n\n{fenced('retry()')}"
    best = page(f"Three.\n\n{fenced('http.retry(request, 3)')}", "C")
    told = parts(build(page(f"One.\n\n{fenced('slot = fill()')}", "A"), page(both, "B"), best))
    assert examples(told["Code Examples"]) == ["http.retry(request, 3)", "retry(request)"]
    assert "slot = fill()" in told["Details"]
    assert told["Code Examples"].startswith("`C`:\n\n```python\n")


# --- Details


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


def test_what_all_passages_have_is_shown_once() -> None:
    same = page(f"{fenced('def get()')}\n\nSame.", "tool.get")
    told = build(same, same, page(f"{fenced('def get()')}\n\nOther.", "tool.get")).text
    assert [told.count(it) for it in ("def get()", "> Same.", "> Other.")] == [1, 1, 1]
    only = parts(build(page("Same.")))
    assert only["Details"] == "All that was found stands in Summary and Code Examples."


# --- Caveats


def test_of_a_long_passage_the_lines_next_to_each_other_that_hold_most_of_the_question_are_shown() -> None:
    lines = [f"Line {n} of weather and of wind." for n in range(200)]
    lines[100] = "A request is sent again: retry it over http."
    shown = quoted(parts(build(page("Words."), page("\n".join(lines), "B")))["Details"])
    assert lines[100] in shown
    assert all(lines.index(after) == lines.index(before) + 1 for before, after in pairwise(shown))
    assert 600 < sum(map(len, shown)) <= 1_000


def test_the_first_passages_are_shown_at_length_and_later_ones_in_a_few_lines() -> None:
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
    assert not any(f"{name}:" in shown for name in names)
    assert len(named) < 300


def caveats(report: Report) -> list[str]:
    head, *notes = parts(report)["Caveats & Version-Specific Notes"].split("\n- ")
    assert head == "Notes by kr:\n"
    return notes


@pytest.mark.parametrize(
    ("found", "source", "note"),
    [
        (None, "context7", "Version: none is what the source names; the request is about 2."),
        ("3", "context7", "Version: 3 is what the source names; the request is about 2."),
        ("3.1", "local_docs", "Version: 3.1 is installed; the request is about 2."),
    ],
)
def test_the_notes_begin_with_the_question_and_say_of_which_version_the_text_is(
    found: str | None, source: str, note: str
) -> None:
    notes = caveats(build(page("Retry."), version=found, source=source))
    assert (notes[0], notes[2]) == ("Question: How do I retry a request?", note)


# --- a model's text


def test_a_page_of_which_the_beginning_was_read_is_named() -> None:
    told = caveats(build(page("Retry."), page("More.", url=B, is_cut=True)))
    assert f"Of {B}, only the beginning was read." in told


def test_a_models_text_stands_in_place_of_the_passages() -> None:
    passages = page(f"One.\n\n{fenced('retry(request)')}"), page("Two.", url=B)
    for details in ("Like this.", fenced("retry(1)"), ""):
        told = parts(build(*passages, synthesis=Synthesis(summary="Set it.", details=details, model="m-1")))
        shown = "> Like this." if details.startswith("Like") else details or "No details were written."
        assert (told["Summary"], told["Details"]) == ("> Set it.", shown)
        assert examples(told["Code Examples"]) == ["retry(request)"]
        assert told["Source Attribution"].count("- Source ") == 2
        written = "- Summary and Details were written by m-1 from the sources."
        assert written in told["Caveats & Version-Specific Notes"]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(300, 1_500))
def test_a_models_text_is_kept_as_far_as_it_fits(few: int, many: int, most: int) -> None:
    summary = "\n\n".join([fenced("a()\n" * 10)] * few)
    details = "\n\n".join(f"{fenced(f'b_{n}()')}\n\nWords of {n}." for n in range(many))
    written = Synthesis(summary=summary, details=details, model="m-1")
    report = build(page(f"One.\n\n{fenced('retry(request)')}"), synthesis=written, max_tokens=most)
    assert tokens_of(report.text) <= most
    told = parts(report)
    assert set("\n".join(examples(told["Summary"])).split("\n")) == {"a()"}
    assert examples(told["Details"]) == [f"b_{n}()" for n in range(len(examples(told["Details"])))]


# --- nothing was found


def test_a_placeholder_says_so_and_names_what_comes_nearest_each_once() -> None:
    told = parts(nothing())
    assert (nothing().origin, nothing().confidence, told["Confidence"]) == ("placeholder", "low", "low")
    assert (told["Summary"], told["Details"]) == (PLACEHOLDER_MARK, "No details were found.")
    assert told["Source Attribution"] == "No source answered."
    assert "- Confidence: low, since no source answered." in nothing().text
    near = [page("x", f"tool.call_{n // 2}", url="tool 2.0") for n in range(30)]
    gap = parts(build(*near, page("y", None), source="local_docs", is_gap=True))
    names = gap["Details"].partition(":\n\n")[2].split("\n")
    assert names == [f"- tool.call_{n}, tool 2.0" for n in range(8)]
    assert gap["Source Attribution"] == "Nothing was taken from a source."
    assert "what was found does not cover the question" in gap["Caveats & Version-Specific Notes"]


@pytest.mark.parametrize("old", [None, " \n", f"# a\n\n{PLACEHOLDER_MARK}\n\nb\n"])
def test_no_report_or_a_placeholder_is_no_baseline(old: str | None) -> None:
    assert nothing(baseline=old).origin == "placeholder"


def test_a_gap_leaves_the_older_report_in_place() -> None:
    old = build(page("Retry it.")).text
    for kept in (nothing(baseline=old), build(page("x"), source="local_docs", is_gap=True, baseline=old)):
        assert (kept.origin, kept.confidence) == ("baseline", "low")
        assert "> Retry it." in kept.text
