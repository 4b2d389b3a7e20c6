"""The body of an HTTP answer: undone from its compression, never longer than was asked for. Pure."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from kr.errors import SourceFailure

_WINDOWS = {
    "gzip": (zlib.MAX_WBITS | 16,),
    "x-gzip": (zlib.MAX_WBITS | 16,),
    "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}
"""zlib's window bits; ``deflate`` means the zlib format, and some servers send it without its frame."""


_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Body:
    """``is_cut`` tells that there was more."""

    data: bytes = field(repr=False)
    is_cut: bool = False


def read_body(chunks: Iterable[bytes], encoding: str, max_bytes: int) -> Body:
    """Read ``chunks`` until ``max_bytes`` decoded bytes are there; the rest is neither read nor unpacked.

    One layer of gzip or deflate is undone, what kr asks servers for. Raises ``SourceFailure`` for any other
    encoding, a broken one, and one that ends too early.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return _read_plain(chunks, max_bytes)
    if name not in _WINDOWS:
        raise SourceFailure("the content encoding was not asked for")
    return _Inflater(_WINDOWS[name], max_bytes).read(chunks)


def _read_plain(chunks: Iterable[bytes], max_bytes: int) -> Body:
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) > max_bytes:
            return Body(bytes(kept[:max_bytes]), is_cut=True)
    return Body(bytes(kept))


class _Inflater:
    """Unpacks at most ``max_bytes``: a bomb is cut while it is unpacked.

    Several members of gzip may follow one another (RFC 1952, 2.2). Anything else after the end of the data,
    the padding of some servers, is ignored, as browsers do.
    """

    def __init__(self, windows: tuple[int, ...], max_bytes: int) -> None:
        self._windows = list(windows)
        self._max = max_bytes
        self._kept = bytearray()
        self._decoder = zlib.decompressobj(self._windows[0])
        self._has_started = False
        self._has_ended = False
        self._after_member = b""

    def read(self, chunks: Iterable[bytes]) -> Body:
        packed = 0
        for chunk in chunks:
            packed += len(chunk)
            self._feed(chunk)
            # Packed data that unpacks to nothing must not be read without end either.
            if len(self._kept) > self._max or packed > self._max + 65536:
                return Body(bytes(self._kept[: self._max]), is_cut=True)
            if self._has_ended:
                break
        if self._has_started and not self._decoder.eof:
            raise SourceFailure("the compressed answer ends too early")
        return Body(bytes(self._kept))

    def _feed(self, data: bytes) -> None:
        while data and len(self._kept) <= self._max:
            if self._decoder.eof:
                data = self._next_member(data)
                if not data:
                    return
            self._kept += self._decompress(data)
            self._has_started = True
            data = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail

    def _next_member(self, data: bytes) -> bytes:
        """Begin another member and return its bytes so far; nothing when none begins, or not yet."""
        data = self._after_member + data
        is_gzip = self._windows[0] > zlib.MAX_WBITS
        self._has_ended = not is_gzip or not data.startswith(_GZIP_MAGIC[: len(data)])
        if self._has_ended or len(data) < len(_GZIP_MAGIC):
            self._after_member = data
            return b""
        self._after_member = b""
        self._decoder = zlib.decompressobj(self._windows[0])
        return data

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._decoder.decompress(data, self._max + 1 - len(self._kept))
        except zlib.error as error:
            if self._has_started or len(self._windows) == 1:
                raise SourceFailure("the compressed answer is broken") from error
            self._windows = self._windows[1:]
            self._decoder = zlib.decompressobj(self._windows[0])
            return self._decompress(data)
