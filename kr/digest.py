"""SHA-256 by Python's own module: ``hashlib`` loads OpenSSL, which costs a tenth of a hit."""

try:
    from _sha2 import sha256  # type: ignore[import-not-found]  # Python's own, without stubs
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # until Python 3.11
    except ImportError:
        from hashlib import sha256


def sha256_of(content: bytes) -> str:
    """Return the digest in lower-case hex."""
    found: str = sha256(content).hexdigest()
    return found


def digest(text: str) -> str:
    """Return the SHA-256 of a report's text in UTF-8, lower-case hex."""
    return sha256_of(text.encode())


def decoded(content: bytes | None) -> str:
    """Return a file's text; what is no UTF-8 in it becomes U+FFFD."""
    return (content or b"").decode(errors="replace")
