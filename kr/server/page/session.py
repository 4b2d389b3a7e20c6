"""Who signed in on the page. The cookie of a browser holds a random id; what that allows stands in this process alone.

There are two tokens: ``KR_TOKEN``, which agents have too, lets use a server outside loopback; ``KR_REVIEW_TOKEN``, which people alone
have, lets review as well, under a name. Signing out ends a session wherever its cookie was copied to, and so does a restart.
"""

import hmac
import secrets
import time
from dataclasses import dataclass

SIGN_IN = "/sign-in"
COOKIE = "kr_session"
USE_SECONDS = 30 * 24 * 60 * 60
REVIEW_SECONDS = 12 * 60 * 60


@dataclass(frozen=True, slots=True)
class Session:
    """A browser whose user signed in, until a POSIX time. ``reviewer`` is the name of who may review; None: nobody."""

    until: float
    reviewer: str | None = None


class Sessions:
    """The sessions of one server."""

    def __init__(self, token: str | None, review_token: str | None = None) -> None:
        self._token = token
        self._review_token = review_token
        self._sessions: dict[str, Session] = {}
        self.can_review = review_token is not None

    def get(self, session_id: str) -> Session | None:
        """Return the session of an id; None where nobody signed in with it, or its time is over."""
        session = self._sessions.get(session_id)
        return session if session is not None and time.time() < session.until else None

    def sign_in(self, token: str, reviewer: str | None = None) -> str | None:
        """Give who knows a token the id of a new session: with a name to review, else to use the server; None for anybody else."""
        secret = self._token if reviewer is None else self._review_token
        if secret is None or not hmac.compare_digest(token.encode(), secret.encode()):
            return None
        session_id = secrets.token_urlsafe(32)
        seconds = USE_SECONDS if reviewer is None else REVIEW_SECONDS
        self._sessions[session_id] = Session(time.time() + seconds, reviewer)
        return session_id

    def sign_out(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)
