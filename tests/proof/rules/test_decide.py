"""What a research's status is, and which entries are served and offered (SPEC 3.2 to 3.4)."""

from typing import Any

import pytest

from kr.models import ResearchStatus, SourceAttempt
from kr.research.decide import Outcome, research_status


def outcome(*attempts: tuple[str, str], **changes: Any) -> Outcome:
    rows = tuple(SourceAttempt(source=source, status=status) for source, status in attempts)  # type: ignore[arg-type]
    return Outcome(attempts=rows, **changes)


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (outcome(is_fresh_hit=True, is_offer=True), "cache-hit"),
        (outcome(is_offer=True), "candidates"),
        (outcome(("context7", "skipped"), has_budget_ended=True), "budget-exhausted"),
        (outcome(("context7", "timeout")), "degraded"),
        (
            outcome(("context7", "timeout"), ("deepwiki", "success"), is_answered=True, is_written=False),
            "partial",
        ),
        (
            outcome(("context7", "timeout"), ("deepwiki", "unavailable"), ("a", "success"), is_answered=True),
            "timeout",
        ),
        (outcome(("context7", "unavailable"), ("deepwiki", "success"), is_answered=True), "partial"),
        (outcome(("local_docs", "unavailable"), ("context7", "success"), is_answered=True), "success"),
        (outcome(("context7", "success"), is_answered=True), "success"),
    ],
)
def test_the_status_is_the_first_row_of_the_table_that_holds(ended: Outcome, status: ResearchStatus) -> None:
    assert research_status(ended) == status
