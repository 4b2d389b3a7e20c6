"""Fetching strangers' pages: attacks against real servers, with name services and networks of our own."""

import gzip
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kr import cancellation
from kr.documents.text import MAX_TEXT
from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import Passage
from kr.sources.fetch import fetch_page
from kr.sources.network import FetchRefused, Network, address_refusal, run
from tests.support.web_servers import Reply, Request, page, redirect, refused_url, web_server

OPEN = Network(allow_private=True)
STRICT = Network(allow_private=False)


def fetch(url: str, network: Network = OPEN, seconds: float = 10.0) -> Passage:
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
    "localhost with a dot": "http://localhost.:{port}/secret",
    "decimal": "http://2130706433:{port}/secret",
    "hexadecimal": "http://0x7f000001:{port}/secret",
    "unspecified": "http://0.0.0.0:{port}/secret",
    "fullwidth digits": "http://１２７.0.0.1:{port}/secret",
    "user name": "http://docs.example@127.0.0.1:{port}/secret",
    "backslash": "http://docs.example\\@127.0.0.1:{port}/secret",
    "line break": "http://127.0.0.1:{port}/secret\r\nHost: a",
    "IPv6 loopback": "http://[::1]:{port}/secret",
    "IPv4 mapped": "http://[::ffff:127.0.0.1]:{port}/secret",
    "NAT64": "http://[64:ff9b::7f00:1]:{port}/secret",
    "zone": "http://[fe80::1%25lo]:{port}/secret",
    "metadata": "http://169.254.169.254/secret",
    "private": "http://10.0.0.1:{port}/secret",
    "file": "file:///etc/passwd",
    "no scheme": "127.0.0.1:{port}/secret",
    "no host": "http:///secret",
    "no address": "http://[::1/secret",
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


@pytest.mark.parametrize("name", ["loopback", "backslash", "metadata", "file"])
def test_no_redirect_leads_where_an_address_may_not(name: str, secret: Any) -> None:
    with web_server({"/": redirect(ATTACKS[name].format(port=secret.port))}) as server:
        network = Network(
            allow_private=False, resolve=names(docs_test=["93.184.216.34"]), transport=Rerouted(server.port)
        )
        with pytest.raises(SourceFailure):
            fetch("http://docs.test/", network)
        assert [request.target for request in server.requests()] == ["/"]
    assert secret.requests() == []


ANSWERS = {
    "loopback": ["127.0.0.1"],
    "mixed, the private one last": ["93.184.216.34", "::1"],
    "link-local with a zone": ["fe80::1%eth0"],
    "NAT64 of a private address": ["64:ff9b::a00:1"],
    "6to4 of a private address": ["2002:a00:1::1"],
    "site-local": ["fec0::1"],
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
    """169.254.169.254 fe80::1 fd00:ec2::254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 0.0.0.0 :: 224.0.0.1 ff02::1 255.255.255.255
    100.100.100.200 168.63.129.16 2002:a9fe:a9fe:: 192.0.0.192 64:ff9b::c000:8""".split(),
)
def test_some_addresses_are_refused_even_where_private_ones_are_allowed(address: str) -> None:
    assert address_refusal(address, allow_private=True)


@pytest.mark.parametrize(
    "address", ["10.1.2.3", "127.0.0.1", "::1", "fd12::1", "100.64.0.9", "198.18.0.1", "::ffff:192.168.0.1"]
)
def test_private_addresses_are_allowed_on_request(address: str) -> None:
    assert address_refusal(address, allow_private=True) is None
    assert address_refusal(address, allow_private=False) is not None


def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    with web_server(lambda request: page(request.headers["host"])) as server:
        backend = Rerouted(server.port)
        network = Network(allow_private=False, resolve=lambda _host: next(answers), transport=backend)
        assert fetch("http://Docs.Test:8080/a", network).text == "docs.test:8080"
    assert backend.asked == [("93.184.216.34", 8080)]
    assert next(answers) == ["127.0.0.1"]  # it was not asked a second time


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
    with web_server(chain(6)) as server, pytest.raises(FetchRefused, match="more than 5 redirects"):
        fetch(server.url + "/x/0")


# --- bodies ---------------------------------------------------------------------------------------------


def encoded(body: bytes, encoding: str, **more: Any) -> Reply:
    return Reply(headers={"content-type": "text/plain", "content-encoding": encoding}, body=body, **more)


def test_a_bomb_is_cut_while_it_is_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b"a" * 2**20) for _ in range(300)) + packer.flush()
    with web_server({"/": encoded(bomb, "gzip")}) as server:
        started = time.monotonic()
        found = fetch(server.url + "/")
    assert len(found.text) == MAX_TEXT
    assert found.is_cut
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "reply",
    [
        encoded(gzip.compress(gzip.compress(b"x")), "gzip, gzip"),
        encoded(b"x", "br"),
        encoded(b"no gzip at all", "gzip"),
        page("cut in the middle", cut=True),
        page("  \n "),
        Reply(status=404, body=b"not here"),
        Reply(raw=b""),
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


def test_a_name_service_that_hangs_holds_nobody_up() -> None:
    stop = threading.Event()

    def never(_host: str) -> Sequence[str]:
        stop.wait(20)
        return []

    started = time.monotonic()
    with pytest.raises(SourceTimeout):
        fetch("http://slow.test/", Network(allow_private=True, resolve=never), seconds=0.6)
    assert time.monotonic() - started < 15
    stop.set()


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
    with web_server({"/": page("secured")}, serving) as server:
        backend = Rerouted(server.port, trusting)
        network = Network(allow_private=False, resolve=known, transport=backend)
        assert fetch("https://docs.test/", network).text == "secured"
        assert backend.asked == [("93.184.216.34", None)]
        with pytest.raises(SourceFailure, match="certificate is not trusted"):
            fetch("https://other.test/", network)
