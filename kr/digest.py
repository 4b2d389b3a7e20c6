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
    digest: str = sha256(content).hexdigest()
    return digest
