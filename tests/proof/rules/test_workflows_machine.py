"""How a workflow goes on."""

from kr.workflows.machine import handle
from kr.workflows.state import Begin
from tests.support.workflows import NOW as BEGAN
from tests.support.workflows import action, approval, make


def test_a_workflow_that_goes_on_keeps_when_it_began() -> None:
    waiting = handle(make([approval("a"), action("b")]), Begin(), now=BEGAN).instance
    again = handle(waiting, Begin(), now="2030-01-01T00:00:00.000000Z").instance
    assert (waiting.started_at, again.started_at) == (BEGAN, BEGAN)
