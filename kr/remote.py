"""A shared ``kr serve`` in place of a knowledge base of one's own: what ``KR_SERVER`` names.

``SharedApp`` is an ``App`` whose operations go over HTTP. A server that is gone, that refuses (the token, the address), or that is
no ``kr serve``, is an error: a fleet would fall apart unseen if its members went on by themselves. Redirects are never followed: the token
goes to the server that was named, and nowhere else.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter, ValidationError

from kr.app import App
from kr.errors import ConfigError, KrError, SourceTimeout, UnknownEntry
from kr.models import Envelope, Problem, Writer, failure
from kr.requests import Mode
from kr.research.finding_text import RateResults, SaveEnvelope
from kr.research.service import ResearchService
from kr.sources.network import run

if TYPE_CHECKING:
    from kr.lessons.record import RecordEnvelope

logger = logging.getLogger(__name__)

T = TypeVar("T")
Value = dict[str, Any]

_CONNECT_SECONDS = 3.0
_MARGIN_SECONDS = 15.0
"""That a research has beyond its own deadline."""
_ROWS = 1000
"""At most, of a list that the server gives."""
_GONE = (429, 500, 502, 503, 504)
_NO_SUCH_PATH = "Not Found"
"""What a server says of a path that it does not have; of an entry that it does not have it says more."""


class ServerGone(KrError):
    """The server can't be reached, or gives no answer."""

    code = "server_gone"
    http_status = 502


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServer:
    """The server of ``KR_SERVER``. Its methods raise ``ServerGone``, ``UnknownEntry``, and ``ConfigError`` where it refuses or is no ``kr serve``."""

    url: str
    token: str | None
    timeout: float

    def get(self, path: str, key: str, **query: Any) -> Value:
        """Return the mapping that stands at a path; it has ``key``."""
        value = self._ask(path, None, self.timeout, query)
        return value if key in value else self._refuse_other_server(path)

    def post(
        self, kind: type[T], path: str, body: bytes | Mapping[str, Any], *, seconds: float = 0, **query: Any
    ) -> T:
        """Post a request and return its answer as a record of ``kind``: an envelope also where it failed."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        value = self._ask(path, content, seconds or self.timeout, query)
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError:
            return self._refuse_other_server(path)

    def _ask(self, path: str, content: bytes | None, seconds: float, query: Mapping[str, Any]) -> Value:
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        given = {name: value for name, value in query.items() if value is not None}
        method = "GET" if content is None else "POST"
        request = httpx2.Request(method, f"{self.url}{path}", params=given, content=content, headers=headers)
        reply = self._exchange(request, seconds)
        try:
            value = reply.json()
        except (ValueError, RecursionError):
            value = None
        known = value if isinstance(value, dict) else {}
        status, detail = reply.status_code, known.get("detail")
        if status in (401, 403):
            why = detail or f"it answers HTTP {status}"
            raise ConfigError(f"KR_SERVER: {self.url} refuses: {why}; is KR_TOKEN its token?")
        if status in _GONE:
            raise ServerGone(f"KR_SERVER: {self.url} answers HTTP {status}: {detail or 'no reason given'}")
        if known and detail is None:
            return known
        if not isinstance(detail, str) or detail == _NO_SUCH_PATH:
            where = reply.headers.get("Location")
            self._refuse_other_server(f"{path} (HTTP {status}{f', on to {where}' if where else ''})")
        raise UnknownEntry(detail) if status == httpx2.codes.NOT_FOUND else KrError(f"KR_SERVER: {detail}")

    def _refuse_other_server(self, path: str) -> NoReturn:
        why = f"{self.url} is no `kr serve` of this version: its answer to {path} is another one"
        raise ConfigError(f"KR_SERVER: {why}; name another one, or unset it")

    def _exchange(self, request: httpx2.Request, seconds: float) -> httpx2.Response:
        async def exchange() -> httpx2.Response:
            timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)  # ``run`` ends all of it
            async with httpx2.AsyncClient(timeout=timeout, trust_env=False) as client:
                return await client.send(request)

        try:
            return run(exchange, timeout=seconds)
        except SourceTimeout as error:
            raise ServerGone(f"KR_SERVER: {self.url} gave no answer within {seconds:.2g} s") from error
        except httpx2.HTTPError as error:
            why = str(error) or type(error).__name__
            raise ServerGone(f"KR_SERVER: {self.url} can't be reached: {why}") from error


def check_url(url: str) -> str:
    """Return a server's address as it is used: without the path of what it serves. Raises ``ConfigError``."""
    if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#@\s]*)?", url):
        raise ConfigError("KR_SERVER: must be http[s]://HOST[:PORT], without user and query")
    return url.rstrip("/").removesuffix("/v1").removesuffix("/mcp")


class SharedResearch(ResearchService):
    """Reads requests as ever, and has the server answer them; what can't be read is refused here."""

    server: SharedServer

    def answer(self, data: Mapping[str, Any], *, default_mode: Mode | None = None, **wanted: Any) -> Envelope:
        """Post a request. A server that is gone is the failure of the request."""
        is_research = default_mode != "lessons-inject"
        path = "/v1/research" if is_research else "/v1/lessons/inject"
        seconds = self.settings.overall_timeout + _MARGIN_SECONDS if is_research else 0
        try:
            return self.server.post(Envelope, path, data, seconds=seconds, **wanted)
        except ServerGone as gone:
            return failure(data, Problem(type=gone.code, message=str(gone)), mode=default_mode)

    def _refuse(
        self, data: Mapping[str, Any], problems: Sequence[Problem], *, mode: Mode | None = None
    ) -> Envelope:
        """Refuse what can't be read, and keep no row: the server has those."""
        return failure(data, *problems, mode=mode)


class SharedApp(App):
    """An app that asks the server; it knows neither terminal nor project, so that the client names the writer and the version."""

    @cached_property
    def server(self) -> SharedServer:
        url, token = check_url(self.environ["KR_SERVER"]), self.environ.get("KR_TOKEN") or None
        return SharedServer(url=url, token=token, timeout=self.server_timeout)

    @cached_property
    def research(self) -> ResearchService:
        research = self._research(SharedResearch)
        research.server = self.server
        return research

    def record_lessons(self, request: bytes | Mapping[str, Any], **_: Any) -> "RecordEnvelope":
        from kr.lessons.record import RecordEnvelope  # heavy

        envelope = self.server.post(RecordEnvelope, "/v1/lessons/record", request)
        if why := envelope.results.get("message", "").partition("Recording skipped: ")[2]:
            logger.warning("nothing is recorded: %s", why)
        return envelope

    def save_finding(self, data: bytes | Mapping[str, Any], writer: Writer | None = None) -> SaveEnvelope:
        if isinstance(data, bytes):
            return self.server.post(SaveEnvelope, "/v1/findings", data)
        framework = data.get("framework")
        if isinstance(framework, str) and not data.get("framework_version"):
            data = {**data, "framework_version": self.research.version_of(framework)}
        return self.server.post(SaveEnvelope, "/v1/findings", _signed(data, writer))

    def rate_report(
        self, entry_id: str, data: Mapping[str, Any], writer: Writer | None = None
    ) -> RateResults:
        return self.server.post(RateResults, f"{_path(entry_id)}/ratings", _signed(data, writer))

    def stats(self) -> Value:
        return self.server.get("/v1/stats", "requests")

    def search_all(self, query: str, *, framework: str | None = None, limit: int = 10) -> Value:
        return self.server.get("/v1/search", "entries", q=query, framework=framework, limit=min(limit, _ROWS))

    def entries(self, *, limit: int | None = None, **page: Any) -> Value:
        return self.server.get("/v1/entries", "total", **page, limit=limit and min(limit, _ROWS))

    def entry(self, entry_id: str, *, report: bool = False) -> Value:
        return self.server.get(_path(entry_id), "id", report=report)


def _path(entry_id: str) -> str:
    return f"/v1/entries/{quote(entry_id, safe='')}"


def _signed(data: Mapping[str, Any], writer: Writer | None) -> Value:
    """Name the session that writes, where the caller did not."""
    return {**data, "session_id": data.get("session_id") or (writer.session if writer else None)}
