"""The addresses of the page. Every one answers with whole HTML; htmx takes the part that it needs."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from kr.errors import InvalidRequest, KrError, ReviewerNeeded
from kr.models import Writer, person
from kr.server.access import COOKIE, REVIEW_SECONDS, SIGN_IN, USE_SECONDS, Session, Sessions
from kr.server.page import views
from kr.server.page.rendering import render
from kr.server.worker import Workers
from kr.text import one_line

_CONTENT_SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Of every page: nothing inline, nothing from elsewhere, no frame around it. ``Access`` adds those of every answer."""

_LONGEST_NAME = 60

Handler = Callable[[Request], Awaitable[Response]]
View = Callable[[Any, views.Params], views.Context]
Action = Callable[[Any, Mapping[str, str], Writer | None], views.Done]

VIEWS: dict[str, View] = {
    "/": views.overview,
    "/entries": views.entries,
    "/review": views.review,
    "/candidates": views.candidates,
    "/lessons": views.lessons,
    "/archive": views.archive,
    "/spending": views.spending,
    "/sources": views.sources,
}
ACTIONS: dict[str, Action] = {
    "/candidates": views.settle,
    "/restore": views.restore,
    "/remove": views.remove,
    "/lessons": views.judge_lesson,
    "/review/approve": partial(views.decide, is_approved=True),
    "/review/reject": partial(views.decide, is_approved=False),
    "/review/rate": views.rate,
    "/review/save": views.save,
}
"""What forms do. Those below ``/review/`` are for a person who signed in to review, and for nobody else."""


def page_router(workers: Workers, sessions: Sessions) -> APIRouter:
    page, router = _Page(workers, sessions), APIRouter()
    for path, view in VIEWS.items():
        template = f"{path.removeprefix('/') or 'overview'}.html"
        router.add_route(path, page.handler(partial(page.show, view, template)))
    for path, action in ACTIONS.items():
        router.add_route(path, page.handler(partial(page.act, path, action)), methods=["POST"])
    router.add_route("/entries/{entry_id:path}", page.handler(page.show_entry))
    router.add_route(SIGN_IN, page.handler(page.ask_to_sign_in))
    router.add_route(SIGN_IN, page.handler(page.sign_in), methods=["POST"])
    router.add_route("/sign-out", page.handler(page.sign_out), methods=["POST"])
    return router


class _Page:
    """The handlers of the page's addresses."""

    def __init__(self, workers: Workers, sessions: Sessions) -> None:
        self._workers = workers
        self._app = workers.app
        self._sessions = sessions

    def handler(self, handle: Handler) -> Handler:
        """Show errors as a page; a caller of the interface gets them as JSON."""

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except KrError as error:
                status, why = error.http_status, str(error)
            except HTTPException as error:
                status, why = error.status_code, error.detail
            return self._render(request, "problem.html", {"status": status, "why": why}, status=status)

        return handled

    async def show(self, view: View, template: str, request: Request) -> Response:
        params = views.Params(request.query_params)
        context = await self._workers.run(lambda: view(self._app, params))
        return self._render(request, template, context)

    async def show_entry(self, request: Request) -> Response:
        view = partial(views.entry, entry_id=request.path_params["entry_id"])
        return await self.show(view, "entry.html", request)

    async def act(self, path: str, action: Action, request: Request) -> Response:
        form = await _read_form(request)
        session = self._session(request)
        reviewer = session.reviewer if session else None
        if path.startswith("/review/") and reviewer is None:
            raise ReviewerNeeded("Only a person who signed in to review may do this: see the page Review.")
        writer = person(reviewer) if reviewer else None
        try:
            what, address = await self._workers.run(lambda: action(self._app, form, writer))
        except InvalidRequest as error:
            if action is not views.save:
                raise
            entry_id = form.get("id", "")
            context = await self._workers.run(lambda: views.entry(self._app, views.Params({}), entry_id))
            again = {**context, "draft": form, "problem": str(error)}
            return self._render(request, "entry.html", again, status=422)
        kept = {name: form[name] for name in ("phase", "page") if form.get(name)}
        return RedirectResponse(f"{address}?{urlencode({**kept, 'done': what})}", status_code=303)

    async def ask_to_sign_in(self, request: Request) -> Response:
        return self._render(request, "sign_in.html", {"next": request.query_params.get("next", "/")})

    async def sign_in(self, request: Request) -> Response:
        """Let who knows one of the two tokens go on: to use the server, or under a name to review."""
        form = await _read_form(request)
        name = one_line(form["name"], _LONGEST_NAME) if "name" in form else None
        session_id = self._sessions.sign_in(form.get("token", ""), name)
        if session_id is None:
            raise HTTPException(403, "That is not the token. Go back, and try again.")
        response = RedirectResponse(_local(form.get("next", "/")), status_code=303)
        response.set_cookie(
            COOKIE,
            session_id,
            max_age=USE_SECONDS if name is None else REVIEW_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        await _read_form(request)
        self._sessions.sign_out(request.cookies.get(COOKIE))
        response = RedirectResponse("/", status_code=303)
        response.delete_cookie(COOKIE)
        return response

    def _session(self, request: Request) -> Session | None:
        return self._sessions.get(request.cookies.get(COOKIE))

    def _render(
        self, request: Request, template: str, context: views.Context, *, status: int = 200
    ) -> Response:
        session = self._session(request)
        known = {
            "is_signed_in": session is not None,
            "reviewer": session.reviewer if session else None,
            "can_review": self._sessions.can_review,
        }
        html = render(template, request, **known, **context)
        return HTMLResponse(html, status_code=status, headers=_HEADERS)


async def _read_form(request: Request) -> dict[str, str]:
    """Read a form of this page. A browser says where a form comes from, and ``Access`` has refused other sites."""
    if "origin" not in request.headers:
        raise HTTPException(403, "A form is sent by a browser, from this page.")
    return dict(parse_qsl((await request.body()).decode(errors="replace"), keep_blank_values=True))


def _local(address: str) -> str:
    """Return an address of this server, or its first page: a link must not lead elsewhere after signing in."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local else "/"
