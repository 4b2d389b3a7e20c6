from kr.models import Problem, Related, failure, to_plain


def test_plain_data_has_the_order_of_the_fields_and_lists_for_tuples() -> None:
    plain = to_plain(failure({"session_id": 7}, Problem(type="t", message="m"), mode="research"))
    assert list(plain) == ["status", "story_key", "mode", "session_id", "results", "errors"]
    assert plain["errors"] == [{"type": "t", "message": "m"}]


def test_optional_fields_are_left_out_where_they_have_their_default() -> None:
    assert to_plain(Problem(type="t", message="m")) == {"type": "t", "message": "m"}
    assert to_plain(Problem(type="t", field="f", message="m")) == {"type": "t", "field": "f", "message": "m"}


def test_fields_that_are_merely_empty_stay() -> None:
    found = Related(
        id="a", framework_version="1", topic="t", question=None, summary="", origin="finding",
        confidence="low", worked=0, wrong=0, score=0.0,
    )  # fmt: skip
    assert to_plain(found)["question"] is None
    assert "note" not in to_plain(found)
