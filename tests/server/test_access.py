"""What ``Guard`` does that a whole server shows only after a long wait: slow bodies, slow readers, too much at once."""

import json
import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from prometheus_client import generate_latest
from starlette.types import Message, Receive, Scope, Send

from kr.errors import Overloaded
from kr.server.guard import MOST_HELD, Guard, Policy
from kr.server.metrics import Metrics
from kr.server.service import MOST_WAITING, Service

Headers = Sequence[tuple[bytes, bytes]]

HEADERS = [(b"host", b"localhost")]


async def call(
    guard: Guard, *messages: Message, method: str = "POST", path: str = "/v1/research", more: Headers = ()
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
    await guard(scope, receive, send)
    return answered


def guard_of(app: Any, **policy: Any) -> Guard:
    allowed = Policy(names={"localhost"}, **{"token": None, "max_requests": 2, **policy})
    return Guard(app, policy=allowed, metrics=Metrics())


async def echo(_scope: Scope, receive: Receive, send: Send) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def status(answered: list[Message]) -> int:
    return int(answered[0]["status"])


def test_a_body_that_came_in_parts_arrives_whole() -> None:
    answered = anyio.run(call, guard_of(echo), part(b"a", more=True), part(b"b"))
    assert (status(answered), answered[1]["body"]) == (200, b"ab")


def test_a_body_is_counted_while_it_comes() -> None:
    chunks = [part(b"x" * 2**20, more=True)] * 100
    assert status(anyio.run(call, guard_of(echo), *chunks)) == 413


def test_a_body_that_says_it_is_too_large_is_answered_before_it_is_read_and_then_dropped() -> None:
    async def ask() -> list[str]:
        order: list[str] = []
        said = [part(b"x" * 2**20, more=True), part(b"x" * 2**20)]

        async def receive() -> Message:
            order.append("read")
            return said.pop(0)

        async def send(message: Message) -> None:
            order.append(f"{message['type']} {message.get('more_body', '')}".strip())

        headers = [*HEADERS, (b"content-length", b"2097152")]
        scope = {"type": "http", "method": "POST", "path": "/v1/research", "headers": headers}
        await guard_of(echo)(scope, receive, send)
        return order

    begun, ended = ["http.response.start", "http.response.body True"], ["http.response.body"]
    assert anyio.run(ask) == [*begun, "read", "read", *ended]


def test_bodies_that_wait_for_their_rest_are_bounded_together_and_small_ones_always_have_room() -> None:
    large, small = part(b"x" * 2**20, more=True), part(b"x" * 60_000)

    async def crowd() -> None:
        guard = guard_of(echo)
        async with anyio.create_task_group() as group:
            for _ in range(MOST_HELD // 2**20):
                group.start_soon(call, guard, large)
            await anyio.wait_all_tasks_blocked()
            refused = await call(guard, part(b"x" * 100_000))
            assert status(refused) == 429
            assert (b"retry-after", b"1") in refused[0]["headers"]
            assert status(await call(guard, small)) == 200
            group.cancel_scope.cancel()
        assert status(await call(guard, part(b"x" * 100_000))) == 200

    anyio.run(crowd)


def test_a_body_that_does_not_come_is_waited_for_so_long() -> None:
    async def slow() -> list[Message]:
        with anyio.fail_after(5):
            return await call(guard_of(echo, body_seconds=0.05), part(b"x", more=True))

    answered = anyio.run(slow)
    assert (status(answered), json.loads(answered[1]["body"])["status"]) == (408, 408)


def test_one_request_more_than_is_worked_on_is_told_to_come_again() -> None:
    release = anyio.Event()

    async def busy(_scope: Scope, _receive: Receive, send: Send) -> None:
        await release.wait()
        await echo(_scope, _receive, send)

    async def crowd() -> None:
        guard = guard_of(busy)
        answers: list[list[Message]] = []

        async def one() -> None:
            answers.append(await call(guard, part(b"")))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            (refused,) = answers
            assert status(refused) == 429
            assert (b"retry-after", b"1") in refused[0]["headers"]
            release.set()
        assert [status(answer) for answer in answers[1:]] == [200, 200]
        assert status(await call(guard, part(b""))) == 200

    anyio.run(crowd)


def test_bodies_that_do_not_come_keep_nobody_out() -> None:
    async def crowd() -> None:
        guard = guard_of(echo)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(call, guard)
            await anyio.wait_all_tasks_blocked()
            assert status(await call(guard, part(b""))) == 200
            group.cancel_scope.cancel()

    anyio.run(crowd)


def test_headers_that_contradict_each_other_and_a_body_of_a_get_are_refused() -> None:
    async def ask(method: str, *headers: tuple[bytes, bytes]) -> int:
        return status(await call(guard_of(echo), part(b""), method=method, path="/mcp", more=headers))

    length, chunked = (b"content-length", b"1"), (b"transfer-encoding", b"chunked")
    for method, headers in (("POST", (length, chunked)), ("GET", (length,)), ("GET", (chunked,))):
        assert anyio.run(ask, method, *headers) == 400
    assert anyio.run(ask, "GET") == anyio.run(ask, "GET", (b"content-length", b"0")) == 200


def test_an_origin_is_a_site_of_the_web_and_stands_once_as_the_host_does() -> None:
    async def ask(*origins: bytes, name: bytes = b"origin") -> int:
        more = [(name, origin) for origin in origins]
        return status(await call(guard_of(echo), part(b""), more=more))

    assert anyio.run(ask, b"http://localhost") == anyio.run(ask, b"https://localhost") == 200
    assert anyio.run(ask, b"ftp://localhost") == anyio.run(ask, b"://localhost") == 403
    assert anyio.run(ask, b"http://localhost", b"http://localhost") == 400
    assert anyio.run(lambda: ask(b"localhost", name=b"host")) == 400


def test_the_page_of_another_site_may_lead_here_and_no_more() -> None:
    async def ask(method: str, mode: bytes, dest: bytes = b"document") -> list[Message]:
        more = [(b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", mode), (b"sec-fetch-dest", dest)]
        return await call(guard_of(echo), part(b""), method=method, path="/", more=more)

    followed = anyio.run(ask, "GET", b"navigate")
    assert status(followed) == 200
    assert (b"cross-origin-resource-policy", b"same-origin") in followed[0]["headers"]
    for method, mode, dest in (
        ("POST", b"navigate", b"document"),
        ("GET", b"no-cors", b"image"),
        ("GET", b"navigate", b"iframe"),
    ):
        assert status(anyio.run(ask, method, mode, dest)) == 403


def test_a_reader_that_reads_nothing_is_left() -> None:
    said = [part(b"")]

    async def stuck(_message: Message) -> None:
        await anyio.sleep_forever()

    async def receive() -> Message:
        if not said:
            await anyio.sleep_forever()
        return said.pop()

    async def run() -> None:
        scope = {"type": "http", "method": "POST", "path": "/v1/research", "headers": HEADERS}
        with anyio.fail_after(5):
            await guard_of(echo, send_seconds=0.05)(scope, receive, stuck)

    anyio.run(run)
    assert not said


def test_a_credential_that_is_no_text_is_a_wrong_one() -> None:
    async def ask() -> list[Message]:
        return await call(
            guard_of(echo, token="x" * 16), part(b""), more=[(b"authorization", b"Basic \xe9\xe9")]
        )

    assert status(anyio.run(ask)) == 401


def test_a_defect_before_any_answer_is_told_and_counted() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    metrics = Metrics()
    allowed = Policy(names={"localhost"}, token=None, max_requests=2)
    guard = Guard(broken, policy=allowed, metrics=metrics)
    answered = anyio.run(call, guard, part(b""))
    assert (status(answered), json.loads(answered[1]["body"])["status"]) == (500, 500)
    assert b'status="500"' in generate_latest(metrics.registry)


def test_no_more_calls_wait_for_a_worker_than_a_bounded_number() -> None:
    no_app: Any = object()
    release = threading.Event()

    async def crowd() -> None:
        service = Service(no_app, workers=1)
        async with anyio.create_task_group() as group:
            for _ in range(1 + MOST_WAITING):
                group.start_soon(service.run, release.wait)
            await anyio.wait_all_tasks_blocked()
            try:
                with pytest.raises(Overloaded):
                    await service.run(release.wait)
            finally:
                release.set()

    anyio.run(crowd)
