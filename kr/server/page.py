"""The page for people: what each view shows, what each form does, and their addresses.

Every address answers with whole HTML, and needs no script. Views and forms are the operations of ``kr.app`` made into what templates read.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_args
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from kr import stats as numbers
from kr.app import App
from kr.errors import FieldError, InvalidRequest, KrError, ReviewerNeeded, UnknownEntry
from kr.models import ShownStatus, Writer, person
from kr.server.access import COOKIE, SESSION_SECONDS, SIGN_IN, Session, Sessions
from kr.server.rendering import bar_chart, rate_chart, render, report_html
from kr.server.worker import Workers
from kr.text import one_line

PER_PAGE = 50

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Of every page: no script, nothing from elsewhere, no frame around it. ``Access`` adds those of every answer."""

_LONGEST_NAME = 60
_MOST_FOUND = 200
_STATUSES: tuple[ShownStatus, ...] = get_args(ShownStatus)
_REASONS = ("lru", "age", "manual")
_LESSON_MARKS = {
    "retire": ("retired_at", True),
    "bring-back": ("retired_at", False),
    "pin": ("pinned_at", True),
    "unpin": ("pinned_at", False),
}
"""What a person may say of a lesson, by the form's word: the mark, and whether it is set."""

Context = dict[str, Any]
Form = Mapping[str, str]
Done = tuple[str, str]
"""What a form did, as ``base.html`` has a message for it, and the address to go on with."""
Handler = Callable[[Request], Awaitable[Response]]
View = Callable[[App, "Params"], Context]
Action = Callable[[App, Form, Writer | None], Done]


class Params:
    """The query of an address. A value that makes no sense is as if it were not there: people edit addresses."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.page = self.whole("page") or 1
        self.offset = (self.page - 1) * PER_PAGE

    def text(self, name: str) -> str:
        return self._values.get(name, "").strip()[:200]

    def one_of(self, name: str, allowed: Sequence[str]) -> Any:
        return value if (value := self.text(name)) in allowed else ""

    def whole(self, name: str) -> int:
        """Return a number of at most six digits; 0 where it is none."""
        text = self.text(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0

    def paging(self, total: int) -> Context:
        return {"total": total, "page": self.page, "pages": max(-(-total // PER_PAGE), 1)}


def overview(app: App, _params: Params) -> Context:
    """Show how the last thirty days went, what waits for a person, and what the cache holds."""
    stats, course = app.stats(), numbers.last_days(app.store, app.clock())
    return {
        "stats": stats,
        "course": course,
        "rate_chart": rate_chart(course["days"]),
        "tokens_chart": bar_chart(course["days"], hit="spared_tokens"),
        "questions_chart": bar_chart(course["days"], hit="hits", miss="misses"),
        "open_needs": numbers.open_needs(app.store, limit=0)[1],
        "waiting": app.findings.review(),
        "open_circuits": [row for row in stats["sources"] if row["circuit"] == "open"],
    }


def entries(app: App, params: Params) -> Context:
    """List live entries, found by words or the last used first."""
    words, framework, status = params.text("q"), params.text("framework"), params.one_of("status", _STATUSES)
    first = params.offset
    if words:
        found = app.catalog.search(words, framework=framework or None, limit=_MOST_FOUND)
        kept = [row for row in found if status in ("", row["status"])]
        rows, total = kept[first : first + PER_PAGE], len(kept)
    else:
        page = app.entries(framework=framework or None, status=status or None, limit=PER_PAGE, offset=first)
        rows, total = page["entries"], page["total"]
    return {
        "words": words,
        "framework": framework,
        "status": status,
        "statuses": _STATUSES,
        "frameworks": sorted(app.stats()["index"]["by_framework"], key=str.casefold),
        "entries": rows,
        **params.paging(total),
    }


def entry(app: App, params: Params, entry_id: str) -> Context:
    """Show one entry with its report, or an earlier text of it, its ratings, and the wordings that find it."""
    catalog = app.catalog
    found = catalog.entry(entry_id, report=True)
    earlier = catalog.revision(entry_id, params.whole("text")) if params.text("text") else None
    text = found.pop("report") if earlier is None else earlier["text"]
    report, sources = (None, None) if text is None else report_html(text)
    return {
        "entry": found,
        "earlier": earlier,
        "history": catalog.history(entry_id) if found["revisions"] else [],
        "report": report,
        "sources": sources,
        "text": text or "",
        "ratings": catalog.ratings(entry_id),
        "wordings": catalog.wordings(entry_id),
        "draft": None,
        "problem": None,
    }


def review(app: App, _params: Params) -> Context:
    """Show what waits for a person: findings and lessons that were held back, reports rated wrong."""
    return {"waiting": app.review()}


def candidates(app: App, params: Params) -> Context:
    """List the questions to which candidates were offered, and from which nobody has chosen."""
    needs, total = numbers.open_needs(app.store, limit=PER_PAGE, offset=params.offset)
    return {"needs": needs, **params.paging(total)}


def archive(app: App, params: Params) -> Context:
    """List the archive, the last archived first."""
    reason, stats = params.one_of("reason", _REASONS), app.stats()["archive"]
    found = app.catalog.archive(reason=reason or None, limit=params.offset + PER_PAGE)
    return {
        "reason": reason,
        "reasons": _REASONS,
        "archived": found[params.offset :],
        "by_reason": stats["by_reason"],
        "all": stats["entries"],
        **params.paging(stats["by_reason"].get(reason, 0) if reason else stats["entries"]),
    }


def spending(app: App, _params: Params) -> Context:
    """List stories by what they spent, the most expensive first."""
    course, stats = numbers.last_days(app.store, app.clock()), app.stats()
    stories = stats["spending"]["by_story"]
    return {
        "stories": stories,
        "dearest": max((story["charged"] for story in stories), default=0),
        "course": course,
        "chart": bar_chart(course["days"], hit="charged", bad="failed"),
        "spending": stats["spending"],
        "spared": stats["spared"],
    }


def sources(app: App, _params: Params) -> Context:
    """Show how each source does, and whether it is paused."""
    return {"sources": app.stats()["sources"], "settings": app.settings.knowledge_research}


def lessons(app: App, params: Params) -> Context:
    """Show lessons by phase."""
    with app.lessons() as service:
        everything, held_back = service.lessons(limit=100_000), len(service.quarantined())
    phases = app.settings.knowledge_research.all_phases
    phase = params.one_of("phase", phases)
    shown = [lesson for lesson in everything if lesson["status"] != "quarantined"]
    found = [lesson for lesson in shown if not phase or phase in lesson["tags"]]
    return {
        "phase": phase,
        "phases": {name: sum(name in lesson["tags"] for lesson in shown) for name in phases},
        "held_back": held_back,
        "all": len(everything),
        "lessons": found[params.offset : params.offset + PER_PAGE],
        **params.paging(len(found)),
    }


def settle(app: App, form: Form, _writer: Writer | None) -> Done:
    """Note which entry answers a need, or that none does."""
    entry_id = form.get("entry", "")
    numbers.close_request(app.store, form.get("request", ""), entry_id or None, app.clock())
    return "answered" if entry_id else "none", "/candidates"


def restore(app: App, form: Form, _writer: Writer | None) -> Done:
    """Bring an archived entry back; a live one at its place goes to the archive."""
    entry_id, number = form.get("id", ""), form.get("archive_id", "")
    archive_id = int(number) if number.isdecimal() and len(number) < 19 else -1
    app.catalog.restore(entry_id, archive_id=archive_id)
    return "restored", "/archive"


def remove(app: App, form: Form, _writer: Writer | None) -> Done:
    """Move an entry to the archive."""
    entry_id = form.get("id", "")
    app.catalog.remove([entry_id])
    return "removed", "/entries"


def judge_lesson(app: App, form: Form, _writer: Writer | None) -> Done:
    """Retire or pin a lesson, or take that back. What is in quarantine is judged by who signed in to review."""
    word, lesson_id = form.get("mark", ""), form.get("id", "")
    if word not in _LESSON_MARKS:
        raise UnknownEntry("a lesson can be retired, brought back, pinned or unpinned")
    mark, is_set = _LESSON_MARKS[word]
    with app.lessons() as service:
        if lesson_id in {lesson["id"] for lesson in service.quarantined()}:
            raise ReviewerNeeded("It waits for a person: the page Review says who may judge it.")
        service.mark(lesson_id, mark, is_set=is_set)  # type: ignore[arg-type]
    return word, "/lessons"


def decide(app: App, form: Form, _writer: Writer | None, *, is_approved: bool) -> Done:
    """Let through a finding or a lesson that was held back, or drop it."""
    app.decide(form.get("id", ""), is_approved=is_approved)
    return "approved" if is_approved else "rejected", "/review"


def rate(app: App, form: Form, writer: Writer | None) -> Done:
    """Say as a person whether an entry's report worked."""
    entry_id = form.get("id", "")
    app.rate_report(entry_id, {name: form.get(name) for name in ("outcome", "note")}, writer)
    return "rated", _address(entry_id)


def save(app: App, form: Form, writer: Writer | None) -> Done:
    """Keep an edited text as a person's finding. Raises ``InvalidRequest`` for what is wrong with it."""
    entry_id = form.get("id", "")
    known = app.entry(entry_id)
    finding = {
        **{name: known[name] for name in ("framework", "framework_version", "topic", "tags")},
        "question": known["question"] or known["topic"],
        "answer": form.get("answer", "").replace("\r\n", "\n"),
        "verified_by": form.get("verified_by", ""),
        "sources": form.get("sources", "").split(),
        "entry": entry_id,
    }
    envelope = app.save_finding(finding, writer)
    if envelope.results is None:
        problems = (FieldError(error.field or "answer", error.message) for error in envelope.errors)
        raise InvalidRequest(*problems)
    if envelope.status == "quarantined":
        return "held", "/review"
    return "saved", _address(envelope.results.id)


def _address(entry_id: str) -> str:
    return f"/entries/{quote(entry_id, safe='')}"


VIEWS: dict[str, View] = {
    "/": overview,
    "/entries": entries,
    "/review": review,
    "/candidates": candidates,
    "/lessons": lessons,
    "/archive": archive,
    "/spending": spending,
    "/sources": sources,
}
ACTIONS: dict[str, Action] = {
    "/candidates": settle,
    "/restore": restore,
    "/remove": remove,
    "/lessons": judge_lesson,
    "/review/approve": partial(decide, is_approved=True),
    "/review/reject": partial(decide, is_approved=False),
    "/review/rate": rate,
    "/review/save": save,
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
        params = Params(request.query_params)
        context = await self._workers.run(lambda: view(self._workers.app, params))
        return self._render(request, template, context)

    async def show_entry(self, request: Request) -> Response:
        view = partial(entry, entry_id=request.path_params["entry_id"])
        return await self.show(view, "entry.html", request)

    async def act(self, path: str, action: Action, request: Request) -> Response:
        form = await _read_form(request)
        session = self._session(request)
        reviewer = session.reviewer if session else None
        if path.startswith("/review/") and reviewer is None:
            raise ReviewerNeeded("Only a person who signed in to review may do this: see the page Review.")
        writer = person(reviewer) if reviewer else None
        app = self._workers.app
        try:
            what, address = await self._workers.run(lambda: action(app, form, writer))
        except InvalidRequest as error:
            if action is not save:
                raise
            context = await self._workers.run(lambda: entry(app, Params({}), form.get("id", "")))
            again = {**context, "draft": form, "problem": str(error)}
            return self._render(request, "entry.html", again, status=422)
        return RedirectResponse(f"{address}?done={what}", status_code=303)

    async def ask_to_sign_in(self, request: Request) -> Response:
        return self._render(request, "sign_in.html", {})

    async def sign_in(self, request: Request) -> Response:
        """Let who knows one of the two tokens go on: to use the server, or under a name to review."""
        form = await _read_form(request)
        name = one_line(form["name"], _LONGEST_NAME) if "name" in form else None
        session_id = self._sessions.sign_in(form.get("token", ""), name)
        if session_id is None:
            raise HTTPException(403, "That is not the token. Go back, and try again.")
        response = RedirectResponse("/review" if name is not None else "/", status_code=303)
        response.set_cookie(
            COOKIE,
            session_id,
            max_age=SESSION_SECONDS,
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

    def _render(self, request: Request, template: str, context: Context, *, status: int = 200) -> Response:
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
