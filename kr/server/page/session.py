"""Who looks at the page: a session for each browser, the sign-in outside loopback, and what only kr can have written (SPEC 8).

A browser has a random id in one cookie, ``HttpOnly`` and ``SameSite=Strict``. Which ids have signed in stands in this process
alone: signing out ends a session wherever its cookie was copied to, and so does a restart. Forms, and what an action says
when it is done, carry a signature of the id, so that no other page can make them.
"""

import hmac
import secrets
from collections.abc import Mapping

SIGN_IN = "/sign-in"
COOKIE = "kr_session"
SIGNED_IN_SECONDS = 30 * 24 * 60 * 60
_MOST_SESSIONS = 1000


class Sessions:
    """The sessions of one server, whose bearer token is ``token``. Times are POSIX times."""

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._key = secrets.token_bytes(32)
        self._until: dict[str, float] = {}

    @staticmethod
    def new() -> str:
        """Return an id that nobody has."""
        return secrets.token_urlsafe(32)

    def sign_in(self, given: str, now: float) -> str | None:
        """Begin a session for who knows the token, under an id of its own; None for anybody else."""
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return None
        if len(self._until) >= _MOST_SESSIONS:
            del self._until[next(iter(self._until))]
        session = self.new()
        self._until[session] = now + SIGNED_IN_SECONDS
        return session

    def sign_out(self, cookies: Mapping[str, str]) -> None:
        """End the session."""
        self._until.pop(cookies.get(COOKIE, ""), None)

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
