"""Who may use the page and its forms: the sign-in outside loopback, and a token in every form that changes something (SPEC 8).

The cookies hold no secret: a signature of the bearer token, and a random number whose signature every form carries. Both are
``HttpOnly`` and ``SameSite=Strict``.
"""

import hmac
import secrets
from collections.abc import Mapping

SIGN_IN = "/sign-in"
SIGNED_IN = "kr_signed_in"
FORM = "kr_form"
SIGNED_IN_SECONDS = 30 * 24 * 60 * 60

_KEY = secrets.token_bytes(32)
"""Of this process: a form that was opened before a restart is refused, and opened again."""


def signed_in(token: str, now: float) -> str:
    """Return the cookie of who knows the bearer token; it holds for thirty days. ``now`` is a POSIX time."""
    until = str(int(now) + SIGNED_IN_SECONDS)
    return f"{until}.{_signature(token.encode(), until)}"


def is_signed_in(cookies: Mapping[str, str], token: str, now: float) -> bool:
    """Tell whether a request's cookies are those of who knows the bearer token."""
    until, _, signature = cookies.get(SIGNED_IN, "").partition(".")
    is_genuine = hmac.compare_digest(signature.encode(), _signature(token.encode(), until).encode())
    return is_genuine and until.isdigit() and now < int(until)


def knows(given: str, token: str) -> bool:
    """Tell whether what was given is the bearer token."""
    return hmac.compare_digest(given.encode(), token.encode())


def new_form() -> str:
    """Return a new cookie for forms."""
    return secrets.token_urlsafe(24)


def form_token(cookie: str) -> str:
    """Return the token that a form carries for a browser with this cookie."""
    return _signature(_KEY, cookie)


def is_own_form(cookies: Mapping[str, str], given: str) -> bool:
    """Tell whether a form came from a page that this process gave to this browser."""
    cookie = cookies.get(FORM, "")
    return bool(cookie) and hmac.compare_digest(given.encode(), form_token(cookie).encode())


def _signature(key: bytes, text: str) -> str:
    return hmac.new(key, f"kr page: {text}".encode(), "sha256").hexdigest()
