"""Which entry answers, which others may, and in which order they are told (SPEC 3.2, "Decision")."""

from typing import Any

import pytest
import yaml

from kr.matching.decide import Considered, decide, named
from kr.matching.evidence import Candidate
from kr.research.cache import SURE
from kr.values import CacheMatch, MatchRules, Tier, replace
from tests.support import calibration
from tests.support.candidates import ENTRY, candidate, query

BALANCED = MatchRules()
STRICT = MatchRules(mode="strict")
SEED = MatchRules(mode="seed")
MODES: list[CacheMatch] = ["balanced", "strict", "seed"]
PAIRS: dict[str, list[tuple[str, str]]] = yaml.safe_load(
    (calibration.DATA / "matching-pairs.yaml").read_text(encoding="utf-8")
)
REPORT = """Virtual scrolling renders the visible rows of a large table alone. Set rowHeight, and give the virtual
scroller a fixed height: the scroller measures which rows of the table are visible. Virtual rows need a key."""


def consider(topic: str, entry_topic: str, rules: MatchRules = BALANCED) -> Considered:
    """Hold two topics that share a tag against each other, the case in which only a contradiction can refuse."""
    known = candidate(entry_topic, "performance")
    return decide(query(topic, "performance", question=topic), [known], rules).considered[0]


class TestPairs:
    @pytest.mark.parametrize("mode", MODES)
    def test_one_thing_in_other_words_is_taken(self, mode: CacheMatch) -> None:
        for pair in PAIRS["same"]:
            for topic, known in (pair, reversed(pair)):
                found = consider(topic, known, MatchRules(mode=mode))
                assert (found.reason, found.tier) == (None, "framework+topic+tags"), (topic, known)

    @pytest.mark.parametrize("mode", MODES)
    def test_what_a_negation_an_opposite_or_an_identifier_parts_is_not(self, mode: CacheMatch) -> None:
        for pair in PAIRS["different"]:
            for topic, known in (pair, reversed(pair)):
                found = consider(topic, known, MatchRules(mode=mode))
                assert found.reason, (topic, known)
                assert found.tier is None, (topic, known)


class TestModes:
    def test_a_shared_tag_is_enough_for_the_seed_alone(self) -> None:
        known = candidate("state machines", "performance")
        asked = query(
            "server rendered pages", "performance", question="How are pages rendered on the server?"
        )
        assert decide(asked, [known], BALANCED).match is None
        assert decide(asked, [known], STRICT).match is None
        match = decide(asked, [known], SEED).match
        assert match is not None
        assert (match.tier, match.shared_tags, match.topic_overlap) == (
            "framework+tags",
            ("performance",),
            0.0,
        )

    def test_strict_takes_nothing_that_balanced_refuses(self) -> None:
        cases = calibration.load_sharing(calibration.FIRST_TWO[0])
        balanced, strict = (calibration.score(cases, rules) for rules in (BALANCED, STRICT))
        fewer = 0
        for one, other in zip(balanced.outcomes, strict.outcomes, strict=True):
            assert other.got in {None, one.got}
            fewer += one.got is not None and other.got is None
        assert fewer

    def test_the_evidence_alone_may_suffice(self) -> None:
        known = candidate(ENTRY.topic, "rows", report=REPORT, question="How do large tables scroll fast?")
        asked = query(
            "visible rows",
            question="How do I render the visible rows of a large table alone by virtual scroll?",
        )
        match = decide(asked, [known], BALANCED).match
        assert match is not None
        assert match.tier == "framework+need"
        assert match.likelihood is not None
        assert 0.79 < match.likelihood < 1.0
        assert decide(asked, [known], SEED).match is None

    def test_no_candidates(self) -> None:
        assert decide(query("x"), [], BALANCED) == (None, (), ())


class TestFloors:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("floor", "taken"),
        [("framework+topic+tags", "a"), ("framework+topic", "ab"), ("framework+tags", "ab")],
    )
    def test_a_floor_holds_in_every_mode(self, mode: CacheMatch, floor: Tier, taken: str) -> None:
        known = [candidate(ENTRY.topic, "performance", id="a"), candidate(ENTRY.topic, id="b")]
        decision = decide(query(ENTRY.topic, "performance"), known, MatchRules(mode=mode, floor=floor))
        assert "".join(item.entry.id for item in decision.considered if item.reason is None) == taken
        assert all(f"below cache_match_floor {floor}" in it.reason for it in decision.considered if it.reason)

    def test_evidence_without_a_tier_is_below_every_floor(self) -> None:
        known = candidate(ENTRY.topic, report=REPORT, question="How do large tables scroll fast?")
        asked = query(
            "visible rows",
            question="How do I render the visible rows of a large table alone by virtual scroll?",
        )
        assert decide(asked, [known], BALANCED).match is not None
        assert decide(asked, [known], MatchRules(floor="framework+tags")).match is None

    def test_the_seed_looks_at_the_tier_before_the_likelihood(self) -> None:
        topical, tagged = candidate(ENTRY.topic, id="a"), candidate("state machines", "performance", id="b")
        for known in ([topical, tagged], [tagged, topical]):
            decision = decide(query("virtual scrolling for large tables", "performance"), known, SEED)
            assert [item.tier for item in decision.considered] == ["framework+topic", "framework+tags"]


class TestEqualTopics:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("fuzzy", [True, False])
    def test_an_equal_topic_always_answers(self, mode: CacheMatch, *, fuzzy: bool) -> None:
        known = [candidate(), candidate("virtual scroll for tables", "performance", id="near")]
        asked = query(f"  {ENTRY.topic.upper()} ", "other", question="Something else?")
        match = decide(asked, known, MatchRules(mode=mode, fuzzy=fuzzy)).match
        assert match is not None
        assert (match.entry.id, match.likelihood, match.tier, match.topic_overlap) == (
            "e1",
            1.0,
            "framework+topic",
            1.0,
        )

    def test_without_fuzzy_nothing_else_does(self) -> None:
        asked = query("virtual scrolling configuration for large tables", "performance")
        decision = decide(asked, [candidate(ENTRY.topic, "performance")], MatchRules(fuzzy=False))
        assert decision.match is None
        assert "cache_fuzzy_match" in (decision.considered[0].reason or "")

    @pytest.mark.parametrize("rules", [BALANCED, STRICT])
    def test_a_known_wording_answers(self, rules: MatchRules) -> None:
        asked = query("rows drawn lazily", question="Draw them lazily?")
        assert decide(asked, [candidate()], rules).match is None
        known = candidate(wordings=[("Rows drawn LAZILY", (), "draw them  lazily?")])
        match = decide(asked, [known], rules).match
        assert match is not None
        assert match.likelihood == 1.0
        assert decide(asked, [known], MatchRules(fuzzy=False)).match is None

    @pytest.mark.parametrize("mode", MODES)
    def test_a_known_wording_answers_below_every_floor(self, mode: CacheMatch) -> None:
        asked = query("rows drawn lazily", question="Draw them lazily?")
        rules = MatchRules(mode=mode, floor="framework+topic+tags")
        known = candidate(wordings=[("rows drawn lazily", (), "Draw them lazily?")])
        assert decide(asked, [known], rules).match is not None
        assert decide(asked, [candidate()], rules).match is None

    def test_the_topic_of_a_wording_alone_says_less(self) -> None:
        asked = query("rows drawn lazily", question="Publish to npm?")
        known = candidate(wordings=[("rows drawn lazily", (), "Draw them lazily?")])
        assert decide(asked, [known], STRICT).match is None

    def test_an_entry_that_is_named_answers_and_says_how_it_would_have(self) -> None:
        match = named(query("state machines", "performance"), replace(ENTRY, question="x"))
        assert (match.tier, match.likelihood, match.shared_tags) == ("framework+tags", None, ("performance",))
        assert named(query("state machines"), ENTRY).tier == "framework+need"


class TestContradictions:
    @pytest.mark.parametrize(
        ("topic", "entry_topic"),
        [
            ("disable caching of responses", "enable caching of responses"),
            ("useLayoutEffect cleanup", "useEffect cleanup"),
            ("convert a date to a string", "convert a string to a date"),
            ("retries without backoff", "retries with backoff"),
            ("禁用缓存", "启用缓存"),
        ],
    )
    def test_are_told_as_the_reason(self, topic: str, entry_topic: str) -> None:
        found = consider(topic, entry_topic)
        assert found.tier is None
        assert found.reason
        assert not found.reason.startswith("likelihood")
        assert found.likelihood < SURE

    def test_no_mode_takes_them_by_a_shared_tag(self) -> None:
        assert consider("disable caching of responses", "enable caching of responses", SEED).reason


class TestOrder:
    def test_likelihood_then_freshness_then_access_then_id(self) -> None:
        known = [
            candidate(ENTRY.topic, id="a", last_accessed="2026-02-01"),
            candidate(ENTRY.topic, id="b", last_accessed="2026-01-31"),
            candidate(ENTRY.topic, id="c", last_accessed="2026-01-31"),
            candidate(ENTRY.topic, id="d", last_accessed="2026-03-01", status="stale"),
            candidate("state machines", id="e", last_accessed="2026-03-02"),
        ]
        for shuffled in (known, known[::-1], known[2:] + known[:2]):
            decision = decide(query(ENTRY.topic), shuffled, BALANCED)
            assert "".join(item.entry.id for item in decision.considered) == "abcde"

    def test_what_is_refused_stands_behind_what_may_be_taken(self) -> None:
        known = [candidate(ENTRY.topic, id="a"), candidate(ENTRY.topic, "x", id="b")]
        decision = decide(query(ENTRY.topic, "x"), known, MatchRules(floor="framework+topic+tags"))
        assert [item.entry.id for item in decision.considered] == ["b", "a"]


class TestRelated:
    def near(self, number: int, **changes: Any) -> Candidate:
        return candidate(f"virtual rows {number}", report=REPORT, id=f"n{number}", **changes)

    def test_at_most_three_the_likeliest_first(self) -> None:
        asked = query(
            "measuring heights", question="How does a virtual scroller measure the height of visible rows?"
        )
        decision = decide(asked, [self.near(number) for number in range(6)], STRICT)
        assert decision.match is None
        assert len(decision.related) == 3
        likelihoods = [item.likelihood for item in decision.related]
        assert likelihoods == sorted(likelihoods, reverse=True)
        assert likelihoods == sorted((it.likelihood for it in decision.considered), reverse=True)[:3]

    def test_none_is_a_skeleton_or_unlikely(self) -> None:
        asked = query(
            "measuring heights", question="How does a virtual scroller measure the height of visible rows?"
        )
        known = [
            self.near(1, origin="skeleton"),
            self.near(2),
            self.near(3),
            candidate("state machines", id="far"),
        ]
        decision = decide(asked, known, STRICT)
        assert sorted(item.id for item in decision.related) == ["n2", "n3"]

    def test_none_beside_an_answer(self) -> None:
        decision = decide(query(ENTRY.topic), [candidate(), self.near(1)], BALANCED)
        assert decision.match is not None
        assert decision.related == ()


def test_a_long_question_that_nothing_covers_is_answered_by_nothing() -> None:
    # Its words that are nowhere once added up to a likelihood of 0.99.
    words = [
        "We",
        "are",
        "migrating",
        "an",
        "older",
        "billing",
        "service",
        "and",
        "after",
        "upgrading",
        "yesterday",
        "our",
        "staging",
        "environment",
        "started",
        "to",
        "throw",
        "intermittent",
        "timeouts",
        "while",
        "the",
        "invoice",
        "exporter",
        "streams",
        "spreadsheets",
        "towards",
        "the",
        "customer",
        "bucket;",
        "colleagues",
        "suspect",
        "certificate",
        "rotation,",
        "proxy",
        "buffering",
        "or",
        "kernel",
        "conntrack",
        "exhaustion.",
        "Which",
        "knobs",
        "trace",
        "sockets?",
    ]
    known = [candidate("dynamic class names", report=REPORT), candidate("log messages", id="e2")]
    for most in range(5, len(words)):
        asked = query("tracing socket timeouts", question=" ".join(words[:most]))
        assert decide(asked, known, BALANCED).match is None
