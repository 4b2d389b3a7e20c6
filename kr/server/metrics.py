"""``GET /metrics``: what a server counts itself, and what the knowledge base has counted, for Prometheus (SPEC 8)."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

MCP_PATHS = ("/mcp", "/mcp/")
"""Where MCP is served: clients differ in the slash at the end, and a redirect loses the body of some."""

M = TypeVar("M", CounterMetricFamily, GaugeMetricFamily)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counts of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "kr_http_request_seconds",
            "Time to answer a request.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.tools = Histogram(
            "kr_mcp_tool_seconds",
            "Time to answer a tool call.",
            ("tool", "outcome"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refused = Counter(
            "kr_http_refused", "Requests refused because too many were at work.", registry=self.registry
        )

    def note_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request under its route: a path of an attacker's making must not make a time series."""
        route = getattr(scope.get("route"), "path", None) or (
            "/mcp" if scope["path"] in MCP_PATHS else "none"
        )
        method = scope["method"] if scope["method"] in {"GET", "POST", "DELETE"} else "other"
        self.seconds.labels(method, route, str(status)).observe(seconds)

    def note_tool(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a tool call."""
        self.tools.labels(tool, outcome).observe(seconds)

    def exposed(self, stats: Mapping[str, Any]) -> bytes:
        """Write what this server counted, then what ``App.stats`` tells of the whole knowledge base."""
        of_base = CollectorRegistry()
        of_base.register(_KnowledgeBase(stats))
        return generate_latest(self.registry) + generate_latest(of_base)


class _KnowledgeBase(Collector):
    """The totals in the database: they count what every process did, and outlive them all."""

    def __init__(self, stats: Mapping[str, Any]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        """Give the families, as prometheus_client asks for them."""
        stats = self._stats
        requests, sources = stats["requests"], stats["sources"]
        results = {"hit": requests["hits"], "miss": requests["misses"]}
        yield _labelled(
            CounterMetricFamily(
                "kr_research_requests", "Research requests that were answered.", labels=["result"]
            ),
            results,
        )
        yield _labelled(
            CounterMetricFamily("kr_requests", "Requests of any mode.", labels=["status"]),
            requests["by_status"],
        )
        yield CounterMetricFamily(
            "kr_tokens_spared",
            "Tokens that answers from the cache spared: what finding out had cost, less the answer.",
            value=stats["spared"]["tokens"],
        )
        charged = stats["spending"]["charged"]
        yield CounterMetricFamily(
            "kr_calls_charged", "Calls to sources that stories paid for.", value=charged
        )
        asked = {row["source"]: row["asked"] for row in sources}
        yield _labelled(
            CounterMetricFamily("kr_source_asked", "How often a source was asked.", labels=["source"]), asked
        )
        opened = {row["source"]: row["circuit"] == "open" for row in sources}
        yield _labelled(
            GaugeMetricFamily(
                "kr_circuit_open", "Whether a source is paused: it kept failing.", labels=["source"]
            ),
            opened,
        )
        entries = {**stats["index"]["by_status"], "archived": stats["archive"]["entries"]}
        yield _labelled(GaugeMetricFamily("kr_entries", "Entries.", labels=["status"]), entries)
        lessons = {row["phase"]: row["lessons"] for row in stats["lessons"]["by_phase"]}
        yield _labelled(GaugeMetricFamily("kr_lessons", "Lessons.", labels=["phase"]), lessons)


def _labelled(family: M, values: Mapping[str, float]) -> M:
    for of, value in values.items():
        family.add_metric([of], value)
    return family
