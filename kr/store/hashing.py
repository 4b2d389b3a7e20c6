"""Texts of reports as files hold them, and the hash by which they are known."""

from kr.digest import sha256_of


def digest(text: str) -> str:
    """Return the SHA-256 of a report's text in UTF-8, lower-case hex."""
    return sha256_of(text.encode())


def decoded(content: bytes | None) -> str:
    """Return a file's text; what is no UTF-8 in it becomes U+FFFD."""
    return (content or b"").decode(errors="replace")
