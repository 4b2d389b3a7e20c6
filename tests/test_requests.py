"""Every row of the validation tables of F1 and U5, and what callers send in other forms."""

import json
import logging
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import InvalidRequest
from kr.lessons.record import parse_record
from kr.models import Query
from kr.requests import (
    ResearchOverrides,
    ResearchRequest,
    parse,
    parse_request,
    with_overrides,
)
from kr.research.finding_text import Finding, Rate

ANY_TEXT_BAD = [None, "", "   ", "\u3000", "\u200b", " \u202e\u3164", ["x"], {"x": "y"}]


def research(**changes: Any) -> dict[str, Any]:
    """A good request; ``research_query__topic`` names a field of a block, and KeyError leaves it out."""
    data: dict[str, Any] = {
        "story_key": "3-1",
        "mode": "research",
        "session_id": "sprint-1",
        "research_query": {
            "framework": "vue-easytable",
            "framework_version": "2.10",
            "topic": "virtual scrolling",
            "tags": ["virtual-scroll", "performance"],
            "question": "How to configure virtual scrolling?",
        },
    }
    for name, value in changes.items():
        *parents, key = name.split("__")
        target = data
        for parent in parents:
            target = target[parent]
        if value is KeyError:
            del target[key]
        else:
            target[key] = value
    return data


def inject(**changes: Any) -> dict[str, Any]:
    phase = {"phase": "dev-execution"}
    return {
        "story_key": "3-1",
        "mode": "lessons-inject",
        "session_id": "s",
        "lessons_inject": phase,
        **changes,
    }


def parsed(**changes: Any) -> ResearchRequest:
    request = parse_request(research(**changes))
    assert isinstance(request, ResearchRequest)
    return request


def overrides(**given: object) -> ResearchOverrides:
    return parsed(config_overrides=given).config_overrides


def problems(data: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as raised:
        parse_request(data)
    return {error.field: error.message for error in raised.value.fields}


def test_a_good_request_comes_through_whole() -> None:
    assert parsed().research_query == Query(
        framework="vue-easytable",
        framework_version="2.10",
        topic="virtual scrolling",
        tags=("virtual-scroll", "performance"),
        question="How to configure virtual scrolling?",
    )
    assert parsed().config_overrides == ResearchOverrides()


BAD: dict[str, list[Any]] = {
    "story_key": [KeyError, None, "  ", "31", "3-1 ", "3-1\n", "-3-1", "3-1-2", "٣-1", ["3-1"]],
    "session_id": [KeyError, None, " \t\n", [], "x" * 501],
    "mode": [KeyError, None, "", "Research", ["research"]],
}


@pytest.mark.parametrize(("field", "bad"), [(field, it) for field, values in BAD.items() for it in values])
def test_who_asks_and_for_what(field: str, bad: object) -> None:
    found = problems(research(**{field: bad}))
    assert list(found) == [field]
    assert field != "mode" or found["mode"].startswith("Invalid mode")


@pytest.mark.parametrize("field", ["framework", "framework_version", "topic", "question"])
@pytest.mark.parametrize("bad", [KeyError, *ANY_TEXT_BAD])
def test_texts_of_the_query(field: str, bad: object) -> None:
    assert list(problems(research(**{f"research_query__{field}": bad}))) == [f"research_query.{field}"]


@pytest.mark.parametrize("field", ["framework", "framework_version", "topic"])
@pytest.mark.parametrize("sign", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\t"])
def test_control_characters_are_refused_by_name(field: str, sign: str) -> None:
    found = problems(research(**{f"research_query__{field}": f"a{sign}b"}))
    assert f"U+{ord(sign):04X}" in found[f"research_query.{field}"]


def test_names_of_frameworks() -> None:
    for name in ("C++", "C#", "@nestjs/core", "org.a:b", "Vue 3", "vue@3.5", "前端 3", "a/b_c.d"):
        assert parsed(research_query__framework=name).research_query.framework == name
    for name in ("../../etc", "a..b", "a;b", "a(b)", "~/x", "a\\b", "-", "<b>", "$HOME"):
        assert list(problems(research(research_query__framework=name))) == ["research_query.framework"]


@pytest.mark.parametrize(
    "bad",
    [KeyError, None, [], "tag", {}, [""], [None, " "], ["\u200b"], [["a"]], [{"a": "b"}], ["a\nb"], "[]"],
)
def test_tags(bad: object) -> None:
    assert list(problems(research(research_query__tags=bad))) == ["research_query.tags"]


@pytest.mark.parametrize("bad", [KeyError, None, "", "dev", "dev-execution ", ["dev-execution"]])
def test_phase(bad: object) -> None:
    found = problems(inject(lessons_inject={} if bad is KeyError else {"phase": bad}))
    assert list(found) == ["lessons_inject.phase"]
    assert found["lessons_inject.phase"].startswith("Invalid phase tag")


def test_every_bad_field_in_one_answer_and_by_the_tables_names() -> None:
    found = problems(
        {"mode": "x", "story_key": "x", "research_query": {"tags": "none"}, "lessons_inject": {"a": 1}}
    )
    query = ("framework", "framework_version", "topic", "tags", "question")
    names = {f"research_query.{name}" for name in query}
    assert set(found) == {"mode", "story_key", "session_id", "lessons_inject.phase"} | names


@pytest.mark.parametrize(
    ("given", "max_calls", "timeout"),
    [
        *((good, 3, 3) for good in ("3", 3, 3.0, "3.0")),
        *((zero, 0, None) for zero in ("0", 0)),
        *((bad, None, None) for bad in ("-1", "x", "+3", True, 1.5, [3], "٣", "9" * 5000)),
    ],
)
def test_counts_in_any_form(
    given: object, max_calls: int | None, timeout: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    read = overrides(max_calls=given, timeout_seconds=given)
    assert (read.max_calls, read.timeout_seconds) == (max_calls, timeout)
    named = {"max_calls": max_calls, "timeout_seconds": timeout}
    said = [it.getMessage().partition(":")[0] for it in caplog.records]
    assert said == [f"config_overrides.{name}" for name, value in named.items() if value is None]


def test_overrides_of_the_wrong_kind_fall_back(caplog: pytest.LogCaptureFixture) -> None:
    assert parsed(config_overrides="fast").config_overrides == ResearchOverrides()
    assert "config_overrides" in caplog.text


def test_what_a_caller_of_research_may_say() -> None:
    assert all(overrides(refresh=yes).refresh for yes in (True, "true", "True", " TRUE "))
    assert overrides(refresh="false", use=" vue-watchers ") == ResearchOverrides(use="vue-watchers")
    assert overrides(if_unsure="candidates").if_unsure == "candidates"


@pytest.mark.parametrize(
    ("field", "bad"), [("refresh", "often"), ("refresh", 1), ("if_unsure", "ask"), ("use", ["a"])]
)
def test_what_a_caller_of_research_may_not_say(field: str, bad: object) -> None:
    found = problems(research(config_overrides={field: bad}, story_key="x"))
    assert set(found) == {"story_key", f"config_overrides.{field}"}


def test_what_is_given_beside_a_document_wins() -> None:
    data = research(config_overrides='{"if_unsure": "research", "max_calls": 1}')
    request = parse_request(with_overrides(data, {"if_unsure": "candidates"}))
    assert isinstance(request, ResearchRequest)
    assert request.config_overrides == ResearchOverrides(if_unsure="candidates", max_calls=1)
    with_one = with_overrides(research(config_overrides="often"), {"use": "a"})
    assert with_one["config_overrides"] == {"use": "a"}


def test_unknown_keys_are_named_at_every_depth(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    parsed(urgency="high", research_query__notes="x", config_overrides={"colour": "red"})
    for key in ("urgency", "research_query.notes", "config_overrides.colour"):
        assert f'"{key}"' in caplog.text
    caplog.clear()
    parsed(lessons_inject={"phase": "dev-execution"})
    assert not caplog.records, "a document may serve both modes"


def test_lists_and_blocks_may_be_json_text() -> None:
    data = research(research_query__tags='["ref", "vue"]', config_overrides='{"max_calls": "2"}')
    request = parse_request({**data, "research_query": json.dumps(data["research_query"])})
    assert isinstance(request, ResearchRequest)
    assert request.research_query.tags == ("ref", "vue")
    assert request.config_overrides.max_calls == 2


FINDING = {"framework": "vue", "question": "How?", "answer": "\nSo.\n"}


def test_every_bad_field_of_a_finding() -> None:
    bad = {"question": " ", "sources": {"a": 1}, "story_key": "x", "verified_by": "a\nb", "tags": ["t"] * 2}
    with pytest.raises(InvalidRequest) as raised:
        parse(Finding, {**bad, "topic": "x" * 501, "caveats": list("ab")})
    names = "framework question answer sources story_key verified_by topic caveats"
    assert {error.field for error in raised.value.fields} == set(names.split())
    with pytest.raises(InvalidRequest):
        parse(Finding, {**FINDING, "tags": [str(number) for number in range(21)]})


def test_a_rating() -> None:
    rate = parse(Rate, {"outcome": "worked", "note": "", "session_id": "s"})
    assert (rate.outcome, rate.note, rate.session_id) == ("worked", None, "s")
    for outcome in (None, "", "good", ["worked"]):
        with pytest.raises(InvalidRequest):
            parse(Rate, {"outcome": outcome})


RECORD = {
    "session_id": "s",
    "story_key": "3-1",
    "phase": "dev-execution",
    "event_type": "general_agent_failure",
    "agent_return": {"status": "failure"},
}


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *((name, None) for name in RECORD),
        *((name, "x") for name in ("story_key", "phase", "event_type", "agent_return")),
        ("agent_return", {}),
        ("agent_return", {"status": " "}),
    ],
)
def test_each_field_of_a_recording(field: str, bad: object) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_record({**RECORD, field: bad})
    assert [error.field for error in raised.value.fields] == [field]


def test_a_lesson_alone_is_enough() -> None:
    request = parse_record({"session_id": "s", "story_key": "3-1", "phase": "", "lesson": '{"symptom": "a"}'})
    assert (request.phase, request.event_type) == ("dev-execution", "general_agent_failure")
    assert request.lessons == ({"symptom": "a"},)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [*research(), *inject(), *RECORD, *FINDING, "config_overrides", "tags", "lessons", "outcome"]
)


@given(st.dictionaries(KEYS, ANYTHING | st.sampled_from(["research", "lessons-inject", "3-1"])))
def test_nothing_but_invalid_request_leaves_a_parser(data: dict[str, Any]) -> None:
    for read in (parse_request, partial(parse, Finding), partial(parse, Rate), parse_record):
        try:
            read(data)
        except InvalidRequest as error:
            fields = [each.field for each in error.fields]
            assert sorted(set(fields)) == sorted(fields)
