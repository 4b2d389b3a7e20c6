"""The addresses of the page (SPEC 8). Every one answers with whole HTML; htmx takes the part that it needs."""

import time
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from kr.errors import EntryConflict, InvalidRequest, KrError, ReviewerNeeded
from kr.models import Writer, person
from kr.server.page import views
from kr.server.page.rendering import SAID, STATIC, render
from kr.server.page.session import COOKIE, SIGN_IN, SIGNED_IN_SECONDS, Sessions, name_of
from kr.server.service import Service

_CONTENT_SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Of every page: nothing inline, nothing from elsewhere, no frame around it. ``Guard`` adds those of every answer."""

_FORM = "application/x-www-form-urlencoded"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
View = Callable[[Any, views.Asked], views.Context]
Act = Callable[[Any, dict[str, str]], str]
ReviewAct = Callable[[Any, dict[str, str], Writer], views.Reviewed]

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
ACTS: dict[str, tuple[Act, str]] = {
    "/candidates": (views.settle, "/candidates"),
    "/restore": (views.restore, "/archive"),
    "/remove": (views.remove, "/entries"),
    "/lessons": (views.judge_lesson, "/lessons"),
}
"""What a form does, and the view that it leads back to."""

REVIEW_ACTS: dict[str, ReviewAct] = {
    "/review/approve": views.approve,
    "/review/reject": views.reject,
    "/review/rate": views.rate,
    "/review/save": views.save,
}
"""What forms do for a person who signed in to review, and for nobody else (SPEC 3.10)."""


class PageRoute(APIRoute):
    """Tells errors as a page; a caller of the interface gets them as JSON."""

    def get_route_handler(self) -> Handler:
        """Wrap the route's handler."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except KrError as error:
                return _problem(request, error.http_status, str(error))
            except HTTPException as error:
                return _problem(request, error.status_code, error.detail)

        return handled


def page_router(service: Service, *, may_sign_in: bool) -> APIRouter:
    """Build the routes of the page; the application's ``state.sessions`` are the ``Sessions``."""
    router = APIRouter(route_class=PageRoute)
    for path, view in VIEWS.items():
        router.get(path)(_show(service, path, view))
    for path, (act, back) in ACTS.items():
        router.post(path)(_act(service, act, back))
    for path, review_act in REVIEW_ACTS.items():
        router.post(path)(_review_act(service, review_act))
    _add_review(router)
    _add_entry(router, service)
    _add_static(router)
    if may_sign_in:
        _add_sign_in(router)
    return router


def _show(service: Service, path: str, view: View) -> Handler:
    template = f"{path.removeprefix('/').replace('-', '_') or 'overview'}.html"

    async def show(request: Request) -> Response:
        asked = views.Asked(request.query_params)
        context = await service.run(lambda: view(service.app, asked))
        return _page(request, template, context)

    return show


def _act(service: Service, act: Act, back: str) -> Handler:
    async def handle(request: Request) -> Response:
        form = await _own_form(request)
        try:
            said = await service.run(lambda: act(service.app, form))
        except EntryConflict as error:
            conflict = {"message": str(error), "form": form}
            return _page(request, "conflict.html", conflict, status=409)
        query = {name: form[name] for name in ("phase", "worth", "page") if form.get(name)}
        of = form.get("entry") or form.get("id") or ""
        return RedirectResponse(_back(request, back, said, of, **query), status_code=303)

    return handle


def _review_act(service: Service, act: ReviewAct) -> Handler:
    async def handle(request: Request) -> Response:
        form = await _own_form(request)
        name = _sessions(request).reviewer(request.cookies, time.time())
        if name is None:
            raise ReviewerNeeded(
                "Only a person who signed in to review may do this: the page Review says how."
            )
        try:
            done = await service.run(lambda: act(service.app, form, person(name)))
        except InvalidRequest as error:
            if act is not views.save:
                raise
            entry_id, asked = form.get("id", ""), views.Asked({})
            context = await service.run(lambda: views.entry(service.app, asked, entry_id))
            again = {"draft": form, "problem": str(error)}
            return _page(request, "entry.html", {**context, **again}, status=422)
        return RedirectResponse(_back(request, done.back, done.said, done.of), status_code=303)

    return handle


def _back(request: Request, path: str, said: str, of: str, **query: str) -> str:
    """Return the address that a form leads to, which says what was done."""
    by = _sessions(request).sign(request.cookies[COOKIE], f"{said} {of}")
    return f"{path}?{urlencode({**query, 'said': said, 'of': of, 'by': by})}"


async def _own_form(request: Request) -> dict[str, str]:
    """Read a form that this page gave to this browser; another one is refused.

    A browser sends it urlencoded, as the page's forms ask. Of multipart the sender chooses the charset, and with it what a
    text may be.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, f"A form is sent as {_FORM}.")
    async with request.form() as given:
        form = {name: value for name, value in given.items() if isinstance(value, str)}
    if not _sessions(request).has_signed(form.pop("form_token", ""), request.cookies):
        raise HTTPException(
            403, "This form is not from this page, or kr was restarted since. Go back, reload, try again."
        )
    return form


def _add_entry(router: APIRouter, service: Service) -> None:
    @router.get("/entries/{entry_id:path}")
    async def entry(request: Request, entry_id: str) -> Response:
        asked = views.Asked(request.query_params)
        context = await service.run(lambda: views.entry(service.app, asked, entry_id))
        return _page(request, "entry.html", context)


def _add_static(router: APIRouter) -> None:
    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "There is no such file.")
        file = STATIC[name]
        # The address changes with the content, see ``rendering``.
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(file.content, media_type=file.media_type, headers=kept)


def _add_sign_in(router: APIRouter) -> None:
    @router.get(SIGN_IN)
    async def ask(request: Request) -> Response:
        return _page(request, "sign_in.html", {"next": _local(request.query_params.get("next", "/"))})

    @router.post(SIGN_IN)
    async def sign_in(request: Request) -> Response:
        form = await _own_form(request)
        following = _local(form.get("next", "/"))
        session = _sessions(request).sign_in(form.get("token", ""), time.time())
        if session is None:
            return _page(request, "sign_in.html", {"next": following, "is_wrong": True}, status=403)
        response = RedirectResponse(following, status_code=303)
        _set_cookie(request, response, session, max_age=SIGNED_IN_SECONDS)
        return response

    @router.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        await _own_form(request)
        _sessions(request).sign_out(request.cookies)
        response = RedirectResponse(SIGN_IN, status_code=303)
        response.delete_cookie(COOKIE)
        return response


def _add_review(router: APIRouter) -> None:
    @router.post("/review/sign-in")
    async def sign_in(request: Request) -> Response:
        form, sessions = await _own_form(request), _sessions(request)
        following, name = _local(form.get("next", "/review")), name_of(form.get("name", ""))
        token = form.get("token", "")
        if not sessions.can_review:
            raise ReviewerNeeded("This server was started without KR_REVIEW_TOKEN: nobody can review here.")
        session = name and sessions.sign_in_to_review(token, name, request.cookies, time.time())
        if not session:
            why = "That is no name." if name is None else "That is not the token."
            context = {"status": 403, "message": f"{why} Go back, and try again."}
            return _page(request, "problem.html", context, status=403)
        request.cookies[COOKIE] = session
        response = RedirectResponse(_back(request, following, "reviewer", f"{name}"), status_code=303)
        is_signed_in = sessions.is_signed_in(request.cookies, time.time())
        _set_cookie(request, response, session, max_age=SIGNED_IN_SECONDS if is_signed_in else None)
        return response

    @router.post("/review/sign-out")
    async def sign_out(request: Request) -> Response:
        await _own_form(request)
        _sessions(request).stop_reviewing(request.cookies)
        return RedirectResponse(_back(request, "/review", "no-reviewer", ""), status_code=303)


def _local(address: str) -> str:
    """Return an address of this server, or its first page: a link must not lead elsewhere after signing in."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local else "/"


def _problem(request: Request, status: int, message: str) -> Response:
    return _page(request, "problem.html", {"status": status, "message": message}, status=status)


def _page(request: Request, template: str, context: views.Context, *, status: int = 200) -> Response:
    sessions, known = _sessions(request), request.cookies.get(COOKIE)
    session = known or sessions.new()
    html = render(
        template,
        request,
        said=_said(request),
        form_token=sessions.sign(session),
        is_signed_in=sessions.is_signed_in(request.cookies, time.time()),
        reviewer=sessions.reviewer(request.cookies, time.time()),
        can_review=sessions.can_review,
        **context,
    )
    response = HTMLResponse(html, status_code=status, headers=HEADERS)
    if session != known:
        _set_cookie(request, response, session)
    return response


def _said(request: Request) -> str | None:
    """What the action that led here says: none but this server can word it, or say it at all."""
    said, of, by = (request.query_params.get(name, "") for name in ("said", "of", "by"))
    is_ours = said in SAID and _sessions(request).has_signed(by, request.cookies, f"{said} {of}")
    return SAID[said].format(of=of[:200]) if is_ours else None


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def _set_cookie(request: Request, response: Response, session: str, *, max_age: int | None = None) -> None:
    is_secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, session, max_age=max_age, httponly=True, samesite="strict", secure=is_secure)
