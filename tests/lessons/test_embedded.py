"""The structured return among an agent's last words."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import InvalidRequest
from kr.fields import read_document
from kr.lessons.embedded import LOOKED_AT, returned_documents

RETURN = {"story_key": "3-1", "status": "failure", "errors": ["Use Foo.bar() instead of Foo.baz()"]}
LINE = json.dumps(RETURN)
PRETTY = json.dumps(RETURN, indent=2)
YAML = "story_key: 3-1\nstatus: failure\nerrors:\n- Use Foo.bar() instead of Foo.baz()\n"


def read(message: str) -> object:
    """Read the first of the texts that is a mapping, as the hook does."""
    for text in returned_documents(message):
        try:
            data = read_document(text.encode())
        except InvalidRequest:
            continue
        return data.get("return", data)
    return None


@pytest.mark.parametrize(
    "body", [LINE, PRETTY, YAML, json.dumps({"return": RETURN}), "return:\n  " + YAML.replace("\n", "\n  ")]
)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "{}\n",
        "I tried this.\n{}",
        "I tried this:\n\n{}\n\nThat is all: it failed: twice.",
        "```\n{}\n```",
        "Done.\n```json\n{}\n```\nBye.",
        "```JSON\n{}\n```",
        "~~~ yaml title=x\n{}\n~~~",
        "````\n{}\n````",
        "```yaml\n{}\n",
        "```sh\ngit status: none\n```\nprose\n```\n{}\n```",
        '```json\n{{"status": "failure", "errors": []}}\n```\nAnd then:\n```\n{}\n```',
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_return_is_found(body: str, around: str, ending: str) -> None:
    assert read(around.format(body).replace("\n", ending)) == RETURN


@pytest.mark.parametrize(
    "message",
    [
        "",
        "I am done.",
        "The status: was good",
        "{}",
        '{"state": "failure"}',
        "```\nls\n```",
        '{"status',
        "status",
    ],
)
def test_no_return_is_none(message: str) -> None:
    assert returned_documents(message) == []


def test_a_return_stands_on_one_line_of_prose_too() -> None:
    assert read(f"It ended with {LINE}, as I said.") == RETURN
    assert read("{'status': 'failure', 'errors': ['a'],}") == {"status": "failure", "errors": ["a"]}


def test_prose_that_reads_as_yaml_costs_no_return() -> None:
    for message in (f"Note: it is broken: see below\n{YAML}", f"{YAML}\nNote: it is broken: see above"):
        found = read(message)
        assert isinstance(found, dict)
        assert (found["status"], found["errors"]) == (RETURN["status"], RETURN["errors"])


def test_the_last_return_counts() -> None:
    assert read(f'{{"status": "success"}}\nand now\n{LINE}') == RETURN
    assert read(f"```yaml\nstatus: success\n```\nand now\n{LINE}") == RETURN


@pytest.mark.parametrize(
    "message",
    [
        "\n" * 8_000_000 + "status",
        "status: x\n" + "\n" * 200_000,
        '{"status": [1,' * 100_000,
        '{"' * 200_000 + "status",
        '{"status":"' * 30_000,
        '{"status": [' + "1," * 100_000 + '{"k": [' * 3000,
        "```\nstatus:\n" * 30_000,
        "status: x\n\n" * 30_000,
        "status: x\nprose\n" * 30_000,
        "{" + " " * 250_000 + "status",
        "status" + " " * 250_000,
    ],
    ids=lambda message: repr(message[:12]),
)
def test_a_hostile_message_costs_little(message: str) -> None:
    began = time.process_time()
    found = returned_documents(message)
    assert len(found) <= 8
    assert all(len(text) <= LOOKED_AT for text in found)
    assert time.process_time() - began < 3


@given(
    st.lists(
        st.sampled_from(
            ["```", "~~~", "status: a", "return:", "{", '{"status": 1}', "", " x", "- y", "prose"]
        )
    )
)
def test_any_message_is_read(lines: list[str]) -> None:
    for text in returned_documents("\n".join(lines)):
        assert "status" in text
