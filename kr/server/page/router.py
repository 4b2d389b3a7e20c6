"""The addresses of the page. Every one answers with whole HTML; htmx takes the part that it needs."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from kr.errors import EntryConflict, InvalidRequest, KrError, ReviewerNeeded
from kr.models import Writer, person
from kr.server.page import views
from kr.server.page.rendering import DONE, render
from kr.server.page.session import COOKIE, SIGN_IN, SIGNED_IN_SECONDS, Sessions, name_of
from kr.server.worker import Workers

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

_URLENCODED = "application/x-www-form-urlencoded"
_REVIEW = "/review"

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
    "/review/approve": views.approve,
    "/review/reject": views.reject,
    "/review/rate": views.rate,
    "/review/save": views.save,
}
"""What forms do. Those below ``/review/`` are for a person who signed in to review, and for nobody else."""


def page_router(workers: Workers, sessions: Sessions) -> APIRouter:
    page, router = _Page(workers, sessions), APIRouter()

    def add(path: str, method: str, handler: Handler) -> None:
        router.add_route(path, page.with_errors(handler), methods=[method])

    for path, view in VIEWS.items():
        add(path, "GET", partial(page.show, view, f"{path.removeprefix('/') or 'overview'}.html"))
    for path, action in ACTIONS.items():
        add(path, "POST", partial(page.act, path, action))
    add("/entries/{entry_id:path}", "GET", page.show_entry)
    add(SIGN_IN, "GET", page.ask_to_sign_in)
    add(SIGN_IN, "POST", page.sign_in)
    add("/sign-out", "POST", page.sign_out)
    add("/review/sign-out", "POST", page.stop_reviewing)
    return router


class _Page:
    """The handlers of the page's addresses."""

    def __init__(self, workers: Workers, sessions: Sessions) -> None:
        self._workers = workers
        self._app = workers.app
        self._sessions = sessions

    def with_errors(self, handler: Handler) -> Handler:
        """Show errors as a page; a caller of the interface gets them as JSON."""

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except KrError as error:
                return self._problem(request, error.http_status, str(error))
            except HTTPException as error:
                return self._problem(request, error.status_code, error.detail)

        return handle

    async def show(self, view: View, template: str, request: Request) -> Response:
        params = views.Params(request.query_params)
        context = await self._workers.run(lambda: view(self._app, params))
        return self._render(request, template, context)

    async def show_entry(self, request: Request) -> Response:
        view = partial(views.entry, entry_id=request.path_params["entry_id"])
        return await self.show(view, "entry.html", request)

    async def act(self, path: str, action: Action, request: Request) -> Response:
        form = await self._read_form(request)
        reviewer = self._sessions.get(_id_of(request)).reviewer
        if path.startswith(f"{_REVIEW}/") and reviewer is None:
            raise ReviewerNeeded(
                "Only a person who signed in to review may do this: the page Review says how."
            )
        writer = person(reviewer) if reviewer else None
        try:
            done = await self._workers.run(lambda: action(self._app, form, writer))
        except EntryConflict as error:
            return self._render(request, "conflict.html", {"message": str(error), "form": form}, status=409)
        except InvalidRequest as error:
            if action is not views.save:
                raise
            entry_id = form.get("id", "")
            context = await self._workers.run(lambda: views.entry(self._app, views.Params({}), entry_id))
            again = {**context, "draft": form, "problem": str(error)}
            return self._render(request, "entry.html", again, status=422)
        kept = {name: form[name] for name in ("phase", "worth", "page") if form.get(name)}
        return self._redirect(_id_of(request), done, **kept)

    async def ask_to_sign_in(self, request: Request) -> Response:
        address = _local(request.query_params.get("next", "/"))
        return self._render(request, "sign_in.html", {"next": address})

    async def sign_in(self, request: Request) -> Response:
        """Let who knows one of the two tokens go on: to use the server, or under a name to review."""
        form = await self._read_form(request)
        name = name_of(form["name"]) if "name" in form else None
        session_id = self._sessions.sign_in(_id_of(request), form.get("token", ""), name)
        if session_id is None:
            why = "That is no name" if "name" in form and name is None else "That is not the token"
            raise HTTPException(403, f"{why}. Go back, and try again.")
        response = RedirectResponse(_local(form.get("next", "/")), status_code=303)
        return self._with_cookie(request, response, session_id)

    async def sign_out(self, request: Request) -> Response:
        await self._read_form(request)
        self._sessions.sign_out(_id_of(request))
        response = RedirectResponse(SIGN_IN, status_code=303)
        response.delete_cookie(COOKIE)
        return response

    async def stop_reviewing(self, request: Request) -> Response:
        await self._read_form(request)
        self._sessions.stop_reviewing(_id_of(request))
        return self._redirect(_id_of(request), views.Done("no-reviewer", "", _REVIEW))

    async def _read_form(self, request: Request) -> dict[str, str]:
        """Read a form that this page gave to this browser; another one is refused.

        A browser sends it urlencoded, as the page's forms ask. Of multipart the sender chooses the charset, and with it what
        a text may be.
        """
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _URLENCODED:
            raise HTTPException(415, f"A form is sent as {_URLENCODED}.")
        async with request.form() as given:
            form = {name: value for name, value in given.items() if isinstance(value, str)}
        if not self._sessions.has_signed(form.pop("form_token", ""), _id_of(request)):
            raise HTTPException(
                403, "This form is not from this page, or kr was restarted since. Go back, reload, try again."
            )
        return form

    def _redirect(self, session_id: str, done: views.Done, **query: str) -> Response:
        """Lead to the view that says what was done; the signature shows that this server says so."""
        signature = self._sessions.sign(session_id, f"{done.what} {done.of}")
        query |= {"said": done.what, "of": done.of, "by": signature}
        return RedirectResponse(f"{done.address}?{urlencode(query)}", status_code=303)

    def _said(self, request: Request) -> str | None:
        what, of, by = (request.query_params.get(name, "") for name in ("said", "of", "by"))
        is_ours = what in DONE and self._sessions.has_signed(by, _id_of(request), f"{what} {of}")
        return DONE[what].format(of=of[:200]) if is_ours else None

    def _problem(self, request: Request, status: int, message: str) -> Response:
        return self._render(request, "problem.html", {"status": status, "message": message}, status=status)

    def _render(
        self, request: Request, template: str, context: views.Context, *, status: int = 200
    ) -> Response:
        known_id = _id_of(request)
        session_id, session = known_id or self._sessions.new_id(), self._sessions.get(known_id)
        html = render(
            template,
            request,
            said=self._said(request),
            form_token=self._sessions.sign(session_id),
            is_signed_in=session.is_signed_in,
            reviewer=session.reviewer,
            can_review=self._sessions.can_review,
            **context,
        )
        response = HTMLResponse(html, status_code=status, headers=_HEADERS)
        return response if known_id else self._with_cookie(request, response, session_id)

    def _with_cookie(self, request: Request, response: Response, session_id: str) -> Response:
        response.set_cookie(
            COOKIE,
            session_id,
            max_age=SIGNED_IN_SECONDS if self._sessions.get(session_id).is_signed_in else None,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response


def _id_of(request: Request) -> str:
    return request.cookies.get(COOKIE, "")


def _local(address: str) -> str:
    """Return an address of this server, or its first page: a link must not lead elsewhere after signing in."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local else "/"
