"""Who looks at the page: the rights of each browser, and what only this process can have written.

There are two sign-ins: with ``KR_TOKEN``, which agents have too, to use a server outside loopback, and with
``KR_REVIEW_TOKEN``, which people alone have, to review.

A browser has a random id in one cookie. What it may do stands in this process alone: signing out ends a session wherever its
cookie was copied to, and so does a restart. Forms, and what an action says when it is done, carry a signature of the id, so
that no other page can make them.
"""

import hmac
import secrets
import time
from dataclasses import dataclass, replace

SIGN_IN = "/sign-in"
COOKIE = "kr_session"
SIGNED_IN_SECONDS = 30 * 24 * 60 * 60
REVIEW_SECONDS = 12 * 60 * 60
_LONGEST_NAME = 60
_MAX_SESSIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a browser may do. Times are POSIX times; ``reviewer_name`` is who signed in to review."""

    signed_in_until: float = 0.0
    review_until: float = 0.0
    reviewer_name: str | None = None

    @property
    def is_signed_in(self) -> bool:
        return time.time() < self.signed_in_until

    @property
    def reviewer(self) -> str | None:
        """The name of who may review now."""
        return self.reviewer_name if time.time() < self.review_until else None


class Sessions:
    """The sessions of one server."""

    def __init__(self, token: str | None, review_token: str | None = None) -> None:
        self._token = token
        self._review_token = review_token
        self._key = secrets.token_bytes(32)
        self._sessions: dict[str, Session] = {}
        self.can_review = review_token is not None

    @staticmethod
    def new_id() -> str:
        return secrets.token_urlsafe(32)

    def get(self, session_id: str) -> Session:
        return self._sessions.get(session_id, Session())

    def sign_in(self, session_id: str, token: str, name: str | None = None) -> str | None:
        """Let who knows a token go on under a new id: with a name to review, else to use the server; None for anybody else."""
        if not _is_same(token, self._token if name is None else self._review_token):
            return None
        now, session = time.time(), self.get(session_id)
        if name is None:
            session = replace(session, signed_in_until=now + SIGNED_IN_SECONDS)
        else:
            session = replace(session, review_until=now + REVIEW_SECONDS, reviewer_name=name)
        return self._move(session_id, session)

    def stop_reviewing(self, session_id: str) -> None:
        if session_id in self._sessions:
            self._sessions[session_id] = replace(self.get(session_id), review_until=0.0)

    def sign_out(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def _move(self, session_id: str, session: Session) -> str:
        self._sessions.pop(session_id, None)
        if len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        new_id = self.new_id()
        self._sessions[new_id] = session
        return new_id

    def sign(self, session_id: str, text: str = "a form") -> str:
        """Return what proves that this process wrote ``text`` for this browser."""
        return hmac.new(self._key, f"{session_id} {text}".encode(), "sha256").hexdigest()

    def has_signed(self, signature: str, session_id: str, text: str = "a form") -> bool:
        return bool(session_id) and _is_same(signature, self.sign(session_id, text))


def name_of(text: str) -> str | None:
    """Return the name that a person gave, in one line; None where it is none."""
    name = " ".join(text.split())
    is_name = name.isprintable() and any(map(str.isalnum, name)) and len(name) <= _LONGEST_NAME
    return name if is_name else None


def _is_same(given: str, secret: str | None) -> bool:
    return secret is not None and hmac.compare_digest(given.encode(), secret.encode())
