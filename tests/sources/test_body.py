"""Where the data of a compressed body ends, whatever the chunks are that it comes in."""

import gzip
from collections.abc import Iterator

from kr.sources.http_exchange import Body, read_body


def test_members_are_found_wherever_the_chunks_end() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 20
    for size in range(1, len(data)):
        chunks = (data[at : at + size] for at in range(0, len(data), size))
        assert read_body(chunks, "gzip", 100) == Body(b"one two")


def test_what_follows_the_last_member_is_not_read() -> None:
    def chunks() -> Iterator[bytes]:
        yield gzip.compress(b"text") + b"\0" * 10
        raise AssertionError("it was read on")

    assert read_body(chunks(), "gzip", 100) == Body(b"text")
