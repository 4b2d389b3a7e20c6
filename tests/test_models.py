from kr.models import Problem, Related, to_plain
from kr.recording import RecordedEntry, RecordEnvelope, RecordResults, skip


def test_plain_data_has_the_order_of_the_fields_and_lists_for_tuples() -> None:
    entry = RecordedEntry(date="2026-01-02", phase="code-review", event_type="x", summary="s", ref=None)
    results = RecordResults(events_detected=1, recorded_entries=(entry,))
    plain = to_plain(RecordEnvelope(status="recorded", session_id=7, story_key="1-1", results=results))
    assert list(plain) == ["status", "session_id", "story_key", "results", "errors"]
    assert plain["errors"] == []
    assert plain["results"]["recorded_entries"] == [
        {"date": "2026-01-02", "phase": "code-review", "event_type": "x", "summary": "s", "ref": None}
    ]


def test_optional_fields_are_left_out_where_they_have_their_default() -> None:
    assert to_plain(Problem(type="t", message="m")) == {"type": "t", "message": "m"}
    assert to_plain(Problem(type="t", field="f", message="m")) == {"type": "t", "field": "f", "message": "m"}
    assert "quarantined" not in to_plain(skip({}, "none"))["results"]
    assert to_plain(RecordResults(quarantined=2, message="m"))["quarantined"] == 2


def test_fields_that_are_merely_empty_stay() -> None:
    found = Related(
        id="a", framework_version="1", topic="t", question=None, summary="", origin="finding",
        confidence="low", worked=0, wrong=0, score=0.0,
    )  # fmt: skip
    assert to_plain(found)["question"] is None
    assert "note" not in to_plain(found)
