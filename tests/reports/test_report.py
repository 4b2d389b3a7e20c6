import re
from collections import Counter
from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kr.reports.report import MAX_TOKENS, Report, Synthesis, build_report
from markdown_it import MarkdownIt

from kr.contracts.requests import is_blank
from kr.report import (
    HEADER,
    MAX_REPORT_BYTES,
    SECTIONS,
    SKELETON_MARK,
    STALE_MARK,
    read_confidence,
    read_shape,
)
from kr.text.counting import tokens_of
from kr.values import Answer, Passage, Query, replace

TODAY = date(2026, 3, 15)
LATER = date(2026, 5, 1)
QUERY = Query(
    framework="vue-easytable",
    framework_version="2.x",
    topic="virtual scrolling configuration",
    tags=("virtual-scroll",),
    question="How to configure virtual scrolling with dynamic row heights?",
)
DOCS = """\
## Virtual scrolling

Virtual scrolling renders only the rows in view. Set `minRowHeight` to configure dynamic row heights.

```js
const virtualScrollOption = { enable: true, minRowHeight: 40 };
```

Note: since v2.6, `scrollWidth` is deprecated.

## Themes

The theme can be changed with a class.
"""
CONTEXT7 = Answer(
    source="context7",
    passages=(Passage(text=DOCS, title="Guide", url="https://docs.example/guide"),),
    url="https://context7.com/huangshuwei/vue-easytable",
    version="2.27",
)
PAGES = Answer(
    source="web_search",
    passages=(
        Passage(
            text="# Holidays\n\nBuy a holiday.\n\n# Scrolling\n\nConfigure virtual scrolling of row heights.",
            url="https://one.example/",
        ),
        Passage(text="Virtual scrolling: configure dynamic row heights.", url="https://two.example/"),
    ),
)


def _build(
    answer: Answer | None = None,
    *,
    query: Query = QUERY,
    baseline: str | None = None,
    today: date = TODAY,
    notes: Sequence[str] = (),
    synthesis: Synthesis | None = None,
    max_tokens: int = MAX_TOKENS,
) -> Report:
    return build_report(
        query,
        answer=answer,
        baseline=baseline,
        today=today,
        notes=notes,
        synthesis=synthesis,
        max_tokens=max_tokens,
    )


def _assert_template(text: str) -> dict[str, str]:
    """The template as a line-based reader and as a Markdown reader see it; returns the sections."""
    assert len(text.encode()) <= MAX_REPORT_BYTES
    assert text.endswith("\n")
    lines = text.splitlines()
    assert lines[0].startswith("# ")
    assert lines[1] == lines[7] == ""
    assert [line.split(":**")[0] for line in lines[2:7]] == [f"**{name}" for name in HEADER]
    assert [line for line in lines if re.match(r" {0,3}##(\s|$)", line)] == [f"## {n}" for n in SECTIONS]
    headers = Counter(line.split(":**")[0] for line in lines if re.match(r"\*\*[A-Z][\w ]*:\*\*", line))
    assert headers == dict.fromkeys((f"**{name}" for name in HEADER), 1)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert [t.tag for t in tokens if t.type == "heading_open"] == ["h1", *["h2"] * 5]
    assert [
        tokens[at + 1].content for at, t in enumerate(tokens) if t.tag == "h2" and t.nesting == 1
    ] == list(SECTIONS)
    kinds = {child.type for token in tokens for child in (token, *(token.children or []))}
    assert not kinds & {"html_block", "html_inline", "image"}
    shape = read_shape(text)
    assert shape is not None
    assert all(body.strip() for body in shape.sections.values())
    return dict(shape.sections)


def test_the_report_of_the_seed() -> None:
    report = _build(CONTEXT7)
    sections = _assert_template(report.text)
    assert report.text.startswith(
        "# vue-easytable - virtual scrolling configuration\n\n"
        "**Framework:** vue-easytable\n"
        "**Version:** 2.x\n"
        "**Research Date:** 2026-03-15\n"
        "**Confidence:** high\n"
        "**Sources:** https://docs.example/guide\n\n"
        "## Summary\n"
    )
    assert (report.confidence, report.origin) == ("high", "researched")
    assert sections["Summary"] == (
        "From Source 1: **Guide > Virtual scrolling**\n\n"
        "> Virtual scrolling renders only the rows in view.\n"
        "> Set `minRowHeight` to configure dynamic row heights.\n\n"
        "```js\nconst virtualScrollOption = { enable: true, minRowHeight: 40 };\n```"
    )
    assert sections["Details"] == (
        "From Source 1: **Guide > Virtual scrolling**\n\n"
        "> Virtual scrolling renders only the rows in view. Set `minRowHeight` to configure dynamic row heights.\n\n"
        "```js\nconst virtualScrollOption = { enable: true, minRowHeight: 40 };\n```\n\n"
        "> Note: since v2.6, `scrollWidth` is deprecated."
    )
    assert sections["Code Examples"] == "The example stands in the Summary."
    assert sections["Source Attribution"] == "- Source 1: https://docs.example/guide (via context7)"
    caveats = sections["Caveats & Version-Specific Notes"]
    assert "> Note: since v2.6, `scrollWidth` is deprecated." in caveats
    assert "the request is about 2.x, the source about 2.27." in caveats
    assert f"- Question: {QUERY.question}" in caveats


def test_every_passage_names_its_source_once() -> None:
    sections = _assert_template(_build(PAGES).text)
    assert re.findall(r"^From Source \d", sections["Details"], re.MULTILINE) == [
        "From Source 1",
        "From Source 2",
    ]
    assert sections["Source Attribution"].splitlines() == [
        "- Source 1: https://one.example/ (via web_search)",
        "- Source 2: https://two.example/ (via web_search)",
    ]


def test_sources_that_nothing_is_taken_from_are_not_named() -> None:
    other = Passage(text="Buy a holiday.", url="https://three.example/")
    text = _build(replace(PAGES, passages=(other, *PAGES.passages))).text
    assert "three.example" not in text
    assert "- Source 1: https://one.example/" in text


def test_what_does_not_speak_of_the_question_is_left_out_of_pages() -> None:
    report = _build(PAGES)
    assert "holiday" not in report.text
    assert report.confidence == "medium"
    assert "No code examples were found." in report.text


def test_the_best_passage_comes_first() -> None:
    text = "# Other\n\nDynamic rows are configured for virtual scrolling.\n\n# Heights\n\nDynamic row heights configure virtual scrolling."
    details = _assert_template(_build(Answer(source="context7", passages=(Passage(text=text),))).text)[
        "Details"
    ]
    assert details.index("Heights") < details.index("Other")


def test_the_persona_is_no_text_of_the_report() -> None:
    text = _build(CONTEXT7, notes=["persona_load_failed: using lean persona", "export_failed: slow"]).text
    assert "persona" not in text
    assert "- export_failed: slow" in text


def test_notes_are_told() -> None:
    text = _build(CONTEXT7, notes=["export_failed: no room\n## Summary", "  "]).text
    _assert_template(text)
    assert "- export_failed: no room ## Summary\n" in text


def test_of_sources_that_did_not_answer_the_names_are_told() -> None:
    notes = [
        "context7: cannot connect",
        "web_search: needs ddgs: /opt/our/python -m pip install ddgs",
        "context7: slow",
    ]
    text = _build(CONTEXT7, notes=notes).text
    assert "- No answer came from: context7, web_search.\n" in text
    assert "/opt/our" not in text


def test_installed_docs_say_where_they_come_from() -> None:
    answer = Answer(
        source="local_docs",
        version="8.1.7",
        url="https://click.example/",
        passages=(
            Passage(
                text="Configure <b>virtual</b> scrolling of heights.",
                title="Rows of heights",
                url="click 8.1.7, README.md: Rows",
            ),
            Passage(
                text="Configure virtual scrolling of rows.",
                title="Scrolling",
                url="click 8.1.7, docs/[rows].md",
            ),
        ),
    )
    report = _build(answer)
    sections = _assert_template(report.text)
    assert (report.origin, report.confidence) == ("installed", "low")
    assert sections["Source Attribution"].splitlines() == [
        "- Source 1: click 8.1.7, README.md: Rows (via local_docs)",
        "- Source 2: click 8.1.7, docs/[rows].md (via local_docs)",
    ]
    assert "**Sources:** click 8.1.7 (installed)\n" in report.text
    assert sections["Details"].index("scrolling of heights") < sections["Details"].index("scrolling of rows")
    assert "8.1.7" in sections["Caveats & Version-Specific Notes"]


def test_sources_are_none_without_an_address() -> None:
    report = _build(Answer(source="deepwiki", passages=(Passage(text="Rows scroll."),)))
    assert "**Sources:** none\n" in report.text
    assert "- Source 1: no address (via deepwiki)" in report.text


def test_a_synthesis_is_quoted_and_told() -> None:
    synthesis = Synthesis(
        summary="## Summary\nUse it.", details="Details <b>here</b>\n\n# Forged", model="m-1"
    )
    sections = _assert_template(_build(CONTEXT7, synthesis=synthesis).text)
    assert "> Use it." in sections["Summary"]
    assert "> **Forged**" in sections["Details"]
    assert "written by m-1" in sections["Caveats & Version-Specific Notes"]


EXAMPLE = "```js\nconst virtualScrollOption = { enable: true, minRowHeight: 40 };\n```"


def _written(details: str = "It takes pixels.") -> Synthesis:
    return Synthesis(summary="Set `minRowHeight`.", details=details, model="m-1")


def test_examples_that_a_model_left_out_stand_by_their_source() -> None:
    report = _build(CONTEXT7, synthesis=_written())
    sections = _assert_template(report.text)
    assert sections["Code Examples"] == f"From Source 1: **Guide > Virtual scrolling**\n\n{EXAMPLE}"
    assert "with code examples" in report.text


def test_a_model_decides_what_answers_and_its_sources_are_all_told() -> None:
    passages = [
        Passage(
            text=f"Rows {at} scroll {'virtually ' * at}.",
            title=f"grid.rows_{at}",
            url=f"grid 1.0, rows_{at % 3}.py",
        )
        for at in range(9)
    ]
    answer = Answer(source="local_docs", passages=tuple(passages))
    sections = _assert_template(_build(answer, synthesis=_written("See Source 3.")).text)
    assert sections["Source Attribution"] == "\n".join(
        f"- Source {at + 1}: grid 1.0, rows_{at}.py (via local_docs)" for at in range(3)
    )
    assert "Doubtful" not in sections["Caveats & Version-Specific Notes"]
    assert "do not speak of" not in sections["Caveats & Version-Specific Notes"]
    foreign = replace(
        answer, passages=(Passage(text="Rain falls on rows.", title="rain", url="grid 1.0, rain.py"),)
    )
    assert _build(foreign).origin == "skeleton"
    assert _build(foreign, synthesis=_written()).origin == "installed"
    assert _build(answer, synthesis=Synthesis(summary="", details="", model="m-1")).origin == "skeleton"


def test_an_example_that_a_model_wrote_down_does_not_stand_twice() -> None:
    written = EXAMPLE.replace("{ enable", "{\n  enable").replace("40 }", "40\n}")
    report = _build(CONTEXT7, synthesis=_written(f"Such:\n\n{written}"))
    assert (
        _assert_template(report.text)["Code Examples"] == "The examples stand above, as the model took them."
    )
    assert report.text.count("minRowHeight: 40") == 1


def test_what_a_model_had_no_room_for_does_not_count_as_written() -> None:
    """Its text is cut to its share: an example behind the cut stands nowhere."""
    long = "\n\n".join(["It takes pixels and nothing else. " * 20] * 60)
    report = _build(CONTEXT7, synthesis=_written(f"{long}\n\n{EXAMPLE}"))
    assert EXAMPLE in _assert_template(report.text)["Code Examples"]
    assert tokens_of(report.text) <= MAX_TOKENS


def test_an_example_longer_than_the_report_stands_by_its_statements() -> None:
    lines = "\n".join(f"useRows({{ row: {at}, height: 'virtual scrolling' }});\n" for at in range(900))
    docs = DOCS.replace("const virtualScrollOption", f"{lines}\nconst virtualScrollOption")
    answer = replace(CONTEXT7, passages=(replace(CONTEXT7.passages[0], text=docs),))
    report = _build(answer, synthesis=_written())
    assert "```js\n" in _assert_template(report.text)["Code Examples"]
    assert tokens_of(report.text) <= MAX_TOKENS


def test_a_signature_is_the_example_where_a_source_has_no_other() -> None:
    docs = DOCS.replace(EXAMPLE, "```ts\nfunction configureVirtualScrolling(rows: Row[]): void\n```")
    answer = replace(CONTEXT7, passages=(replace(CONTEXT7.passages[0], text=docs),))
    sections = _assert_template(_build(answer, synthesis=_written()).text)
    assert "function configureVirtualScrolling" in sections["Code Examples"]


def test_skeleton() -> None:
    report = _build(None, notes=["all_sources_unavailable: no cached content available"])
    sections = _assert_template(report.text)
    assert SKELETON_MARK in sections["Summary"].splitlines()
    assert "No code examples were found." in sections["Code Examples"]
    assert (report.confidence, report.origin) == ("low", "skeleton")
    assert "**Sources:** none" in report.text


def test_a_skeleton_is_no_baseline_and_an_answer_without_text_is_none() -> None:
    assert _build(None, baseline=_build(None).text).origin == "skeleton"
    empty = Answer(source="context7", passages=(Passage(text="<div>only html</div>"),))
    assert _build(empty).origin == "skeleton"
    assert _build(None, baseline=" \n").origin == "skeleton"


def test_a_text_that_quotes_the_skeletons_mark_is_no_skeleton() -> None:
    mark = Answer(
        source="context7", passages=(Passage(text=f"x\n\n```\n{SKELETON_MARK}\n```\n\n{SKELETON_MARK}"),)
    )
    assert _build(None, baseline=_build(mark).text).origin == "baseline"


def test_a_baseline_keeps_what_was_researched_and_says_so() -> None:
    old = _build(CONTEXT7).text
    query = replace(QUERY, framework_version="3.x", topic="scrolling virtually")
    report = _build(None, query=query, baseline=old, today=LATER, notes=["context7: down"])
    sections, before = _assert_template(report.text), _assert_template(old)
    assert (report.confidence, report.origin) == ("low", "baseline")
    assert report.text.startswith("# vue-easytable - scrolling virtually\n")
    assert "**Confidence:** low\n" in report.text
    assert "**Version:** 2.x\n**Research Date:** 2026-03-15\n" in report.text
    assert sections["Summary"] == f"{STALE_MARK}\n\n{before['Summary']}"
    for name in ("Details", "Code Examples", "Source Attribution"):
        assert sections[name] == before[name]
    assert "version 3.x was asked for" in sections["Caveats & Version-Specific Notes"]
    assert "- No answer came from: context7." in sections["Caveats & Version-Specific Notes"]
    assert "Confidence: high" not in report.text


def _again(text: str, times: int) -> str:
    for _ in range(times):
        text = _build(None, baseline=text, today=LATER, notes=["context7: down"]).text
        _assert_template(text)
    return text


@pytest.mark.parametrize(
    "old",
    [
        _build(CONTEXT7).text,
        "# My notes\n\nversion: 1.4\n\n## Setup\n\nRun **it**.\n\n```sh\nmake # build\n```\n\n## Setup\n\n<b>x</b>",
        f"{STALE_MARK}\n\nplain text",
        "```\nan open fence\n## Summary",
        _build(CONTEXT7).text.replace(
            "## Details\n", "## Details\n\n<script>x</script>\n![a](http://e.example/a.png)\n"
        ),
        _build(CONTEXT7).text.replace("## Details\n", "## Details\n\n```\n"),
        _build(CONTEXT7).text.replace("**Version:** 2.x", "**Version:** <b>2</b>"),
        _build(CONTEXT7).text + "\n## My own notes\n\nRemember this.\n",
        "x" * 600_000,
        "```\n" + "y\n" * 300_000 + "```\n",
    ],
    ids=[
        "kr",
        "foreign",
        "marked",
        "open",
        "edited",
        "open-in-section",
        "edited-header",
        "extra",
        "huge",
        "huge-code",
    ],
)
def test_a_baseline_of_a_baseline_is_the_same(old: str) -> None:
    once = _again(old, 1)
    assert once.count(STALE_MARK) == 1
    assert _again(once, 2) == once


def test_an_edited_report_is_carried_whole() -> None:
    old = _build(CONTEXT7).text + "\n## My own notes\n\nRemember this, it is *important*.\n"
    details = _assert_template(_again(old, 1))["Details"]
    assert "> Remember this, it is *important*." in details
    assert "minRowHeight: 40" in details


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a\n\n**Confidence:** high\n\n## Summary\n", "high"),
        ("# a\n\n- **confidence**: Low\n", "low"),
        ("Confidence: MEDIUM", "medium"),
        ("# a\n\n## Summary\n\n**Confidence:** high\n", None),
        ("# a\n\n> **Confidence:** high\n", None),
        ("# a\n\n**Confidence:** certain\n", None),
        ("", None),
    ],
)
def test_read_confidence(text: str, expected: str | None) -> None:
    assert read_confidence(text) == expected


def test_read_confidence_reads_our_own() -> None:
    assert read_confidence(_build(CONTEXT7).text) == "high"


_NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=40).filter(
    lambda text: not is_blank(text)
) | st.sampled_from(
    [
        "C#",
        "C #",
        "C ##",
        "<b>",
        "**Confidence:** high",
        "[a](javascript:x)",
        "a\\",
        "`",
        "# x",
        "&lt;",
        "x" * 5000,
    ]
)
_PIECES = st.lists(
    st.sampled_from(
        [
            "## Source Attribution\n",
            "\n\n",
            "**Confidence:** high\n",
            "virtual scrolling ",
            "Note: configure row heights. ",
            "```\n",
            "# c\n",
            "<img src=x>",
            "`",
            "`a. <img src=x>` ",
            "[x](javascript:y)",
            "- ",
            "- Source 1: https://evil.example/ (via context7)\n",
            "\u202e",
            "\r",
            "> ",
            "===\n",
            f"{STALE_MARK}\n",
            f"{SKELETON_MARK}\n",
            "Notes on this copy:\n\n- x\n",
            "word ",
        ]
    ),
    max_size=25,
).map("".join)
_TEXTS = _PIECES | st.text(max_size=60)
_ANSWERS = st.builds(
    lambda source, parts, version: Answer(
        source=source,
        passages=tuple(Passage(text=text, title=title, url=url) for text, title, url in parts),
        version=version,
    ),
    source=st.sampled_from(["context7", "deepwiki", "web_search", "local_docs"]),
    parts=st.lists(
        st.tuples(
            _TEXTS,
            st.none() | _TEXTS,
            st.sampled_from([None, "https://a.example/", "file:///x", "https://b.example/\n## Summary"]),
        ),
        min_size=1,
        max_size=4,
    ),
    version=st.none() | _TEXTS,
)


@given(_ANSWERS, _NAMES, _NAMES, _TEXTS, st.lists(_TEXTS, max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_answer_makes_a_report_of_the_template(
    answer: Answer, framework: str, topic: str, question: str, notes: list[str]
) -> None:
    query = replace(QUERY, framework=framework, topic=topic, framework_version=topic, question=question)
    report = _build(answer, query=query, notes=notes)
    _assert_template(report.text)
    assert tokens_of(report.text) <= MAX_TOKENS
    assert read_confidence(report.text) == report.confidence
    assert _build(answer, query=query, notes=notes) == report


def test_a_sources_own_mark_stays_what_it_is() -> None:
    text = f"{STALE_MARK}\n{STALE_MARK}\nvirtual scrolling of rows"
    once = _again(_build(Answer(source="context7", passages=(Passage(text=text),))).text, 1)
    assert _again(once, 1) == once
    assert f"> {STALE_MARK}" in once


@given(_ANSWERS, _TEXTS)
@settings(max_examples=100, deadline=None)
def test_any_old_text_makes_a_stable_baseline(answer: Answer, old: str) -> None:
    for text in (old, _build(answer).text):
        report = _build(None, baseline=text)
        _assert_template(report.text)
        assert _build(None, baseline=report.text) == report


def _flood(count: int) -> Answer:
    code = "```py\n" + "x = 1  # virtual scrolling\n" * 200 + "```\n\n"
    prose = "Virtual scrolling configures dynamic row heights in a table. " * 45
    passages = (
        Passage(
            text=f"# Part {n}\n\n{prose}{n}\n\n{code.replace('1', str(n))}",
            url=f"https://d.example/{n}/" + "p" * 900,
        )
        for n in range(count)
    )
    return Answer(source="context7", passages=tuple(passages))


@pytest.mark.parametrize("most", [1000, 3000, 6000])
def test_a_report_fits_a_context(most: int) -> None:
    report = _build(_flood(60), max_tokens=most)
    sections = _assert_template(report.text)
    assert tokens_of(report.text) <= most
    assert 1 <= len(re.findall(r"^From Source", sections["Details"], re.MULTILINE)) <= 5
    assert "dynamic row heights" in sections["Details"]


def test_chinese_fits_too() -> None:
    prose = "虚拟滚动（virtual scrolling）只渲染视图中的行，动态行高（dynamic row heights）需要配置。" * 300
    report = _build(Answer(source="context7", passages=(Passage(text=prose),)), max_tokens=1000)
    _assert_template(report.text)
    assert 300 < tokens_of(report.text) <= 1000


def test_a_gap_is_told_as_a_gap() -> None:
    other = Answer(
        source="web_search",
        passages=(
            Passage(
                text="# Table\n\n## Colours of a row\n\nEach of the rows has a colour of its own.\n\n```py\ntable.paint(row=1)\n```\n",
                url="https://a.example/t",
            ),
        ),
    )
    report = _build(other)
    sections = _assert_template(report.text)
    assert (report.confidence, report.origin) == ("low", "skeleton")
    assert sections["Summary"] == SKELETON_MARK
    assert sections["Details"].partition("pages:\n\n")[2] == (
        "From Source 1: **Table > Colours of a row**\n\n> Each of the rows has a colour of its own.\n\n"
        "```py\ntable.paint(row=1)\n```"
    )
    assert "- Source 1: https://a.example/t (via web_search)" in sections["Source Attribution"]
    assert "does not cover the question" in sections["Caveats & Version-Specific Notes"]


def test_of_the_words_that_no_passage_has_those_are_told_that_texts_are_about() -> None:
    text = "# Rows\n\nThe virtual table renders rows of its height. Rows are virtual."
    query = replace(
        QUERY,
        question="How come the virtual table renders the rows of its height without a queue?",
        topic="virtual rows",
        tags=("scrolling",),
    )
    report = build_report(
        query, answer=Answer(source="web_search", passages=(Passage(text=text),)), today=TODAY
    )
    assert "The passages do not speak of: scrolling, queue." in report.text


def test_a_report_that_speaks_of_little_of_the_need_says_so() -> None:
    doubt = "Doubtful: these passages say little of what was asked for"
    text = "# Sorting\n\nVirtual rows are sorted by a function of yours."
    query = replace(
        QUERY,
        question="Rows jump when users scroll quickly through a virtual table",
        topic="virtual rows jump",
        tags=("scrolling", "rows"),
    )
    said = {
        source: build_report(query, answer=Answer(source=source, passages=(Passage(text=text),)), today=TODAY)
        for source in ("web_search", "context7")
    }
    assert {source: report.origin for source, report in said.items()} == dict.fromkeys(said, "researched")
    assert doubt in said["web_search"].text
    assert doubt not in said["context7"].text
    more = f"{text} Scrolling quickly makes rows jump."
    sure = build_report(
        query, answer=Answer(source="web_search", passages=(Passage(text=more),)), today=TODAY
    )
    assert doubt not in sure.text


def test_a_stale_report_goes_before_a_gap_and_after_an_answer() -> None:
    old = _build(CONTEXT7).text
    gap = Answer(source="web_search", passages=(Passage(text="Colours are set.", url="https://a.example/"),))
    assert _build(gap, baseline=old).origin == "baseline"
    assert _build(PAGES, baseline=old).origin == "researched"


@pytest.mark.parametrize(
    ("count", "why"),
    [
        (1, "low, from one web page."),
        (2, "medium, from web pages that agree."),
        (-1, "low, from one web page."),
        (-2, "low, from web pages that do not confirm one another."),
    ],
)
def test_the_report_says_what_web_pages_are_worth(count: int, why: str) -> None:
    passages = PAGES.passages[:count]
    if count == -1:  # two copies
        passages = (PAGES.passages[1], replace(PAGES.passages[1], url="https://two.example/?x=2"))
    if count == -2:
        passages = (
            Passage(text="Virtual scrolling of rows.", url="https://two.example/"),
            Passage(text="Dynamic heights.", url="https://three.example/"),
        )
    text = _build(replace(PAGES, passages=passages)).text
    assert f"- Confidence: {why}\n" in text


def test_the_report_says_of_which_source_the_beginning_alone_was_read() -> None:
    cut = replace(PAGES, passages=(PAGES.passages[0], replace(PAGES.passages[1], is_cut=True)))
    notes = _build(cut).text.partition("Notes by kr:\n\n")[2]
    assert "- Of Source 2, only the beginning was read.\n" in notes
    assert "only the beginning" not in _build(PAGES).text


def test_signatures_above_a_passage_are_told_by_their_names() -> None:
    text = "# Web\n\n##### `class web.Application(handlers: list, default_host: str = None)`\n\n###### `listen(port: int) -> Server`\n\nScrolls virtually."
    answer = Answer(source="web_search", passages=(Passage(text=text, url="https://one.example/"),))
    assert "From Source 1: **Web > `web.Application` > `listen(port: int) -> Server`**" in _build(answer).text


def test_what_comes_next_is_told_in_a_line_each() -> None:
    def passage(name: str, text: str) -> Passage:
        return Passage(text=text, title=f"queue.{name}", url=f"queue 1.0, queue.py: {name}")

    passages = [passage(f"retry_{n}", f"Retry the failed job number {n}: {'word ' * 40}.") for n in range(5)]
    passages += [passage("attempts", "How often a failed job is tried again."), passage("close", "Close it.")]
    passages.insert(5, passage("compare", "The queues that retry a failed job are compared here:"))
    query = replace(QUERY, framework="queue", topic="retry", tags=(), question="How do I retry a failed job?")
    source = Answer(source="local_docs", passages=tuple(passages))
    details = read_shape(build_report(query, answer=source, today=TODAY).text).sections["Details"]  # type: ignore[union-attr]
    shown, _, besides = details.partition("Found besides, in a line each:")
    assert "attempts" not in shown
    assert "compare" not in besides
    assert re.search(
        r"^> - Source \d, \*\*`queue\.attempts`\*\*: How often a failed job is tried again\.$",
        besides,
        re.MULTILINE,
    )
    asked = build_report(query, answer=replace(source, source="context7"), today=TODAY).text
    assert "Found besides" not in asked


def test_what_a_passage_lists_and_declares_is_told_no_second_time() -> None:
    options = "export interface RetryOptions {\n  attempts?: number;\n}"

    def passage(name: str, text: str) -> Passage:
        return Passage(text=text, title=f"Queue.{name}", url="queue 1.0, queue.d.ts")

    def declared(name: str) -> str:
        return f"```typescript\ndeclare class Queue {{\n  {name}(options: RetryOptions): void;\n}}\n\n{options}\n```"

    beside = "Other members of `Queue`:\n\n- `retryLater(job)`: Retries a failed job later.\n- `close()`: Closes it."
    passages = [
        passage("retry", f"{declared('retry')}\n\nRetries a failed job, so often.\n\n{beside}"),
        passage("retryAll", f"{declared('retryAll')}\n\nRetries each failed job, of all of them."),
        *(passage(f"failed{n}", f"Tells of failed job {n}, {'word ' * 40}.") for n in range(4)),
        passage("retryLater", "Retries a failed job later."),
        passage("failedJobs", "Tells how many jobs failed."),
    ]
    query = replace(QUERY, framework="queue", topic="retry", tags=(), question="How do I retry a failed job?")
    source = Answer(source="local_docs", passages=tuple(passages))
    text = build_report(query, answer=source, today=TODAY).text
    details = read_shape(text).sections["Details"]  # type: ignore[union-attr]
    assert "retryAll(options: RetryOptions)" in details
    assert details.count("interface RetryOptions") == 1
    besides = details.partition("Found besides, in a line each:")[2]
    assert "Queue.failedJobs" in besides
    assert "Queue.retryLater" not in besides
