"""The template of a report (F1, step 6.1), what its words say of it, and an older one that stands in (step 6.3)."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.models import PLACEHOLDER_MARK, Query
from kr.report import (
    ParsedReport,
    fresh_until,
    is_by_hand,
    is_finding,
    origin_of,
    parse_report,
    read_confidence,
    read_date,
    render_report,
    title_of,
)
from kr.research.report import build_report

MARK = "[Based on stale cache, re-research recommended]"
HEADER = {
    "Framework": "vue",
    "Version": "3.5",
    "Research Date": "2026-02-07",
    "Confidence": "high",
    "Sources": "https://vuejs.org/",
}
SECTIONS = {
    "Summary": "> A slot is a place.",
    "Details": "```sh\n## not a heading\n```",
    "Code Examples": "None.",
    "Caveats & Version-Specific Notes": "Notes by kr:\n\n- Question: What is a slot?\n- Confidence: high, from Context7.",
    "Source Attribution": "- Source 1: https://vuejs.org/ (via context7)",
}
CAVEATS = "Caveats & Version-Specific Notes"
LINES = [*(f"**{name}:** {value}" for name, value in HEADER.items())]
REPORT = "\n\n".join(
    ["# vue - slots", "\n".join(LINES), *(f"## {name}\n\n{body}" for name, body in SECTIONS.items())]
)
REPORT += "\n"
BODIES = st.lists(st.sampled_from(["a", "", "> b", "```\n## c\n```", "# d", "~~~\n## e\n~~~"]), max_size=4)


def parsed(text: str = REPORT) -> ParsedReport:
    found = parse_report(text)
    assert found is not None
    return found


def carry(old: str) -> str:
    query = Query(framework="vue", framework_version="4", topic="named slots", tags=(), question="What?")
    return build_report(query, answer=None, baseline=old, today=date(2026, 10, 1)).text


# --- the template


def test_a_report_has_the_seeds_header_and_sections() -> None:
    found = parsed()
    assert (found.title, dict(found.header), dict(found.sections)) == ("# vue - slots", HEADER, SECTIONS)
    assert [*found.sections] == [*SECTIONS]
    assert render_report(found) == REPORT


@given(st.tuples(*[BODIES.map("\n".join)] * 5))
def test_what_is_written_is_read_again(bodies: tuple[str, ...]) -> None:
    sections = {name: body.strip("\n") for name, body in zip(SECTIONS, bodies, strict=True)}
    report = ParsedReport(title="# a - b", header=HEADER, sections=sections)
    assert parse_report(render_report(report)) == report


@pytest.mark.parametrize("line", [*LINES, *(f"## {name}" for name in SECTIONS)])
def test_a_line_that_is_missing_twice_there_or_another_makes_it_none(line: str) -> None:
    assert REPORT.count(line) == 1
    for other in ("", f"{line}\n\n{line}", line.replace(line[2:6], "other")):
        assert parse_report(REPORT.replace(line, other)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# vue - slots", "#vue - slots"),
        ("```\n\n## Code", "\n\n## Code"),
        ("\n\n**Framework", "\n**Framework"),
    ],
)
def test_what_differs_from_the_template_is_none(old: str, new: str) -> None:
    assert parse_report(REPORT.replace(old, new)) is None


def test_a_title_is_one_harmless_line() -> None:
    assert title_of("vue", "slots") == "# vue - slots"
    assert "\n" not in title_of("a\n## b", "c\r\nd")


# --- what a header says


@pytest.mark.parametrize(
    ("line", "level"),
    [
        *((f"**Confidence:** {level}", level) for level in ("high", "medium", "low")),
        ("**confidence**: HIGH", "high"),
        ("- Confidence: *Medium*", "medium"),
        ("**Confidence:** lower", None),
        ("", None),
    ],
)
def test_a_confidence_is_read_in_whatever_spelling(line: str, level: str | None) -> None:
    assert read_confidence(f"# vue\n\n{line}\n\n## Summary\n\n**Confidence:** high\n") == level


def test_a_date_is_of_the_header_alone() -> None:
    assert read_date("**Research Date:** 2026-02-07\n\n## Summary\n") == "2026-02-07"
    assert read_date("# vue\n\n## Summary\n\n**Research Date:** 2026-02-07\n") is None
    assert read_date("**Research Date:** soon\n") is None


def test_who_wrote_a_text_is_told_by_its_attribution() -> None:
    finding = REPORT.replace("- Source 1:", "- Written by: agent:s-1\n- Source 1:")
    assert is_finding(finding)
    assert is_by_hand(finding)
    assert not is_by_hand(REPORT)
    assert not is_finding(REPORT.replace("None.", "- Written by: me"))
    assert is_by_hand("just a note")
    assert not is_finding("just a note\n- Written by: me")


@pytest.mark.parametrize(
    ("old", "new", "origin"),
    [
        ("> A slot is a place.", PLACEHOLDER_MARK, "placeholder"),
        ("> A slot", f"{MARK}\n\n> A slot", "baseline"),
        ("> A slot", f"> {MARK}\n> A slot", "researched"),
        ("None.", PLACEHOLDER_MARK, "researched"),
        ("https://vuejs.org/ (via context7)", "vue 3.5 (via local_docs)", "installed"),
        ("(via context7)", "(via context7)\n- Source 2: vue 3.5 (via local_docs)", "researched"),
        ("- Source 1: https://vuejs.org/ (via context7)", "None (via local_docs)", "researched"),
    ],
)
def test_a_reports_words_say_what_it_was_made_from(old: str, new: str, origin: str) -> None:
    assert origin_of(REPORT.replace(old, new)) == origin


def test_an_excerpt_of_installed_documentation_is_fresh_for_a_day() -> None:
    when = "2026-10-01T12:00:00.000000Z"
    assert fresh_until("installed", when) == datetime.fromisoformat(when) + timedelta(days=1)
    assert fresh_until("installed", "soon") is fresh_until("researched", when) is None


# --- a stale report that stands in


def test_an_older_report_stands_in_with_its_version_date_and_sources() -> None:
    text = carry(REPORT)
    carried = parsed(text)
    assert carried.title == "# vue - named slots"
    assert dict(carried.header) == {**HEADER, "Confidence": "low"}
    changed = {"Summary": f"{MARK}\n\n> A slot is a place.", CAVEATS: carried.sections[CAVEATS]}
    assert dict(carried.sections) == SECTIONS | changed
    assert carried.sections[CAVEATS] == (
        "Notes on this copy:\n\n"
        "- Confidence: low, since no source answered and an older report stands in.\n"
        "- The text was researched for version 3.5 (2026-02-07); on 2026-10-01 version 4 was asked for.\n\n"
        "Notes by kr:\n\n- Question: What is a slot?"
    )
    assert carry(text) == text


@pytest.mark.parametrize("old", ["# by hand\n\nSet it.\n", REPORT.replace("## Details", "## More details")])
def test_a_text_that_kr_would_not_have_written_comes_back_marked_once(old: str) -> None:
    assert carry(old) == carry(carry(old)) == f"{MARK}\n\n{old}"


def test_an_older_report_loses_what_nobody_sees() -> None:
    for old in ("# by hand\n\nSet\u200b it.\u202e\n", REPORT.replace("slot", "sl\u200bot")):
        assert not {"\u200b", "\u202e"} & set(carry(old))


def test_an_older_report_of_any_length_stays_under_256_kib() -> None:
    assert len(carry("漢" * 1_000_000).encode()) < 256 * 1024
