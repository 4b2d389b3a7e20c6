import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.settings.model import Server
from kr.sources.reasons import (
    MAX_QUOTED,
    MAX_REASON,
    one_line,
    pause_asked_for,
    quoted,
    secrets_of,
    without_secrets,
)


@given(st.text(max_size=2000))
def test_a_reason_is_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert len(line) <= MAX_REASON
    assert line == line.strip()


@given(st.text(alphabet=st.sampled_from('ab <>/!`*#-_|[]()"“”\\\n\u200b\x1b'), max_size=400))
def test_what_a_source_says_stands_in_quotation_marks_and_is_no_markup(text: str) -> None:
    words = quoted(text)
    assert words.isprintable()
    assert len(words) <= MAX_QUOTED + 2
    assert words[0] == words[-1] == '"'
    assert not re.search(r'[<>`#|\\"“”]|--|\]\(|(?<!\*)\*\*?(?!\*)', words[1:-1])


def test_control_and_bidirectional_characters_go() -> None:
    assert one_line("a\x1b[31mb\u202ec\r\nd\u200be") == "abc de"
    assert one_line("a\x1b]0;title\x07 b\ue000c\u0378d") == "a b c d"


@given(st.text(alphabet="abcdefgh0123-_", min_size=4, max_size=30))
def test_no_secret_stays(secret: str) -> None:
    url = f"https://{secret}:{secret}@example.org/mcp?key={secret}"
    args = ("--api-key", secret, f"--token={secret}")
    for server in (
        Server(url=url, headers={"Authorization": f"Bearer {secret}"}),
        Server(command="npx", args=args, env={"KEY": secret}),
    ):
        for text in (
            f"bad header 'Bearer {secret}'",
            f"https://{secret}:{secret}@example.org/?key={secret}",
            secret,
        ):
            assert secret not in without_secrets(text, secrets_of(server)).replace("***", "")


def test_each_place_of_a_secret_is_known() -> None:
    remote = Server(url="https://user1:pass1@h/x?a=query1", headers={"Authorization": "Bearer head1"})
    assert set(secrets_of(remote)) >= {"user1", "pass1", "query1", "head1"}
    args = ("-y", "package", "--api-key", "argument1", "--token=argument2")
    process = Server(command="npx", args=args, env={"A": "value1"})
    assert set(secrets_of(process)) >= {"argument1", "argument2", "value1"}


def test_ordinary_arguments_are_no_secrets() -> None:
    assert secrets_of(Server(command="npx", args=("-y", "@upstash/context7-mcp"))) == ()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1" * 400, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_of_seconds(value: str | None, seconds: float | None) -> None:
    assert pause_asked_for(429, value) == seconds


@given(st.text(max_size=60))
def test_retry_after_never_raises(value: str) -> None:
    found = pause_asked_for(429, value)
    assert found is None or found >= 0
