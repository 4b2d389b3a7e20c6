"""What a research's status is, and which entries are served and offered (SPEC 3.2 to 3.4)."""

import pytest

from kr.models import ResearchStatus, SourceAttempt
from kr.research.decide import research_status


@pytest.mark.parametrize(
    ("attempts", "is_answered", "is_written", "has_budget_ended", "status"),
    [
        ([("context7", "skipped")], False, True, True, "budget-exhausted"),
        ([("context7", "timeout")], False, True, False, "degraded"),
        ([("context7", "timeout"), ("deepwiki", "success")], True, False, False, "partial"),
        (
            [("context7", "timeout"), ("deepwiki", "unavailable"), ("a", "success")],
            True,
            True,
            False,
            "timeout",
        ),
        ([("context7", "unavailable"), ("deepwiki", "success")], True, True, False, "partial"),
        ([("local_docs", "unavailable"), ("context7", "success")], True, True, False, "success"),
        ([("context7", "success")], True, True, False, "success"),
    ],
)
def test_the_status_is_the_first_row_of_the_table_that_holds(
    attempts: list[tuple[str, str]],
    is_answered: bool,
    is_written: bool,
    has_budget_ended: bool,
    status: ResearchStatus,
) -> None:
    rows = [SourceAttempt(source=source, status=how) for source, how in attempts]  # type: ignore[arg-type]
    found = research_status(
        rows, is_answered=is_answered, is_written=is_written, has_budget_ended=has_budget_ended
    )
    assert found == status
