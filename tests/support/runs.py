"""A request under way, for tests of what a miss does on its way."""

from kr.app import App
from kr.requests import ResearchRequest, parse_request
from kr.research.run import ResearchRun
from tests.support.program import request


def run_of(app: App) -> ResearchRun:
    """Make a run of ``request()``."""
    parsed = parse_request(request())
    assert isinstance(parsed, ResearchRequest)
    return ResearchRun(app.research, parsed)
