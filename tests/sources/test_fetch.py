"""Fetching strangers' pages: attacks against real servers, with name services and networks of our own."""

import gzip
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kr import cancellation
from kr.errors import SourceFailure, SourceTimeout
from kr.sources.fetch import MAX_PAGE, Page, checked_url, fetch_page
from kr.sources.network import FetchRefused, Network, address_refusal, run
from tests.support.web_servers import Reply, Request, page, redirect, refused_url, web_server

OPEN = Network(allow_private=True)
STRICT = Network(allow_private=False)


def fetch(url: str, network: Network = OPEN, seconds: float = 10.0) -> Page:
    return run(lambda: fetch_page(url, network=network), timeout=seconds)


def names(**known: Sequence[str]) -> Any:
    """A name service that knows these names, with dots written as underscores."""

    def resolve(host: str) -> Sequence[str]:
        found = known.get(host.replace(".", "_"))
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    return resolve


class Rerouted(httpx2.AsyncBaseTransport):
    """A network in which every connection ends at one loopback port; notes where it was to go."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.port = port
        self.asked: list[tuple[str, int | None]] = []
        self._inner = httpx2.AsyncHTTPTransport(verify=tls or ssl.create_default_context())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append((request.url.host, request.url.port))
        request.url = request.url.copy_with(host="127.0.0.1", port=self.port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


ATTACKS = {
    "loopback": "http://127.0.0.1:{port}/secret",
    "loopback of another number": "http://127.1.2.3:{port}/secret",
    "localhost": "http://localhost:{port}/secret",
    "localhost with a dot": "http://localhost.:{port}/secret",
    "localhost in capitals": "http://LOCALHOST:{port}/secret",
    "below localhost": "http://docs.localhost:{port}/secret",
    "decimal": "http://2130706433:{port}/secret",
    "octal": "http://0177.0.0.1:{port}/secret",
    "hexadecimal": "http://0x7f000001:{port}/secret",
    "hexadecimal parts": "http://0x7f.0.0.1:{port}/secret",
    "short": "http://127.1:{port}/secret",
    "zero": "http://0:{port}/secret",
    "unspecified": "http://0.0.0.0:{port}/secret",
    "trailing dot": "http://127.0.0.1.:{port}/secret",
    "two trailing dots": "http://127.0.0.1..:{port}/secret",
    "percent encoded": "http://%31%32%37.0.0.1:{port}/secret",
    "fullwidth digits": "http://１２７.0.0.1:{port}/secret",
    "ideographic dots": "http://127。0。0。1:{port}/secret",
    "circled letters": "http://ⓛocalhost:{port}/secret",
    "user name": "http://docs.example@127.0.0.1:{port}/secret",
    "password": "http://a:b@127.0.0.1:{port}/secret",
    "empty user name": "http://@127.0.0.1:{port}/secret",
    "backslash": "http://docs.example\\@127.0.0.1:{port}/secret",
    "tab in the host": "http://127.0.0\t.1:{port}/secret",
    "line break": "http://127.0.0.1:{port}/secret\r\nHost: a",
    "IPv6 loopback": "http://[::1]:{port}/secret",
    "IPv6 unspecified": "http://[::]:{port}/secret",
    "IPv4 mapped": "http://[::ffff:127.0.0.1]:{port}/secret",
    "IPv4 mapped in hexadecimal": "http://[::ffff:7f00:1]:{port}/secret",
    "IPv4 compatible": "http://[::127.0.0.1]:{port}/secret",
    "6to4": "http://[2002:7f00:1::]:{port}/secret",
    "NAT64": "http://[64:ff9b::7f00:1]:{port}/secret",
    "Teredo": "http://[2001:0:7f00:1::1]:{port}/secret",
    "zone": "http://[fe80::1%25lo]:{port}/secret",
    "metadata": "http://169.254.169.254/secret",
    "metadata of Amazon": "http://[fd00:ec2::254]/secret",
    "carrier": "http://100.64.0.1:{port}/secret",
    "private": "http://10.0.0.1:{port}/secret",
    "multicast": "http://224.0.0.1:{port}/secret",
    "broadcast": "http://255.255.255.255:{port}/secret",
    "file": "file:///etc/passwd",
    "ftp": "ftp://127.0.0.1:{port}/secret",
    "no scheme": "127.0.0.1:{port}/secret",
    "no host": "http:///secret",
    "javascript": "javascript:alert(1)",
    "port zero": "http://docs.example:0/",
    "port too high": "http://docs.example:70000/",
    "no number as port": "http://docs.example:80x/",
    "no address": "http://[::1/secret",
    "underlined nonsense": "http://a..b/",
    "too long": "http://docs.example/" + "a" * 9000,
}


@pytest.fixture(scope="module")
def secret() -> Iterator[Any]:
    with web_server(lambda request: page(f"secret {request.path}")) as server:
        yield server


@pytest.mark.parametrize("url", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_address_in_disguise_gets_through(url: str, secret: Any) -> None:
    with pytest.raises(SourceFailure) as caught:
        fetch(url.format(port=secret.port), STRICT)
    assert caught.value.reason.isprintable()
    assert len(caught.value.reason) < 100
    assert secret.requests() == []


@pytest.mark.parametrize("url", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_redirect_leads_where_an_address_may_not(url: str, secret: Any) -> None:
    location = url.format(port=secret.port)
    if "\r" in location or location.startswith(("127", "http:///")):
        pytest.skip("no header can say this, or it is a path there")
    with web_server({"/": redirect(location)}) as server:
        network = Network(
            allow_private=False, resolve=names(docs_test=["93.184.216.34"]), transport=Rerouted(server.port)
        )
        with pytest.raises((FetchRefused, SourceFailure)):
            fetch("http://docs.test/", network)
        assert [request.target for request in server.requests()] == ["/"]
    assert secret.requests() == []


ANSWERS = {
    "loopback": ["127.0.0.1"],
    "mixed, the private one last": ["93.184.216.34", "127.0.0.1"],
    "mixed, the private one first": ["10.0.0.1", "93.184.216.34"],
    "mixed families": ["93.184.216.34", "::1"],
    "mapped": ["::ffff:127.0.0.1"],
    "link-local with a zone": ["fe80::1%eth0"],
    "metadata": ["169.254.169.254"],
    "NAT64 of a private address": ["64:ff9b::a00:1"],
    "6to4 of a private address": ["2002:a00:1::1"],
    "carrier": ["100.100.0.1"],
    "Azure's host": ["168.63.129.16"],
    "site-local": ["fec0::1"],
    "of a protocol": ["192.0.0.8"],
    "NAT64 of a protocol's": ["64:ff9b::c000:9"],
    "documentation": ["203.0.113.1"],
    "nonsense": ["not an address"],
}


@pytest.mark.parametrize("addresses", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_name_with_one_refused_address_is_refused(addresses: list[str], secret: Any) -> None:
    backend = Rerouted(secret.port)
    network = Network(allow_private=False, resolve=names(evil_test=addresses), transport=backend)
    with pytest.raises(FetchRefused):
        fetch(f"http://evil.test:{secret.port}/secret", network)
    assert backend.asked == []


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "2002:a9fe:a9fe::",
        "192.0.0.8",
        "192.0.0.170",
        "64:ff9b::c000:8",
    ],
)
def test_some_addresses_are_refused_even_where_private_ones_are_allowed(address: str) -> None:
    assert address_refusal(address, allow_private=True)
    network = Network(allow_private=True, resolve=names(evil_test=[address]))
    with pytest.raises(FetchRefused):
        fetch("http://evil.test/", network)


@pytest.mark.parametrize(
    "address", ["10.1.2.3", "127.0.0.1", "::1", "fd12::1", "100.64.0.9", "::ffff:192.168.0.1"]
)
def test_private_addresses_are_allowed_on_request(address: str) -> None:
    assert address_refusal(address, allow_private=True) is None
    assert address_refusal(address, allow_private=False) is not None


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses_pass(address: str) -> None:
    assert address_refusal(address, allow_private=False) is None


def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    with web_server(lambda request: page(request.headers["host"])) as server:
        backend = Rerouted(server.port)
        network = Network(allow_private=False, resolve=lambda _host: next(answers), transport=backend)
        assert fetch("http://Docs.Test.:8080/a", network).text == "docs.test:8080"
    assert backend.asked == [("93.184.216.34", 8080)]
    assert next(answers) == ["127.0.0.1"]  # it was not asked a second time


def test_an_address_that_does_not_answer_gives_way_to_the_next() -> None:
    with web_server({"/": page("here")}) as server:
        network = Network(allow_private=True, resolve=names(two_test=["::1", "127.0.0.1"]))
        assert fetch(f"http://two.test:{server.port}/", network).text == "here"


def test_nothing_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, refused_url())
    cookie = {"/": Reply(status=302, headers={"location": "/b", "set-cookie": "a=b"}), "/b": page("done")}
    with web_server(cookie) as server:
        assert fetch(server.url + "/").text == "done"
        for request in server.requests():
            assert not {"cookie", "authorization", "referer", "proxy-authorization"} & set(request.headers)
            assert request.headers["accept-encoding"] == "gzip"


def chain(length: int) -> Any:
    def respond(request: Request) -> Reply:
        number = int(request.path.rpartition("/")[2])
        return page("the end") if number >= length else redirect(str(number + 1), status=301 + number % 3)

    return respond


def test_five_redirects_are_followed_and_no_sixth() -> None:
    with web_server(chain(5)) as server:
        found = fetch(server.url + "/x/0")
        assert (found.text, found.url) == ("the end", server.url + "/x/5")
    with web_server(chain(6)) as server:
        with pytest.raises(FetchRefused, match="more than 5 redirects"):
            fetch(server.url + "/x/0")
        assert len(server.requests()) == 6


@pytest.mark.parametrize("headers", [{}, {"location": "http://[/"}, {"location": "\x01"}])
def test_a_redirect_to_nowhere_is_a_failure(headers: dict[str, str]) -> None:
    with web_server({"/": Reply(status=302, headers=headers)}) as server, pytest.raises(SourceFailure):
        fetch(server.url + "/")


# --- bodies ---------------------------------------------------------------------------------------------


def encoded(body: bytes, encoding: str, **more: Any) -> Reply:
    return Reply(headers={"content-type": "text/plain", "content-encoding": encoding}, body=body, **more)


PACKED = {
    "gzip": ("gzip", gzip.compress(b"text " * 1000)),
    "zeros after it": ("gzip", gzip.compress(b"text " * 1000) + b"\0" * 5000),
    "identity": ("identity", b"text " * 1000),
}


@pytest.mark.parametrize(("encoding", "body"), PACKED.values(), ids=PACKED.keys())
def test_compressed_pages_are_unpacked(encoding: str, body: bytes) -> None:
    with web_server({"/": encoded(body, encoding)}) as server:
        found = fetch(server.url + "/")
    assert found.text == "text " * 1000
    assert not found.is_cut


def test_a_bomb_is_cut_while_it_is_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b"a" * 2**20) for _ in range(300)) + packer.flush()
    with web_server({"/": encoded(bomb, "gzip")}) as server:
        started = time.monotonic()
        found = fetch(server.url + "/")
    assert len(found.text) == MAX_PAGE
    assert found.is_cut
    assert time.monotonic() - started < 20


def test_a_page_without_end_is_cut() -> None:
    reply = Reply(
        headers={"content-type": "text/plain", "content-length": "999999999999"},
        body="é".encode() * 32768,
        repeat=999,
    )
    with web_server({"/": reply}) as server:
        found = fetch(server.url + "/")
    assert found.is_cut
    assert set(found.text) == {"é"}
    assert len(found.text.encode()) <= MAX_PAGE


@pytest.mark.parametrize(
    "reply",
    [
        encoded(gzip.compress(gzip.compress(b"x")), "gzip, gzip"),
        encoded(b"x", "br"),
        encoded(zlib.compress(b"x"), "deflate"),
        encoded(b"no gzip at all", "gzip"),
        encoded(b"\x1f\x8b\x08\x00" + b"\xff" * 500, "gzip"),
        page("cut in the middle", cut=True),
        page(""),
        page("  \n "),
        Reply(status=404, body=b"not here"),
        Reply(status=500),
        Reply(status=304),
        Reply(raw=b""),
        Reply(raw=b"garbage\r\n\r\n"),
        Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nabc"),
        Reply(raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
        Reply(raw=b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000),
        Reply(raw=b"\x00" * 5000),
    ],
)
def test_what_is_broken_is_a_short_failure(reply: Reply) -> None:
    with web_server({"/": reply}) as server, pytest.raises(SourceFailure) as caught:
        fetch(server.url + "/")
    assert not isinstance(caught.value, SourceTimeout)
    assert caught.value.reason.isprintable()
    assert 0 < len(caught.value.reason) < 200
    assert "127.0.0.1" not in caught.value.reason


def test_a_server_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(SourceFailure, match="refused"):
        fetch(refused_url())
    with pytest.raises(SourceFailure, match="not known"):
        fetch("http://nowhere.test/", Network(allow_private=True, resolve=names()))


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=iso-8859-1", "<p>naïve “text”</p>".encode("cp1252")),
        ("text/html; charset=iso-8859-1", "<p>naïve “text”</p>".encode()),
        ("text/html", '<meta charset="gb2312"><p>文档</p>'.encode("gb2312")),
        ("text/plain; charset=utf-7", "naïve".encode("cp1252")),
    ],
)
def test_a_page_is_read_in_its_own_characters(content_type: str, body: bytes) -> None:
    with web_server({"/": page(body, content_type)}) as server:
        text = fetch(server.url + "/").text
    assert "�" not in text
    assert "naïve" in text or "文档" in text


@pytest.mark.parametrize("content_type", ["image/png", "text/css", "application/pdf", "text/html\x01", ""])
def test_what_is_no_text_is_refused(content_type: str) -> None:
    with web_server({"/": page(b"%PDF-1.7 \0\1", content_type)}) as server, pytest.raises(FetchRefused):
        fetch(server.url + "/")


# --- time -----------------------------------------------------------------------------------------------

SLOW = {
    "silent": Reply(delay=30),
    "trickling head": Reply(raw=b""),
    "trickling body": page("x" * 1000, pause=0.05),
    "endless informational answers": Reply(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000),
}


@pytest.mark.parametrize("kind", [*SLOW, "name service", "connection"])
def test_one_deadline_holds_for_everything(kind: str) -> None:
    stop = threading.Event()

    def never(_host: str) -> Sequence[str]:
        stop.wait(20)
        return []

    started = time.monotonic()
    try:
        with (
            ExitStack() as opened,
            _trickling_head() as slow_head,
            web_server({"/": SLOW.get(kind, Reply())}) as server,
        ):
            url, network = f"{server.url}/", OPEN
            if kind == "trickling head":
                url = slow_head
            if kind == "name service":
                url, network = "http://slow.test/", Network(allow_private=True, resolve=never)
            if kind == "connection":
                url = f"http://127.0.0.1:{opened.enter_context(full_listener())}/"
            if kind == "endless informational answers":
                with pytest.raises(SourceFailure):
                    fetch(url, network, seconds=0.6)
            else:
                with pytest.raises(SourceTimeout):
                    fetch(url, network, seconds=0.6)
            assert time.monotonic() - started < 15
    finally:
        stop.set()


@contextmanager
def full_listener() -> Iterator[int]:
    """A port that answers no further connection: nobody takes those that wait."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(3):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield port


class _trickling_head:  # noqa: N801  # a context manager
    """A server that sends its head a byte at a time."""

    def __enter__(self) -> str:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def _serve(self) -> None:
        self._listener.settimeout(0.1)
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection:
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
                    while not self._stop.wait(0.1):
                        connection.sendall(b"a")
                except OSError:
                    continue

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._listener.close()


def test_a_fetch_can_be_broken_off() -> None:
    on_cancel = cancellation.Cancellation()
    with web_server({"/": Reply(delay=30)}) as server:
        threading.Timer(0.3, on_cancel.cancel).start()
        started = time.monotonic()
        with pytest.raises((SourceTimeout, cancellation.Cancelled)):
            on_cancel.run(lambda: fetch(server.url + "/", seconds=30))
        assert time.monotonic() - started < 10


# --- TLS ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=docs.test"
    )
    more = ["-addext", "subjectAltName=DNS:docs.test", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run([*command.split(), *more], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl here")
    return key, cert


def test_tls_verifies_the_name_and_not_the_address(certificate: tuple[Path, Path]) -> None:
    key, cert = certificate
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(cert, key)
    trusting = ssl.create_default_context(cafile=str(cert))
    known = names(docs_test=["93.184.216.34"], other_test=["93.184.216.34"])
    with web_server({"/": page("secured"), "/down": redirect("http://docs.test/")}, serving) as server:
        backend = Rerouted(server.port, trusting)
        network = Network(allow_private=False, resolve=known, transport=backend)
        assert fetch("https://docs.test/", network).text == "secured"
        assert backend.asked == [("93.184.216.34", None)]
        with pytest.raises(SourceFailure, match="certificate is not trusted"):
            fetch("https://other.test/", network)
        with pytest.raises(FetchRefused, match="from https to http"):
            fetch("https://docs.test/down", network)
        with pytest.raises(SourceFailure, match="certificate is not trusted"):
            fetch(
                "https://docs.test/",
                Network(allow_private=False, resolve=known, transport=Rerouted(server.port)),
            )


def test_an_address_keeps_its_characters() -> None:
    assert str(checked_url("https://bücher.example/ä?q=ü b".replace(" ", "%20"))) == (
        "https://xn--bcher-kva.example/%C3%A4?q=%C3%BC%20b"
    )
