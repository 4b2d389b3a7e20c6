"""The interface of ``kr serve``: the operations of kr as HTTP (SPEC 8).

Bodies are the requests of F1 and U5 as the command line takes them, answers are their envelopes. What is no envelope
and no success is ``application/problem+json``.
"""

import importlib
import importlib.util
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from kr import __version__
from kr.errors import KrError
from kr.server.guard import problem
from kr.server.service import Service

Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="Pass over so many.")]
Framework = Annotated[str | None, Query(max_length=200, description="Entries of this framework alone.")]


def create_http_app(service: Service) -> FastAPI:
    """Build the application over one service."""
    api = FastAPI(title="kr", version=__version__, summary=SUMMARY, docs_url=None, redoc_url=None)
    api.state.service = service
    api.include_router(_requests(service))
    api.include_router(_knowledge(service))
    api.add_exception_handler(KrError, _kr_error)
    api.add_exception_handler(HTTPException, _http_error)
    api.add_exception_handler(RequestValidationError, _invalid)
    _mount_page(api, service)
    return api


SUMMARY = "A shared knowledge cache for fleets of AI coding agents."


def _requests(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["requests"])

    @router.post("/research")
    async def research(request: Request, *, include_report: bool = False) -> Response:
        """Answer a request of F1 from the cache, or research it once."""
        data = await request.body()
        envelope = await service.run(
            lambda: service.app.requests.research_document(data, include_report=include_report)
        )
        return _enveloped(envelope.plain())

    @router.post("/lessons/inject")
    async def inject(request: Request) -> Response:
        """Give the lessons of a phase, for an agent that is about to start."""
        data = await request.body()
        envelope = await service.run(lambda: service.app.requests.inject_document(data))
        return _enveloped(envelope.plain())

    @router.post("/lessons/record")
    async def record(request: Request) -> Response:
        """Record what an agent's return teaches."""
        data = await request.body()
        return _enveloped(await service.run(lambda: service.app.record_lessons(data).plain()))

    return router


def _knowledge(service: Service) -> APIRouter:
    router = APIRouter(tags=["knowledge"])

    @router.get("/v1/entries")
    async def entries(framework: Framework = None, limit: Limit = 100, offset: Offset = 0) -> dict[str, Any]:
        """List live entries, the last accessed first."""
        return await service.run(
            lambda: service.app.catalog.page(framework=framework, limit=limit, offset=offset)
        )

    @router.get("/v1/entries/{entry_id}")
    async def entry(entry_id: str) -> dict[str, Any]:
        """Tell all about one entry."""
        return await service.run(lambda: service.app.catalog.entry(entry_id))

    @router.get("/v1/entries/{entry_id}/report")
    async def report(entry_id: str) -> Response:
        """Give the report of one entry."""
        text = await service.run(lambda: service.app.catalog.entry(entry_id, report=True)["report"])
        if text is None:
            raise HTTPException(404, f"{entry_id}: its report is lost")
        return Response(text, media_type="text/markdown")

    @router.get("/v1/search")
    async def search(q: Annotated[str, Query(max_length=1000)], limit: Limit = 10) -> dict[str, Any]:
        """Find entries by words, the best first."""
        return {"entries": await service.run(lambda: service.app.catalog.search(q, limit=limit))}

    @router.get("/v1/stats")
    async def stats() -> dict[str, Any]:
        """Count what the cache spares, costs and holds."""
        return await service.run(service.app.stats)

    @router.get("/healthz")
    async def health() -> dict[str, str]:
        """Tell that the server is up."""
        return {"status": "ok", "version": __version__}

    return router


def _mount_page(api: FastAPI, service: Service) -> None:
    """Add the page for people, where it is installed: ``kr.server.page.page_router(service)``."""
    if importlib.util.find_spec("kr.server.page") is not None:
        page = importlib.import_module("kr.server.page")
        api.include_router(page.page_router(service), include_in_schema=False)


def _enveloped(envelope: dict[str, Any]) -> Response:
    return JSONResponse(envelope, status_code=422 if envelope["status"] == "failure" else 200)


async def _kr_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    assert isinstance(error, KrError)  # noqa: S101 - for the type checker: it is registered for these
    return problem(error.http_status, str(error), code=error.code)


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the same
    assert isinstance(error, HTTPException)  # noqa: S101 - the same
    return problem(error.status_code, error.detail, headers=error.headers)


async def _invalid(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the same
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the same
    told = "; ".join(f"{'.'.join(map(str, item['loc'][1:]))}: {item['msg']}" for item in error.errors())
    return problem(422, told, code="validation_error")
