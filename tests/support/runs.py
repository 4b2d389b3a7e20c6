"""A request under way, for tests of what a miss does on its way."""

from pathlib import Path

from kr.models import MatchRules
from kr.requests import ResearchRequest, parse_request
from kr.research.cache import Rules
from kr.research.decide import Limits
from kr.research.run import Run
from kr.store.engine import Store
from tests.support.program import request
from tests.support.stores import NOW

RULES = Rules(limits=Limits(), match=MatchRules(), aliases={}, calls_per_story=3, overall_timeout=60)


def run_of(store: Store) -> Run:
    """Make a run of ``request()`` at ``NOW``."""
    parsed = parse_request(request())
    assert isinstance(parsed, ResearchRequest)
    return Run(
        request=parsed,
        rules=RULES,
        store=store,
        clock=lambda: NOW,
        project="project",
        knowledge_base=Path("kb"),
    )
