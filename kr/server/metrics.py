"""``GET /metrics`` for Prometheus: what this server counts, and the totals of the knowledge base, which outlive it."""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

MCP_PATHS = ("/mcp", "/mcp/")
"""Where MCP is served: clients differ in the slash at the end, and a redirect loses the body of some."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counts of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "kr_http_request_seconds",
            "Time to answer a request.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        refused = "Requests refused because too many were at work."
        self.refused = Counter("kr_http_refused", refused, registry=self.registry)

    def count_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request under its route: a path of an attacker's making must not make a time series."""
        other = "/mcp" if scope["path"] in MCP_PATHS else "none"
        route = getattr(scope.get("route"), "path", None) or other
        method = scope["method"] if scope["method"] in {"GET", "POST", "DELETE"} else "other"
        self.requests.labels(method, route, str(status)).observe(seconds)

    def exposition(self, stats: Mapping[str, Any]) -> bytes:
        """Write what this server counted, then what ``App.stats`` counts."""
        totals = CollectorRegistry()
        totals.register(_Totals(stats))
        return generate_latest(self.registry) + generate_latest(totals)


class _Totals(Collector):
    """The totals in the database, which every process adds to."""

    def __init__(self, stats: Mapping[str, Any]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        stats = self._stats
        requests, sources = stats["requests"], stats["sources"]
        spared = "Tokens that answers from the cache spared: what finding out had cost, less the answer."
        charged = "Calls to sources that stories paid for."
        yield CounterMetricFamily("kr_tokens_spared", spared, value=stats["spared"]["tokens"])
        yield CounterMetricFamily("kr_calls_charged", charged, value=stats["spending"]["charged"])
        results = {"hit": requests["hits"], "miss": requests["misses"]}
        asked = {row["source"]: row["asked"] for row in sources}
        paused = {row["source"]: row["circuit"] == "open" for row in sources}
        entries = {**stats["index"]["by_status"], "archived": stats["archive"]["entries"]}
        lessons = {row["phase"]: row["lessons"] for row in stats["lessons"]["by_phase"]}
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        for family, name, label, what, values in (
            (counter, "kr_research_requests", "result", "Research requests answered.", results),
            (counter, "kr_requests", "status", "Requests of any mode.", requests["by_status"]),
            (counter, "kr_source_asked", "source", "How often a source was asked.", asked),
            (gauge, "kr_circuit_open", "source", "Whether a source is paused: it kept failing.", paused),
            (gauge, "kr_entries", "status", "Entries.", entries),
            (gauge, "kr_lessons", "phase", "Lessons.", lessons),
        ):
            metric = family(name, what, labels=[label])
            for of, value in values.items():
                metric.add_metric([of], value)
            yield metric
