"""A shared ``kr serve`` in place of a knowledge base of one's own: what ``KR_SERVER`` names.

``SharedApp`` is an ``App`` whose operations go over HTTP. A server that is gone means the local path, with a note; one that
refuses (the token, the address) is an error, or a fleet would fall apart unseen. Redirects are never followed: the token
goes to the server that was named, and nowhere else.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import TypeAdapter

from kr.app import App
from kr.cancellation import sleep
from kr.errors import ConfigError, KrError, SourceTimeout, UnknownEntry
from kr.findings import RateResults, SaveEnvelope
from kr.models import Envelope, Problem, ResearchEnvelope, Writer
from kr.recording import RecordEnvelope
from kr.requests import LIMIT, Mode
from kr.research.service import ResearchService
from kr.sources.event_loop import run
from kr.store.requests import RequestRow

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS = 3.0
_SECONDS = 60.0
"""For whatever is no research."""
_MARGIN_SECONDS = 15.0
"""That a research has beyond its own deadline."""
_LARGEST_ANSWER = 16 * 1024 * 1024
_MORE_TRIES = 2
_LONGEST_PAUSE = 5.0
_BUSY = frozenset({429, 503})
_NO_REASON = "no reason given"
_NO_SUCH_PATH = "Not Found"
"""What a server says of a path that it does not have; of an entry that it does not have it says more."""


class ServerGone(KrError):
    code = "server_gone"
    http_status = 502


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServer:
    """The server of ``KR_SERVER``. ``timeout`` is how long an answer may take in all, in seconds, ``research_timeout`` a research's."""

    url: str
    token: str | None
    timeout: float
    research_timeout: float | None = None

    def get(self, path: str, **query: Any) -> Any:
        return self._value(path, self._ask("GET", path, query))

    def post(self, path: str, value: Mapping[str, Any]) -> Any:
        """Post a value for which the server answers with one that is no envelope."""
        return self._value(path, self._ask("POST", path, {}, json.dumps(value).encode()))

    def envelope(self, path: str, body: bytes, *, is_research: bool = False, **query: Any) -> dict[str, Any]:
        """Post a request; its answer is an envelope, also where it failed."""
        reply = self._ask("POST", path, query, body, seconds=self.research_timeout if is_research else None)
        value = _json(reply)
        if not isinstance(value, dict) or not isinstance(value.get("status"), str):
            raise ServerGone(f"answers HTTP {reply.status_code} and no envelope")
        return value

    def _value(self, path: str, reply: httpx.Response) -> Any:
        if reply.is_success:
            return _json(reply)
        detail = _detail(reply)
        if reply.status_code != httpx.codes.NOT_FOUND:
            raise KrError(f"KR_SERVER: {detail}")
        if detail in {_NO_SUCH_PATH, _NO_REASON}:
            raise KrError(f"KR_SERVER: {self.url} has no {path}; is this the address of a `kr serve`?")
        raise UnknownEntry(detail)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: bytes | None = None,
        *,
        seconds: float | None = None,
    ) -> httpx.Response:
        """Ask, again where the server is busy. Raises ``ServerGone``, and ``ConfigError`` where it refuses."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        given = {name: value for name, value in query.items() if value is not None}
        request = httpx.Request(method, f"{self.url}{path}", params=given, content=body, headers=headers)
        seconds = seconds or self.timeout
        end = time.monotonic() + seconds
        reply = _exchange(request, seconds)
        for _ in range(_MORE_TRIES):
            after = reply.headers.get("Retry-After", "")
            pause = min(float(after) if after.isdecimal() else 1.0, _LONGEST_PAUSE)
            if reply.status_code not in _BUSY or time.monotonic() + pause >= end:
                break
            sleep(pause)
            reply = _exchange(request, end - time.monotonic())
        if reply.is_redirect:
            place = reply.headers.get("Location", "another address")
            raise ConfigError(f"KR_SERVER: {self.url} sends on to {place}; name the server itself")
        if reply.status_code in {401, 403}:
            raise ConfigError(f"KR_SERVER: {self.url} refuses: {_detail(reply)}; is KR_TOKEN its token?")
        if reply.status_code in _BUSY or reply.is_server_error:
            raise ServerGone(f"answers HTTP {reply.status_code}: {_detail(reply)}")
        return reply


def _exchange(request: httpx.Request, seconds: float) -> httpx.Response:
    async def exchange() -> httpx.Response:
        timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)  # ``run`` ends all of it
        async with httpx.AsyncClient(timeout=timeout, trust_env=False) as client:
            answer = await client.send(request, stream=True)
            data = bytearray()
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > _LARGEST_ANSWER:
                    raise ServerGone(f"gave an answer of more than {_LARGEST_ANSWER // 1024**2} MiB")
            kept = {
                name: answer.headers[name] for name in ("Retry-After", "Location") if name in answer.headers
            }
            return httpx.Response(answer.status_code, headers=kept, content=bytes(data))

    try:
        return run(exchange, timeout=seconds)
    except SourceTimeout as error:
        raise ServerGone(f"gave no answer within {seconds:.3g} s") from error
    except httpx.HTTPError as error:
        raise ServerGone(f"can't be reached: {str(error) or type(error).__name__}") from error


def _json(reply: httpx.Response) -> Any:
    try:
        return reply.json()
    except (ValueError, RecursionError) as error:
        raise ServerGone(f"answers HTTP {reply.status_code}, and no JSON") from error


def _detail(reply: httpx.Response) -> str:
    """Return what the answer of an error says."""
    try:
        return str(reply.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return _NO_REASON


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
        query = {"include_report": "true" if include_report else None, "max_tokens": max_tokens}
        body = json.dumps(data).encode()
        try:
            value = self.server.envelope(path, body, is_research=is_research, **query)
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

    ``hurry`` is how many seconds the server has where somebody waits who won't wait long.
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
        )

    @cached_property
    def research(self) -> ResearchService:
        research = self._research(SharedResearch)
        research.server = self.server
        return research

    def record_lessons(self, request: bytes, **waits: Any) -> RecordEnvelope:
        local = super().record_lessons
        if len(request) > LIMIT:
            return local(request, **waits)

        def ask() -> RecordEnvelope:
            value = self.server.envelope("/v1/lessons/record", request)
            return TypeAdapter(RecordEnvelope).validate_python(value)

        envelope = self._asked(ask, lambda: local(request, **waits))
        why = (envelope.results.message or "").partition("Recording skipped: ")[2]
        if why:
            logger.warning("nothing is recorded: %s", why)
        return envelope

    def save_finding(self, data: Mapping[str, Any], writer: Writer | None = None) -> SaveEnvelope:
        """Save on the server, which knows no terminal: there the writer is the session, or the user of this machine."""
        local = super().save_finding

        def ask() -> SaveEnvelope:
            value = self.server.envelope("/v1/findings", json.dumps(_signed(data, writer)).encode())
            return TypeAdapter(SaveEnvelope).validate_python(value)

        return self._asked(ask, lambda: local(data, writer))

    def rate_report(
        self, entry_id: str, data: Mapping[str, Any], writer: Writer | None = None
    ) -> RateResults:
        """Rate on the server; see ``save_finding``."""
        local = super().rate_report

        def ask() -> RateResults:
            value = self.server.post(f"{_path(entry_id)}/ratings", _signed(data, writer))
            return TypeAdapter(RateResults).validate_python(value)

        return self._asked(ask, lambda: local(entry_id, data, writer))

    def stats(self) -> dict[str, Any]:
        return self._asked(lambda: self.server.get("/v1/stats"), super().stats)

    def search_all(self, query: str, *, framework: str | None = None, limit: int = 10) -> dict[str, Any]:
        local, most = super().search_all, min(limit, 1000)
        return self._asked(
            lambda: self.server.get("/v1/search", q=query, framework=framework, limit=most),
            lambda: local(query, framework=framework, limit=limit),
        )

    def entries(self, **page: Any) -> dict[str, Any]:
        local = super().entries
        return self._asked(lambda: self.server.get("/v1/entries", **page), lambda: local(**page))

    def entry(self, entry_id: str, *, report: bool = False) -> dict[str, Any]:
        local, wanted = super().entry, str(report).lower()
        return self._asked(
            lambda: self.server.get(_path(entry_id), report=wanted), lambda: local(entry_id, report=report)
        )

    def _asked(self, ask: Callable[[], T], local: Callable[[], T]) -> T:
        try:
            return ask()
        except ServerGone as gone:
            _fall_back(gone, self.server)
            return local()


def _path(entry_id: str) -> str:
    return f"/v1/entries/{quote(entry_id, safe='')}"


def _signed(data: Mapping[str, Any], writer: Writer | None) -> dict[str, Any]:
    """Name the session that writes, where the caller did not."""
    return {**data, "session_id": data.get("session_id") or (writer.session if writer else None)}
