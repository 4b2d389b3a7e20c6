"""A shared ``kr serve`` in place of a knowledge base of one's own: what ``KR_SERVER`` names (SPEC 8).

``SharedApp`` is an ``App`` whose requests, lessons and looks go over HTTP. A server that is gone means the local path,
with a note; one that refuses (the token, the address) is an error, or a fleet would fall apart unseen. Redirects are
never followed: the token goes to the server that was named, and nowhere else.
"""

import http.client
import json
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import TypeAdapter

from kr.app import App
from kr.cancellation import check, sleep
from kr.deadline import Deadline, bounded
from kr.envelopes import Envelope, Problem, RateResults, RecordEnvelope, ResearchEnvelope, SaveEnvelope
from kr.errors import ConfigError, KrError, SourceTimeout, UnknownEntry
from kr.fields import LIMIT
from kr.requests import Mode
from kr.research.service import ResearchService
from kr.store.requests import RequestRow

if TYPE_CHECKING:
    from kr.models import Writer

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS = 3.0
_SECONDS = 60.0
"""Seconds for whatever is no research, tries and pauses included."""
_MARGIN_SECONDS = 15.0
"""Seconds that a research has beyond its own deadline."""
_LARGEST_ANSWER = 16 * 1024 * 1024
_MORE_TRIES = 2
_LONGEST_PAUSE = 5.0
_BUSY = frozenset({429, 503})
_NO_SUCH_PATH = "Not Found"
"""What a server says of a path that it does not have; of an entry that it does not have it says more."""


class ServerGone(KrError):
    code = "server_gone"
    http_status = 502


class Reply(NamedTuple):
    status: int
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServer:
    """The server of ``KR_SERVER``. ``timeout`` is how long an answer may take in all, in seconds, ``research_timeout`` a research's.

    ``more_tries`` is how often one that is busy is asked again.
    """

    url: str
    token: str | None
    timeout: float
    research_timeout: float | None = None
    more_tries: int = _MORE_TRIES

    def get(self, path: str, **query: Any) -> Any:
        said = urlencode({name: value for name, value in query.items() if value is not None})
        return self._value(
            path, self._exchange("GET", f"{path}?{said}" if said else path, None, self.timeout)
        )

    def put_in(self, path: str, value: Mapping[str, Any]) -> Any:
        """Post a value for which the server answers with one that is no envelope."""
        return self._value(path, self._exchange("POST", path, json.dumps(value).encode(), self.timeout))

    def _value(self, path: str, reply: Reply) -> Any:
        if reply.status == http.client.OK:
            return reply.value
        detail = reply.value.get("detail", reply.status) if isinstance(reply.value, dict) else reply.status
        if reply.status != http.client.NOT_FOUND:
            raise KrError(f"KR_SERVER: {detail}")
        if detail in {_NO_SUCH_PATH, reply.status}:
            raise KrError(f"KR_SERVER: {self.url} has no {path}; is this the address of a `kr serve`?")
        raise UnknownEntry(detail)

    def post(self, path: str, body: bytes, *, is_research: bool = False) -> dict[str, Any]:
        seconds = self.research_timeout if is_research else None
        reply = self._exchange("POST", path, body, seconds or self.timeout)
        if not isinstance(reply.value, dict) or not isinstance(reply.value.get("status"), str):
            raise ServerGone(f"answers HTTP {reply.status} and no envelope")
        return reply.value

    def _exchange(self, method: str, path: str, body: bytes | None, seconds: float) -> Reply:
        deadline = Deadline(seconds)

        def once() -> tuple[int, http.client.HTTPMessage, bytes]:
            return bounded(lambda: self._once(method, path, body, deadline), deadline)

        try:
            status, headers, data = once()
            for _ in range(self.more_tries):
                said = headers.get("Retry-After", "")
                pause = min(float(said) if said.isdecimal() else 1.0, _LONGEST_PAUSE)
                if status not in _BUSY or pause >= deadline.remaining():
                    break
                sleep(pause)
                status, headers, data = once()
        except SourceTimeout as error:
            check()
            raise ServerGone(f"gave no answer within {seconds:g} s") from error
        finally:
            deadline.cancel()
        if 300 <= status < 400:
            place = headers.get("Location", "another address")
            raise ConfigError(f"KR_SERVER: {self.url} sends on to {place}; name the server itself")
        if status in {401, 403}:
            raise ConfigError(f"KR_SERVER: {self.url} refuses: {_detail(data)}; is KR_TOKEN its token?")
        if status in _BUSY or status >= 500:
            raise ServerGone(f"answers HTTP {status}: {_detail(data)}")
        try:
            return Reply(status, json.loads(data))
        except (ValueError, RecursionError) as error:
            raise ServerGone(f"answers HTTP {status}, and no JSON") from error

    def _once(
        self, method: str, path: str, body: bytes | None, deadline: Deadline
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = self._connection()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.connect()
            connection.sock.settimeout(None)  # whoever waits breaks it off at the deadline
            deadline.watch(connection.sock)
            connection.request(method, urlsplit(self.url).path.rstrip("/") + path, body, headers)
            with connection.getresponse() as answer:
                return answer.status, answer.headers, _read(answer)
        except (OSError, http.client.HTTPException) as error:
            told = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ServerGone(f"can't be reached: {told}") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=_CONNECT_SECONDS, context=context
            )
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_CONNECT_SECONDS)


def _read(answer: http.client.HTTPResponse) -> bytes:
    data = answer.read(_LARGEST_ANSWER + 1)
    if len(data) > _LARGEST_ANSWER:
        raise ServerGone(f"gave an answer of more than {_LARGEST_ANSWER // 1024**2} MiB")
    return data


def _detail(data: bytes) -> str:
    try:
        return str(json.loads(data)["detail"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"


def check_url(url: str) -> str:
    """Return a server's address as it is used: without the path of what it serves. Raises ``ConfigError``."""
    problem = "KR_SERVER: must be http://HOST[:PORT] or https://HOST[:PORT], without user and query"
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ConfigError(problem) from error
    if not is_good or parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(problem)
    return url.rstrip("/").removesuffix("/v1").removesuffix("/mcp")


def _fall_back(gone: ServerGone, server: SharedServer) -> str:
    note = f"KR_SERVER: {server.url} {gone}; the local knowledge base is used"
    logger.warning("%s", note)
    return note


class SharedResearch(ResearchService):
    """Reads requests as ever, and has the server answer them; what can't be read is refused here."""

    server: SharedServer
    _is_local = False

    def answer(
        self,
        data: Mapping[str, Any],
        *,
        include_report: bool = False,
        max_tokens: int | None = None,
        default_mode: Mode | None = None,
    ) -> Envelope:
        is_research = default_mode != "lessons-inject"
        path = "/v1/research" if is_research else "/v1/lessons/inject"
        wanted = {"include_report": "true" if include_report else None, "max_tokens": max_tokens}
        query = urlencode({name: value for name, value in wanted.items() if value is not None})
        query = f"?{query}" if query else ""
        try:
            value = self.server.post(path + query, json.dumps(data).encode(), is_research=is_research)
        except ServerGone as gone:
            note = _fall_back(gone, self.server)
            self._is_local = True
            envelope = super().answer(
                data, include_report=include_report, max_tokens=max_tokens, default_mode=default_mode
            )
            if isinstance(envelope, ResearchEnvelope) and envelope.results is not None:
                envelope.results.degradation_notes.append(note)
            return envelope
        return Envelope(**{**value, "errors": [Problem(**problem) for problem in value["errors"]]})

    def _keep_row(self, row: RequestRow) -> None:
        if self._is_local:
            super()._keep_row(row)


class SharedApp(App):
    """An app that asks the server; where that is gone, it answers from the local knowledge base.

    ``hurry`` is how many seconds the server has where somebody waits who won't wait long; then it is asked once.
    """

    hurry: float | None = None

    @cached_property
    def server(self) -> SharedServer:
        overall = self.settings.defaults.agent_timeout_seconds.knowledge_research
        return SharedServer(
            url=check_url(self.environ["KR_SERVER"]),
            token=self.environ.get("KR_TOKEN") or None,
            timeout=self.hurry or _SECONDS,
            research_timeout=overall + _MARGIN_SECONDS,
            more_tries=0 if self.hurry else _MORE_TRIES,
        )

    @cached_property
    def research(self) -> ResearchService:
        research = self._research(SharedResearch)
        research.server = self.server
        return research

    def record_lessons(self, request: bytes, **waits: Any) -> RecordEnvelope:
        if len(request) > LIMIT:
            return super().record_lessons(request, **waits)
        envelope = self._asked(
            lambda: TypeAdapter(RecordEnvelope).validate_python(
                self.server.post("/v1/lessons/record", request)
            ),
            lambda: super(SharedApp, self).record_lessons(request, **waits),
        )
        why = (envelope.results.message or "").partition("Recording skipped: ")[2]
        if why:
            logger.warning("nothing is recorded: %s", why)
        return envelope

    def save_finding(self, data: Mapping[str, Any], writer: "Writer | None" = None) -> SaveEnvelope:
        """Save on the server, which knows no terminal: there the writer is the session, or the user of this machine."""
        named = data if writer is None else {**data, "session_id": data.get("session_id") or writer.session}
        return self._asked(
            lambda: TypeAdapter(SaveEnvelope).validate_python(
                self.server.post("/v1/findings", json.dumps(named).encode())
            ),
            lambda: super(SharedApp, self).save_finding(data, writer),
        )

    def rate_report(
        self, entry_id: str, data: Mapping[str, Any], writer: "Writer | None" = None
    ) -> RateResults:
        """Rate on the server; see ``save_finding``."""
        named = data if writer is None else {**data, "session_id": data.get("session_id") or writer.session}
        path = f"/v1/entries/{quote(entry_id, safe='')}/ratings"
        return self._asked(
            lambda: TypeAdapter(RateResults).validate_python(self.server.put_in(path, named)),
            lambda: super(SharedApp, self).rate_report(entry_id, data, writer),
        )

    def stats(self) -> dict[str, Any]:
        return self._asked(lambda: self.server.get("/v1/stats"), super().stats)

    def search_all(self, query: str, *, framework: str | None = None, limit: int = 10) -> dict[str, Any]:
        return self._asked(
            lambda: self.server.get("/v1/search", q=query, framework=framework, limit=min(limit, 1000)),
            lambda: super(SharedApp, self).search_all(query, framework=framework, limit=limit),
        )

    def entries(self, **page: Any) -> dict[str, Any]:
        return self._asked(
            lambda: self.server.get("/v1/entries", **page), lambda: super(SharedApp, self).entries(**page)
        )

    def entry(self, entry_id: str, *, report: bool = False) -> dict[str, Any]:
        path = f"/v1/entries/{quote(entry_id, safe='')}"
        return self._asked(
            lambda: self.server.get(path, report=str(report).lower()),
            lambda: super(SharedApp, self).entry(entry_id, report=report),
        )

    def _asked(self, ask: Callable[[], T], local: Callable[[], T]) -> T:
        try:
            return ask()
        except ServerGone as gone:
            _fall_back(gone, self.server)
            return local()
