"""Who looks at the page: a session for each browser, who signed in, and what only kr can have written (SPEC 8).

There are two sign-ins: with ``KR_TOKEN``, which agents have too, to use a server outside loopback, and with
``KR_REVIEW_TOKEN``, which people alone have, to review (SPEC 3.10).

A browser has a random id in one cookie, ``HttpOnly`` and ``SameSite=Strict``. Which ids have signed in stands in this process
alone: signing out ends a session wherever its cookie was copied to, and so does a restart. Forms, and what an action says
when it is done, carry a signature of the id, so that no other page can make them.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import TypeVar

SIGN_IN = "/sign-in"
COOKIE = "kr_session"
SIGNED_IN_SECONDS = 30 * 24 * 60 * 60
REVIEW_SECONDS = 12 * 60 * 60
_LONGEST_NAME = 60
_MOST_SESSIONS = 1000

V = TypeVar("V")


class Sessions:
    """The sessions of one server, whose bearer token is ``token``. Times are POSIX times."""

    def __init__(self, token: str | None, review_token: str | None = None) -> None:
        self._token = token
        self._review_token = review_token
        self._key = secrets.token_bytes(32)
        self._until: dict[str, float] = {}
        self._reviewers: dict[str, tuple[str, float]] = {}

    @staticmethod
    def new() -> str:
        """Return an id that nobody has."""
        return secrets.token_urlsafe(32)

    def sign_in(self, given: str, now: float) -> str | None:
        """Begin a session for who knows the token, under an id of its own; None for anybody else."""
        if not _is_token(given, self._token):
            return None
        session = self.new()
        _keep(self._until, session, now + SIGNED_IN_SECONDS)
        return session

    @property
    def can_review(self) -> bool:
        """Whether this server has a token to review with."""
        return self._review_token is not None

    def sign_in_to_review(self, given: str, name: str, cookies: Mapping[str, str], now: float) -> str | None:
        """Begin a session for the person of this name who knows the token to review; None for anybody else.

        It has an id of its own, under which who had signed in to use the server still is.
        """
        if not _is_token(given, self._review_token):
            return None
        session, until = self.new(), self._until.pop(cookies.get(COOKIE, ""), None)
        if until is not None:
            _keep(self._until, session, until)
        _keep(self._reviewers, session, (name, now + REVIEW_SECONDS))
        return session

    def reviewer(self, cookies: Mapping[str, str], now: float) -> str | None:
        """Return the name of who signed in to review, if these are their cookies."""
        name, until = self._reviewers.get(cookies.get(COOKIE, ""), (None, 0.0))
        return name if now < until else None

    def stop_reviewing(self, cookies: Mapping[str, str]) -> None:
        """End the review alone."""
        self._reviewers.pop(cookies.get(COOKIE, ""), None)

    def sign_out(self, cookies: Mapping[str, str]) -> None:
        """End the session."""
        self._until.pop(cookies.get(COOKIE, ""), None)
        self.stop_reviewing(cookies)

    def is_signed_in(self, cookies: Mapping[str, str], now: float) -> bool:
        """Tell whether these are the cookies of who knows the token."""
        return now < self._until.get(cookies.get(COOKIE, ""), 0)

    def sign(self, session: str, text: str = "a form") -> str:
        """Return what shows that this process wrote ``text`` for this session."""
        return hmac.new(self._key, f"{session} {text}".encode(), "sha256").hexdigest()

    def has_signed(self, signature: str, cookies: Mapping[str, str], text: str = "a form") -> bool:
        """Tell whether ``sign`` made the signature for the browser with these cookies."""
        session = cookies.get(COOKIE, "")
        return bool(session) and hmac.compare_digest(signature.encode(), self.sign(session, text).encode())


def name_of(text: str) -> str | None:
    """Return the name that a person gave, in one line; None where it is none."""
    name = " ".join(text.split())
    is_name = name.isprintable() and any(map(str.isalnum, name)) and len(name) <= _LONGEST_NAME
    return name if is_name else None


def _is_token(given: str, token: str | None) -> bool:
    return token is not None and hmac.compare_digest(given.encode(), token.encode())


def _keep(sessions: dict[str, V], session: str, value: V) -> None:
    """Keep a session, and let the oldest go where there are too many."""
    if len(sessions) >= _MOST_SESSIONS:
        del sessions[next(iter(sessions))]
    sessions[session] = value
