"""The interface of ``kr serve``: the operations of kr as HTTP (SPEC 8).

Bodies are the requests of F1 and U5 as the command line takes them, answers are their envelopes. What is no envelope
and no success is ``application/problem+json``.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.exceptions import HTTPException
from starlette.routing import Route

from kr import __version__
from kr.app import App
from kr.envelopes import Envelope, RateResults, RecordEnvelope, ResearchEnvelope, SaveEnvelope, save_failure
from kr.errors import InvalidRequest, KrError, Overloaded
from kr.fields import read_document
from kr.models import EntryStatus, IfUnsure, to_plain
from kr.server.guard import MAX_BODY, PROBLEM, RETRY_AFTER, Guard, Policy, defect, problem
from kr.server.mcp import InjectEnvelope, create_mcp_server
from kr.server.metrics import CONTENT_TYPE, MCP_PATHS, Metrics
from kr.server.page.router import page_router
from kr.server.schemas import (
    Schema,
    finding_request,
    inject_request,
    rating_request,
    record_request,
    research_request,
)
from kr.server.service import Service

Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="Pass over so many.")]
MaxTokens = Annotated[int | None, Query(ge=1, le=100_000, description="Of a report in the answer.")]
Unsure = Annotated[
    IfUnsure | None, Query(description="Where nothing is served by itself; default: what the request says.")
]
Framework = Annotated[str | None, Query(max_length=200, description="Entries of this framework alone.")]

SUMMARY = "A shared knowledge cache for fleets of AI coding agents."
_IDLE_SESSION_SECONDS = 30 * 60
_MAX_SESSIONS = 1000


def create_http_app(service: Service, policy: Policy) -> Guard:
    """Build the application over one service, with what stands before it."""
    metrics = Metrics()
    sessions = StreamableHTTPSessionManager(
        create_mcp_server(service, note=metrics.note_tool),
        max_request_body_size=MAX_BODY,
        session_idle_timeout=_IDLE_SESSION_SECONDS,
        max_sessions=_MAX_SESSIONS,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    api = FastAPI(
        title="kr",
        version=__version__,
        summary=SUMMARY,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers=_HANDLERS,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if policy.token is not None else [],
        responses=dict.fromkeys((401, 403, 408, 413, 422, 429, 500, 503), _PROBLEM),
    )
    api.include_router(_requests(service))
    api.include_router(_knowledge(service))
    api.include_router(_operation(service, metrics))
    carrier = StreamableHTTPASGIApp(sessions)
    for path in MCP_PATHS:
        api.router.routes.append(Route(path, carrier, include_in_schema=False))
    api.include_router(page_router(service, may_sign_in=policy.token is not None), include_in_schema=False)
    guard = Guard(api, policy=policy, metrics=metrics)
    api.state.sessions = guard.sessions
    return guard


def _json_body(schema: Schema, *, required: bool = True) -> dict[str, Any]:
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


_PROBLEM: dict[str, Any] = {
    "description": "What is wrong, in one sentence.",
    "content": {
        PROBLEM: {
            "schema": {
                "type": "object",
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "code": {"type": "string"},
                },
                "required": ["type", "title", "status", "detail"],
            }
        }
    },
}


def _requests(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["requests"])
    failed: dict[int | str, dict[str, Any]] = {
        422: {
            "model": Envelope,
            "description": "The envelope of a failure: every bad field is named. A problem, for the query.",
            "content": _PROBLEM["content"],
        }
    }

    @router.post(
        "/research",
        response_model=ResearchEnvelope | InjectEnvelope,
        responses=failed,
        openapi_extra=_json_body(research_request()),
    )
    async def research(
        request: Request,
        *,
        include_report: bool = False,
        max_tokens: MaxTokens = None,
        if_unsure: Unsure = None,
    ) -> Response:
        """Answer a request from the cache, offer what may answer, or research it once."""
        data = await request.body()
        overrides = {} if if_unsure is None else {"if_unsure": if_unsure}
        envelope = await service.run(
            lambda: service.app.research.document(
                data, include_report=include_report, max_tokens=max_tokens, overrides=overrides
            )
        )
        return _enveloped(to_plain(envelope))

    @router.post(
        "/findings",
        response_model=SaveEnvelope,
        responses={422: {"model": SaveEnvelope, "description": "Every bad field is named."}},
        openapi_extra=_json_body(finding_request()),
    )
    async def save(request: Request) -> Response:
        """Keep what an agent found out and proved."""
        data = await request.body()
        return _enveloped(await service.run(lambda: _saved(service.app, data)))

    @router.post(
        "/entries/{entry_id}/ratings",
        response_model=RateResults,
        responses={404: _PROBLEM},
        openapi_extra=_json_body(rating_request()),
    )
    async def rate(entry_id: str, request: Request) -> Response:
        """Note whether a report worked."""
        data = await request.body()
        rated = await service.run(lambda: to_plain(service.app.rate_report(entry_id, read_document(data))))
        return JSONResponse(rated)

    @router.post(
        "/lessons/inject",
        response_model=InjectEnvelope,
        responses=failed,
        openapi_extra=_json_body(inject_request()),
    )
    async def inject(request: Request) -> Response:
        """Give the lessons of a phase, for an agent that is about to start."""
        data = await request.body()
        envelope = await service.run(lambda: service.app.research.inject(data))
        return _enveloped(to_plain(envelope))

    @router.post(
        "/lessons/record",
        response_model=RecordEnvelope,
        responses={422: {"model": RecordEnvelope, "description": "The lessons file can't be written."}},
        openapi_extra=_json_body(record_request(), required=False),
    )
    async def record(request: Request) -> Response:
        """Record what an agent's return teaches."""
        data = await request.body()
        return _enveloped(await service.run(lambda: to_plain(service.app.record_lessons(data))))

    return router


def _saved(app: App, data: bytes) -> dict[str, Any]:
    try:
        return to_plain(app.save_finding(read_document(data)))
    except InvalidRequest as error:
        return to_plain(save_failure(error.fields))


def _knowledge(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["knowledge"])
    unknown: dict[int | str, dict[str, Any]] = {404: _PROBLEM}

    @router.get("/entries")
    async def entries(
        framework: Framework = None,
        status: EntryStatus | None = None,
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> dict[str, Any]:
        """List live entries, the last accessed first."""
        return await service.run(
            lambda: service.app.entries(framework=framework, status=status, limit=limit, offset=offset)
        )

    @router.get("/entries/{entry_id}", responses=unknown)
    async def entry(entry_id: str, *, report: bool = False) -> dict[str, Any]:
        """Tell all about one entry; with its report where it is asked for."""
        return await service.run(lambda: service.app.entry(entry_id, report=report))

    @router.get("/entries/{entry_id}/report", responses={**unknown, 200: {"content": {"text/markdown": {}}}})
    async def report(entry_id: str) -> Response:
        """Give the report of one entry."""
        text = await service.run(lambda: service.app.entry(entry_id, report=True)["report"])
        if text is None:
            raise HTTPException(404, f"{entry_id}: its report is lost")
        return Response(text, media_type="text/markdown")

    @router.get("/search")
    async def search(
        q: Annotated[str, Query(max_length=1000)], framework: Framework = None, limit: Limit = 10
    ) -> dict[str, Any]:
        """Find entries and lessons by words, the best first, each with the passage."""
        return await service.run(lambda: service.app.search_all(q, framework=framework, limit=limit))

    @router.get("/stats")
    async def stats() -> dict[str, Any]:
        """Count what the cache spares, costs and holds."""
        return await service.run(service.app.stats)

    return router


def _operation(service: Service, metrics: Metrics) -> APIRouter:
    router = APIRouter(tags=["operation"])

    @router.get("/healthz")
    async def health() -> dict[str, str]:
        """Tell that the server is up."""
        return {"status": "ok", "version": __version__}

    @router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
    async def exposition() -> Response:
        """Give what Prometheus collects."""
        stats = await service.run(service.app.stats)
        return Response(metrics.exposed(stats), headers={"Content-Type": CONTENT_TYPE})

    return router


def _enveloped(envelope: dict[str, Any]) -> Response:
    return JSONResponse(envelope, status_code=422 if envelope["status"] == "failure" else 200)


async def _defect(_request: Request, error: Exception) -> Response:
    return defect(error)


async def _kr_error(_request: Request, error: Any) -> Response:
    headers = RETRY_AFTER if isinstance(error, Overloaded) else None
    return problem(error.http_status, str(error), code=error.code, headers=headers)


async def _http_error(_request: Request, error: Any) -> Response:
    return problem(error.status_code, error.detail, headers=error.headers)


async def _invalid(_request: Request, error: Any) -> Response:
    told = "; ".join(f"{'.'.join(map(str, item['loc'][1:]))}: {item['msg']}" for item in error.errors())
    return problem(422, told, code="validation_error")


_HANDLERS: dict[int | type[Exception], Any] = {
    KrError: _kr_error,
    HTTPException: _http_error,
    RequestValidationError: _invalid,
    Exception: _defect,
}
