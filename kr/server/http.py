"""The interface of ``kr serve``: the operations of kr over HTTP, MCP, the page, and what Prometheus collects.

Bodies are the requests of F1 and U5 as the command line takes them, answers are their envelopes. What is no envelope
and no success is ``application/problem+json``.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from kr import __version__, schemas
from kr.errors import KrError, Overloaded
from kr.models import IfUnsure, ShownStatus, to_plain
from kr.requests import read_document
from kr.server.access import MAX_BODY, PROBLEM, Access, Policy, Sessions, problem
from kr.server.mcp import create_mcp_server
from kr.server.page import page_router
from kr.server.worker import Workers

Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="Pass over so many.")]
MaxTokens = Annotated[int | None, Query(ge=1, le=100_000, description="Of a report in the answer.")]
Unsure = Annotated[
    IfUnsure | None, Query(description="Where nothing is served; default: as the request says.")
]
Framework = Annotated[str | None, Query(max_length=200, description="Entries of this framework alone.")]
Words = Annotated[str, Query(max_length=1000)]

_MCP_PATHS = ("/mcp", "/mcp/")
"""Where MCP is served: clients differ in the slash at the end, and a redirect loses the body of some."""
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
_PROBLEM: dict[str, Any] = {
    "description": "What is wrong, in one sentence: RFC 9457.",
    "content": {PROBLEM: {"schema": {"type": "object", "required": ["type", "title", "status", "detail"]}}},
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {404: _PROBLEM}


def create_http_app(workers: Workers, policy: Policy) -> Access:
    """Build the application, with what stands before it."""
    sessions = Sessions(policy)
    mcp = StreamableHTTPSessionManager(
        create_mcp_server(workers),
        # kr keeps nothing between two calls, so that any server of a fleet answers any of them.
        stateless=True,
        max_request_body_size=MAX_BODY,
    )

    # No GET of /mcp: kr says nothing to a client but in answer to its calls.
    carrier, methods = StreamableHTTPASGIApp(mcp), ["POST", "DELETE"]
    api = FastAPI(
        routes=[Route(path, carrier, methods=methods, include_in_schema=False) for path in _MCP_PATHS],
        title="kr",
        version=__version__,
        summary="A shared knowledge cache for fleets of AI coding agents.",
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: mcp.run(),
        exception_handlers=dict.fromkeys(
            (KrError, HTTPException, RequestValidationError, Exception), _failed
        ),
        dependencies=[Depends(HTTPBearer(auto_error=False))] if policy.token is not None else [],
        responses=dict.fromkeys((401, 403, 413, 422, 429, 500, 503), _PROBLEM),
    )
    api.include_router(_requests(workers))
    api.include_router(_knowledge(workers))

    @api.get("/healthz")
    async def health() -> dict[str, str]:
        """Say that the server is up."""
        return {"status": "ok", "version": __version__}

    @api.get("/metrics", response_class=PlainTextResponse)
    async def exposition() -> Response:
        """Give what Prometheus collects: the totals of the knowledge base."""
        totals = _Totals(await workers.run(workers.app.stats))
        return Response(generate_latest(totals), media_type=_EXPOSITION)

    api.mount("/static", StaticFiles(packages=[("kr.server", "static")]))
    api.include_router(page_router(workers, sessions), include_in_schema=False)
    return Access(api, policy, sessions)


class _Totals(Collector):
    """The totals in the database, which every process adds to, of what ``App.stats`` counts."""

    def __init__(self, stats: Mapping[str, Any]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        stats = self._stats
        requests, sources = stats["requests"], stats["sources"]
        results = {"hit": requests["hits"], "miss": requests["misses"]}
        asked = {row["source"]: row["asked"] for row in sources}
        paused = {row["source"]: row["circuit"] == "open" for row in sources}
        entries = {**stats["index"]["by_status"], "archived": stats["archive"]["entries"]}
        lessons = {row["phase"]: row["lessons"] for row in stats["lessons"]["by_phase"]}
        spared, charged = {"": stats["spared"]["tokens"]}, {"": stats["spending"]["charged"]}
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        for family, name, label, what, values in (
            (counter, "kr_tokens_spared", "", "What finding out had cost, less the answers.", spared),
            (counter, "kr_calls_charged", "", "Calls to sources that stories paid for.", charged),
            (counter, "kr_research_requests", "result", "Research requests answered.", results),
            (counter, "kr_requests", "status", "Requests of any mode.", requests["by_status"]),
            (counter, "kr_source_asked", "source", "How often a source was asked.", asked),
            (gauge, "kr_circuit_open", "source", "Whether a source is paused: it kept failing.", paused),
            (gauge, "kr_entries", "status", "Entries.", entries),
            (gauge, "kr_lessons", "phase", "Lessons.", lessons),
        ):
            metric = family(name, what, labels=[label] if label else [])
            for of, value in values.items():
                metric.add_metric([of] if label else [], value)
            yield metric


def _takes(schema: schemas.Schema) -> dict[str, Any]:
    """Describe an operation that reads its own body, so that every bad field is named in its own envelope."""
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"openapi_extra": {"requestBody": body}}


def _requests(workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1")
    app = workers.app

    async def answer(request: Request, work: Callable[[bytes], Any]) -> Response:
        data = await request.body()
        envelope = to_plain(await workers.run(lambda: work(data)))
        return JSONResponse(envelope, status_code=422 if envelope["status"] == "failure" else 200)

    @router.post("/research", **_takes(schemas.research_request()))
    async def research(
        request: Request,
        *,
        include_report: bool = False,
        max_tokens: MaxTokens = None,
        if_unsure: Unsure = None,
    ) -> Response:
        """Answer a request from the cache, offer what may answer, or research it once."""
        overrides = {} if if_unsure is None else {"if_unsure": if_unsure}
        work = partial(
            app.research.document, include_report=include_report, max_tokens=max_tokens, overrides=overrides
        )
        return await answer(request, work)

    @router.post("/findings", **_takes(schemas.finding_request()))
    async def save(request: Request) -> Response:
        """Keep what an agent found out and proved."""
        return await answer(request, app.save_finding)

    @router.post("/lessons/inject", **_takes(schemas.inject_request()))
    async def inject(request: Request) -> Response:
        """Give the lessons of a phase, for an agent that is about to start."""
        return await answer(request, app.research.inject)

    @router.post("/lessons/record", **_takes(schemas.record_request()))
    async def record(request: Request) -> Response:
        """Record what an agent's return teaches."""
        return await answer(request, app.record_lessons)

    @router.post("/entries/{entry_id}/ratings", responses=_UNKNOWN, **_takes(schemas.RATING))
    async def rate(entry_id: str, request: Request) -> Response:
        """Note whether a report worked."""
        data = await request.body()
        rated = await workers.run(lambda: app.rate_report(entry_id, read_document(data)))
        return JSONResponse(to_plain(rated))

    return router


def _knowledge(workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1")
    app = workers.app

    @router.get("/entries")
    async def entries(
        framework: Framework = None,
        status: ShownStatus | None = None,
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> dict[str, Any]:
        """List live entries, the last accessed first."""
        page = {"framework": framework, "status": status, "limit": limit, "offset": offset}
        return await workers.run(lambda: app.entries(**page))

    @router.get("/entries/{entry_id}", responses=_UNKNOWN)
    async def entry(entry_id: str, *, report: bool = False) -> dict[str, Any]:
        """Give all about one entry, with its report where it is asked for."""
        return await workers.run(lambda: app.entry(entry_id, report=report))

    @router.get("/entries/{entry_id}/report", responses={**_UNKNOWN, 200: {"content": {"text/markdown": {}}}})
    async def report(entry_id: str) -> Response:
        """Give the report of one entry."""
        text = await workers.run(lambda: app.entry(entry_id, report=True)["report"])
        if text is None:
            raise HTTPException(404, f"{entry_id}: its report is lost")
        return Response(text, media_type="text/markdown")

    @router.get("/search")
    async def search(q: Words, framework: Framework = None, limit: Limit = 10) -> dict[str, Any]:
        """Find entries and lessons by words, the best first, each with the passage."""
        return await workers.run(lambda: app.search_all(q, framework=framework, limit=limit))

    @router.get("/stats")
    async def stats() -> dict[str, Any]:
        """Count what the cache spares, costs and holds."""
        return await workers.run(app.stats)

    return router


async def _failed(_request: Request, error: Exception) -> Response:
    """Make the answer for an error that is no envelope."""
    match error:
        case KrError():
            headers = {"Retry-After": "1"} if isinstance(error, Overloaded) else None
            return problem(error.http_status, str(error), headers)
        case HTTPException():
            return problem(error.status_code, error.detail, error.headers)
        case RequestValidationError():
            wrong = (f"{'.'.join(map(str, item['loc'][1:]))}: {item['msg']}" for item in error.errors())
            return problem(422, "; ".join(wrong))
    return problem(500, f"unexpected {type(error).__name__}; this is a bug in kr, and its log has more")
