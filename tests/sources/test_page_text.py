"""What kind of text a page is, and its characters: as declared, as it is, and when the two differ."""

import gzip
import os
from encodings import aliases

import pytest
from kr.sources.html_markdown import to_markdown

from kr.deadline import Deadline
from kr.errors import SourceFailure
from kr.sources.http_exchange import FetchRefused, Network
from kr.sources.safe_fetch import Page, decode, fetch_page, media_type
from tests.support.web_servers import page, web_server


def fetch(url: str) -> Page:
    return fetch_page(url, network=Network(allow_private=True), deadline=Deadline(10))


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html", "text/html"),
        ("Text/HTML; charset=x", "text/html"),
        ("application/xhtml+xml", "application/xhtml+xml"),
        ("text/markdown;variant=GFM", "text/markdown"),
        ("application/json", "application/json"),
        ("application/vnd.api+json", "application/vnd.api+json"),
        ("text/x-rst", "text/x-rst"),
        ("application/pdf", None),
        ("image/svg+xml", None),
        ("application/octet-stream", None),
        ("text/html, application/pdf", None),
        ("html", None),
        ("text/", None),
        ("text/javascript", None),
        ("text/css; charset=utf-8", None),
        ("text/x-ecmascript", None),
        ("text/event-stream", None),
    ],
)
def test_only_text_is_read(content_type: str, kind: str | None) -> None:
    assert media_type(content_type, b"<html>") == kind
    with web_server({"/": page("<html>x", content_type)}) as server:
        if kind:
            assert fetch(server.url + "/").media_type == kind
        else:
            with pytest.raises(FetchRefused, match="no text"):
                fetch(server.url + "/")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"<!DOCTYPE html><html>", "text/html"),
        (b"\xef\xbb\xbf \n<html lang=en>", "text/html"),
        (b"<!-- c -->\n<!doctype HTML>", "text/html"),
        (b"%PDF-1.7", None),
        (b"\x89PNG", None),
        (b"plain words", None),
        (b"<svg>", None),
        (b"", None),
    ],
)
def test_a_page_without_a_type_must_look_like_html(start: bytes, kind: str | None) -> None:
    assert media_type("", start) == kind


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        ("é".encode(), "text/html", "é"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        ("“é”".encode("cp1252"), "text/html; charset=iso-8859-1", "“é”"),
        ("é".encode(), "text/html; charset=iso-8859-1", "é"),
        ("日本語".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本語"),
        ("日本語".encode("iso2022_jp"), "text/html; charset=iso-2022-jp", "日本語"),
        (b'<meta charset="gb18030">' + "中文".encode("gb18030"), "text/html", '<meta charset="gb18030">中文'),
        (b"\xff\xfe" + "é".encode("utf-16-le"), "text/html; charset=utf-8", "é"),
        (b"\xef\xbb\xbfa", "text/html; charset=latin-1", "a"),
        (b"\xfd\xfe\xff", "text/html; charset=utf-8", "���"),
        (b"<p>plain</p>", "text/html; charset=utf-16", "<p>plain</p>"),
        (b"<p>odd</p>!", "text/html; charset=utf-32", "<p>odd</p>!"),
        (b"<meta charset=utf-16le>", "text/html", "<meta charset=utf-16le>"),
        ("<meta charset=utf-16>é".encode(), "text/html", "<meta charset=utf-16>é"),
        ("<meta charset=utf-16>é".encode("cp1252"), "text/html; charset=latin-1", "<meta charset=utf-16>é"),
        ("<p>日本語</p>".encode("utf-32"), "text/html", "<p>日本語</p>"),
        (b"plain words", "text/html; charset=cp037", "plain words"),
        (b"+ADw-script+AD4-", "text/html; charset=utf-7", "+ADw-script+AD4-"),
        (rb"\x3cb\x3e", "text/html; charset=unicode_escape", r"\x3cb\x3e"),
        (b"abc-", "text/html; charset=punycode", "abc-"),
        (b"YWJj", "text/html; charset=base64", "YWJj"),
        (b"a\xc3", "text/html; charset=utf-8", "a�"),
        ("Café, naïve".encode("cp1252"), "text/html", "Café, naïve"),
        ("Ärger über".encode() + b"\xe9 x", "text/html; charset=utf-8", "Ärger über� x"),
        (b"\xc4\xe3\xba\xc3 x", "text/html; charset=utf-8", "��� x"),
    ],
)
def test_characters_are_read_as_they_were_meant(data: bytes, content_type: str, text: str) -> None:
    assert decode(data, content_type) == text


@pytest.mark.parametrize(
    "charset", ["utf-16", "utf-32", "hz", "iso2022_kr", "\x00", "é", "a" * 500, "..", "idna"]
)
def test_a_lying_charset_never_raises(charset: str) -> None:
    assert isinstance(decode(os.urandom(2001), f"text/html; charset={charset}"), str)


def test_no_charset_makes_another_text_of_plain_ascii() -> None:
    text = "<!doctype html><p>Plain words, 3.14 (see #2); a@b.c &amp; 'so on'.</p>\n"
    for charset in {*aliases.aliases, *aliases.aliases.values()}:
        assert decode(text.encode(), f"text/html; charset={charset}") == text, charset
        assert decode(f"<meta charset={charset}>{text}".encode(), "text/html").endswith(text), charset


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"
BINARY = {
    "PNG": PNG,
    "PNG without NUL": PNG.replace(b"\0", b""),
    "PDF": b"%PDF-1.7\n1 0 obj",
    "JPEG": b"\xff\xd8\xff\xe0JFIF",
    "GIF": b"GIF89a...",
    "zip": b"PK\x03\x04....",
    "gzip": gzip.compress(b"text"),
    "NULs between words": b"<html><p>words\0words\0words\0\0</p>",
    "16-bit numbers": b"".join(number.to_bytes(2, "little") for number in range(200)),
    "NULs alone": b"\0" * 400,
}


@pytest.mark.parametrize("body", BINARY.values(), ids=BINARY.keys())
@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=utf-16", "application/json"])
def test_bytes_that_are_no_text_are_refused_whatever_they_are_called(body: bytes, content_type: str) -> None:
    with (
        web_server({"/": page(body, content_type)}) as server,
        pytest.raises(FetchRefused, match="the content is no text"),
    ):
        fetch(server.url + "/")


def test_a_stray_control_character_makes_no_text_binary() -> None:
    with web_server(
        {"/": page(b"<!doctype html><main><p>Words and \0 more\x07 words.</p></main>")}
    ) as server:
        found = fetch(server.url + "/")
    assert to_markdown(found.text, media_type=found.media_type, url=found.url).text == "Words and more words."


@pytest.mark.parametrize("charset", ["utf-16", "utf-32"])
def test_wide_characters_are_text(charset: str) -> None:
    text = "<!doctype html><p>Words of a page, 日本語</p>"
    with web_server({"/": page(text.encode(charset))}) as server:
        assert fetch(server.url + "/").text == text


def test_a_page_cut_in_a_wide_character_keeps_what_is_whole() -> None:
    data = ("<p>😀" * 9).encode("utf-16")
    assert decode(data[:-2], "text/html", is_cut=True) == "<p>😀" * 8 + "<p>"


def test_an_empty_page_that_was_cut_says_so() -> None:
    reason = r"^the page is empty in the first 5 MiB, all that was read$"
    with (
        web_server({"/": page(b" " * 65536, repeat=90)}) as server,
        pytest.raises(SourceFailure, match=reason),
    ):
        fetch(server.url + "/")
