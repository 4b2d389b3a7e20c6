"""What stands before the operations, where a whole server shows it only after a long wait: large bodies, too many calls."""

import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from kr.errors import Overloaded
from kr.server.access import Access, Policy, Sessions
from kr.server.worker import Workers

Headers = Sequence[tuple[bytes, bytes]]

HEADERS = [(b"host", b"localhost")]


async def call(
    access: Access, *messages: Message, method: str = "POST", path: str = "/v1/research", more: Headers = ()
) -> list[Message]:
    """Make a request of these messages; after them the client says nothing."""
    said = list(messages)
    answered: list[Message] = []

    async def receive() -> Message:
        if not said:
            await anyio.sleep_forever()
        return said.pop(0)

    async def send(message: Message) -> None:
        answered.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [*HEADERS, *more]}
    await access(scope, receive, send)
    return answered


def access_to(app: Any, **policy: Any) -> Access:
    allowed = Policy(names={"localhost"}, **{"token": None, **policy})
    return Access(app, allowed, Sessions(allowed), lambda *_: None)


async def echo(_scope: Scope, receive: Receive, send: Send) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def status(answered: list[Message]) -> int:
    return int(answered[0]["status"])


def test_a_body_that_came_in_parts_arrives_whole() -> None:
    answered = anyio.run(call, access_to(echo), part(b"a", more=True), part(b"b"))
    assert (status(answered), answered[1]["body"]) == (200, b"ab")


def test_a_body_is_counted_while_it_comes() -> None:
    chunks = [part(b"x" * 2**20, more=True)] * 100
    assert status(anyio.run(call, access_to(echo), *chunks)) == 413


def test_a_credential_that_is_no_text_is_a_wrong_one() -> None:
    async def ask() -> list[Message]:
        access = access_to(echo, token="x" * 16)
        return await call(access, part(b""), more=[(b"authorization", b"Bearer \xe9\xe9")])

    assert status(anyio.run(ask)) == 401


def test_no_more_calls_are_taken_than_a_bounded_number() -> None:
    no_app: Any = object()
    release = threading.Event()

    async def crowd() -> None:
        workers = Workers(no_app, workers=1, max_calls=3)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(workers.run, release.wait)
            await anyio.wait_all_tasks_blocked()
            try:
                with pytest.raises(Overloaded):
                    await workers.run(release.wait)
            finally:
                release.set()

    anyio.run(crowd)
