"""Every row of the validation table of seed 000, and what SPEC 3.1 decides on top of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.contracts.requests import (
    LessonsInjectRequest,
    ResearchOverrides,
    ResearchRequest,
    parse_request,
    put_over,
    read_count,
)
from kr.errors import InvalidRequest
from kr.values import PHASES


def research(**changes: Any) -> dict[str, Any]:
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
        target = data
        *parents, key = name.split("__")
        for parent in parents:
            target = target.setdefault(parent, {})
        if value is KeyError:
            del target[key]
        else:
            target[key] = value
    return data


def inject(**changes: Any) -> dict[str, Any]:
    return {
        "story_key": "3-1",
        "mode": "lessons-inject",
        "session_id": "s",
        "lessons_inject": {"phase": "dev-execution"},
        **changes,
    }


def problems(data: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as raised:
        parse_request(data)
    return {error.field: error.message for error in raised.value.fields}


def test_a_good_request_comes_through_whole() -> None:
    request = parse_request(research()).request
    assert isinstance(request, ResearchRequest)
    query = request.research_query
    assert (query.framework, query.framework_version) == ("vue-easytable", "2.10")
    assert query.tags == ("virtual-scroll", "performance")
    assert request.config_overrides.max_calls is None


@pytest.mark.parametrize(
    "bad", [KeyError, None, "", "  ", "31", "3-1 ", "a-b", "-3-1", "3-1-2", ["3-1"], {"a": "b"}]
)
def test_story_key(bad: object) -> None:
    assert list(problems(research(story_key=bad))) == ["story_key"]


@pytest.mark.parametrize("bad", [KeyError, None, "", " \t\n", [], {}])
def test_session_id(bad: object) -> None:
    assert list(problems(research(session_id=bad))) == ["session_id"]


@pytest.mark.parametrize("bad", [KeyError, None, "", "Research", "research ", ["research"], {"a": "b"}])
def test_mode(bad: object) -> None:
    found = problems(research(mode=bad))
    assert list(found) == ["mode"]
    assert found["mode"].startswith("Invalid mode")


@pytest.mark.parametrize("field", ["framework", "framework_version", "topic", "question"])
@pytest.mark.parametrize(
    "bad", [KeyError, None, "", "   ", "\u3000", "\u200b", " \u202e\u3164", ["x"], {"x": "y"}]
)
def test_texts_of_the_query(field: str, bad: object) -> None:
    name = f"research_query.{field}"
    assert list(problems(research(**{f"research_query__{field}": bad}))) == [name]


@pytest.mark.parametrize("field", ["framework", "framework_version", "topic"])
@pytest.mark.parametrize("sign", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\t"])
def test_control_characters_are_refused_by_name(field: str, sign: str) -> None:
    found = problems(research(**{f"research_query__{field}": f"a{sign}b"}))
    assert f"U+{ord(sign):04X}" in found[f"research_query.{field}"]


def test_a_question_may_have_lines() -> None:
    parsed = parse_request(research(research_query__question="How?\n\n    code\n"))
    assert isinstance(parsed.request, ResearchRequest)
    assert parsed.request.research_query.question.startswith("How?\n")


@pytest.mark.parametrize(
    "bad",
    [
        KeyError,
        None,
        [],
        "virtual-scroll",
        {},
        [""],
        [None, " "],
        ["\u200b"],
        [["a"]],
        [{"a": "b"}],
        ["a\nb"],
    ],
)
def test_tags(bad: object) -> None:
    assert list(problems(research(research_query__tags=bad))) == ["research_query.tags"]


def test_blank_and_double_tags_are_dropped_when_one_is_left() -> None:
    request = parse_request(research(research_query__tags=["a", " ", None, "b", "a"])).request
    assert isinstance(request, ResearchRequest)
    assert request.research_query.tags == ("a", "b")


@pytest.mark.parametrize("bad", [KeyError, None, "", "dev", "dev-execution ", ["dev-execution"]])
def test_phase(bad: object) -> None:
    block = {} if bad is KeyError else {"phase": bad}
    found = problems(inject(lessons_inject=block))
    assert list(found) == ["lessons_inject.phase"]
    assert found["lessons_inject.phase"].startswith("Invalid phase tag")


def overrides(**given: object) -> ResearchOverrides:
    request = parse_request(research(config_overrides=given)).request
    assert isinstance(request, ResearchRequest)
    return request.config_overrides


def test_what_is_said_beside_a_document_wins_over_it_and_hides_nothing_that_is_wrong() -> None:
    beside = {"if_unsure": "candidates", "use": "vue-slots"}
    assert put_over({"if_unsure": "research", "max_calls": 1}, beside) == {**beside, "max_calls": 1}
    assert put_over({"if_unsure": None}, beside) == put_over("often", beside) == beside
    wrong = research(config_overrides=put_over({"if_unsure": {}, "refresh": "often"}, beside))
    assert sorted(problems(wrong)) == ["config_overrides.if_unsure", "config_overrides.refresh"]


@pytest.mark.parametrize("yes", [True, "true", "True", " TRUE "])
def test_what_a_caller_of_research_may_say(yes: object) -> None:
    assert overrides() == overrides(refresh=None, use=None, if_unsure=None) == ResearchOverrides()
    assert overrides(refresh=yes).refresh
    assert not overrides(refresh="false", use=" vue-watchers ").refresh
    assert overrides(use=" vue-watchers ").use == "vue-watchers"
    assert overrides(if_unsure="candidates").if_unsure == "candidates"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"refresh": "often"}, {"refresh": 'Validation failed: must be true or false, not "often"'}),
        ({"refresh": 1}, {"refresh": 'Validation failed: must be true or false, not "1"'}),
        (
            {"if_unsure": "ask"},
            {"if_unsure": 'Validation failed: must be one of research, candidates, not "ask"'},
        ),
        ({"use": " "}, {"use": "Validation failed: must not be empty"}),
        ({"use": ["a"]}, {"use": "Validation failed: must be text, not a list"}),
        (
            {"refresh": True, "use": "a"},
            {
                "use": "Validation failed: can't be combined with refresh: an entry is served as it is, or researched again"
            },
        ),
    ],
)
def test_what_a_caller_of_research_may_not_say(given: dict[str, object], told: dict[str, str]) -> None:
    found = problems(research(config_overrides=given, story_key="x"))
    assert found.pop("story_key")
    assert found == {f"config_overrides.{field}": message for field, message in told.items()}


def test_lessons_are_injected_whatever_research_is_told() -> None:
    assert parse_request(inject(config_overrides={"refresh": "often", "max_calls": 2})).warnings == ()


@pytest.mark.parametrize("block", [None, "dev-execution", []])
def test_a_phase_block_of_the_wrong_kind(block: object) -> None:
    assert list(problems(inject(lessons_inject=block))) == ["lessons_inject.phase"]


@pytest.mark.parametrize("phase", PHASES)
def test_every_legal_phase(phase: str) -> None:
    assert isinstance(parse_request(inject(lessons_inject={"phase": phase})).request, LessonsInjectRequest)


def test_every_bad_field_in_one_answer_and_by_the_tables_names() -> None:
    found = problems({"mode": "research", "story_key": "x", "research_query": {"tags": "no list"}})
    assert set(found) == {
        "story_key",
        "session_id",
        "research_query.framework",
        "research_query.framework_version",
        "research_query.topic",
        "research_query.tags",
        "research_query.question",
    }


def test_a_misspelt_key_is_named_beside_the_one_that_is_missing() -> None:
    found = problems(research(research_query__framework=KeyError, research_query__framwork="vue"))
    assert list(found) == ["research_query.framework"]
    assert found["research_query.framework"].endswith('"framwork" is unknown: did you mean framework?')
    found = problems(research(research_query=KeyError, reserch_query={"framework": "vue"}))
    assert found["research_query"].endswith('"reserch_query" is unknown: did you mean research_query?')
    assert found["research_query.topic"] == "Validation failed: required, but missing"


def test_what_is_odd_is_told_beside_what_is_wrong() -> None:
    for mode in ("research", "x"):
        with pytest.raises(InvalidRequest) as raised:
            parse_request(research(mode=mode, research_query__framework="", config_overrides={"max_call": 3}))
        assert [it for it in raised.value.warnings if "max_call" in it]


def test_a_wrong_mode_does_not_hide_the_other_fields() -> None:
    found = problems({"mode": "x", "research_query": {"framework": ""}})
    assert {"mode", "story_key", "session_id", "research_query.framework"} <= set(found)


def test_scalars_of_other_faces_are_read_as_text() -> None:
    request = parse_request(
        research(research_query__framework_version=2.1, session_id=7, research_query__topic=True)
    ).request
    assert isinstance(request, ResearchRequest)
    assert request.research_query.framework_version == "2.1"
    assert (request.session_id, request.research_query.topic) == ("7", "true")


@pytest.mark.parametrize(
    ("given", "max_calls", "timeout"),
    [
        ("3", 3, 3),
        (3, 3, 3),
        ("0", 0, None),
        (0, 0, None),
        ("-1", None, None),
        ("x", None, None),
        ("2.0", None, None),
        ("+3", None, None),
        ("", None, None),
        (True, None, None),
        (1.5, None, None),
        ([3], None, None),
        ("٣", None, None),
        ("9" * 18, 10**18 - 1, 10**18 - 1),
        ("1" + "0" * 18, None, None),
        ("9" * 5000, None, None),
    ],
)
def test_overrides(given: object, max_calls: int | None, timeout: int | None) -> None:
    parsed = parse_request(research(config_overrides={"max_calls": given, "timeout_seconds": given}))
    read = overrides(max_calls=given, timeout_seconds=given)
    assert (read.max_calls, read.timeout_seconds) == (max_calls, timeout)
    assert len(parsed.warnings) == (max_calls is None) + (timeout is None)


@pytest.mark.parametrize("block", ["fast", [1], "3"])
def test_overrides_of_the_wrong_kind_fall_back(block: object) -> None:
    parsed = parse_request(research(config_overrides=block))
    assert isinstance(parsed.request, ResearchRequest)
    assert parsed.request.config_overrides.max_calls is None
    assert "config_overrides" in parsed.warnings[0]


def test_unknown_keys_are_named_at_every_depth() -> None:
    parsed = parse_request(
        research(urgency="high", research_query__notes="x", config_overrides={"colour": "red"})
    )
    told = "\n".join(parsed.warnings)
    assert '"urgency"' in told
    assert '"research_query.notes"' in told
    assert '"config_overrides.colour"' in told


def test_a_field_outside_of_its_block_is_told_with_its_block() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request({"framework": "vue", "topic": "rows", "phase": "dev-execution", "max_calls": "2"})
    assert caught.value.warnings == (
        'unknown key ignored: "framework"; it belongs in research_query',
        'unknown key ignored: "topic"; it belongs in research_query',
        'unknown key ignored: "phase"; it belongs in lessons_inject',
        'unknown key ignored: "max_calls"; it belongs in config_overrides',
    )


def test_the_other_modes_block_is_no_unknown_key() -> None:
    assert parse_request(research(lessons_inject={"phase": "dev-execution"})).warnings == ()


def test_a_command_of_one_mode_may_leave_it_out() -> None:
    data = inject()
    del data["mode"]
    assert isinstance(parse_request(data, default_mode="lessons-inject").request, LessonsInjectRequest)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["story_key", "mode", "session_id", "research_query", "lessons_inject", "config_overrides", "other"]
)


@given(st.dictionaries(KEYS, ANYTHING | st.sampled_from(["research", "lessons-inject", "3-1"])))
def test_nothing_but_invalid_request_leaves_the_parser(data: dict[str, Any]) -> None:
    try:
        parse_request(data)
    except InvalidRequest as error:
        fields = error.fields
    else:
        return
    assert fields
    assert len({field.field for field in fields}) == len(fields)


@given(st.integers(min_value=1, max_value=10**18 - 1))
def test_every_positive_integer_is_a_count(number: int) -> None:
    assert read_count(str(number), zero_is_meant=False) == number


def test_lists_and_blocks_may_be_json_text() -> None:
    """Callers send JSON inside of JSON (SPEC 3.1)."""
    query = {
        "framework": "vue",
        "framework_version": "3",
        "topic": "refs",
        "question": "Refs?",
        "tags": '["ref", "vue"]',
    }
    parsed = parse_request(
        {
            "mode": "research",
            "story_key": "1-1",
            "session_id": "s",
            "research_query": json.dumps(query),
            "config_overrides": '{"max_calls": "2"}',
        }
    )
    assert isinstance(parsed.request, ResearchRequest)
    assert parsed.request.research_query.tags == ("ref", "vue")
    assert parsed.request.config_overrides.max_calls == 2
