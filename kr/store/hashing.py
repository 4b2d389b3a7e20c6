"""The hash by which texts of reports are known."""

import hashlib


def digest(content: bytes) -> str:
    """Return the SHA-256 of a report's bytes, lower-case hex."""
    return hashlib.sha256(content).hexdigest()
