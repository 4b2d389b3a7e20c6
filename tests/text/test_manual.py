import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.text.manual import manual_markdown

PAGE = """QUEUE(1)                                                 QUEUE(1)

NAME
       queue - look after queues of mess-
       ages, also a message-queue

SYNOPSIS
       queue [-d id] [-p]
             [-v]

OPTIONS
   On messages
       -d id
              Delete a message of
              the message-
              queue.  For example:

              queue -j | awk '
                  { print }'

              1)     First the message,
                     then the queue.

              Specify "ALL" for all messages.

       -p     Purge old files.

       -v, --verbose
              Say more.

       Without an option it waits.

QUEUE(1)
"""


def test_each_option_of_a_manual_heads_what_it_does() -> None:
    parts = (manual_markdown(PAGE) or "").split("\n\n")
    assert parts[:6] == [
        "## NAME",
        "queue - look after queues of messages, also a message-queue",
        "## SYNOPSIS",
        "```\nqueue [-d id] [-p]\n      [-v]\n```",
        "## OPTIONS",
        "### On messages",
    ]
    assert parts[6:12] == [
        "`-d id`",
        "Delete a message of the message-queue. For example:",
        "```\nqueue -j | awk '\n    { print }'\n```",
        "1. First the message, then the queue.",
        'Specify "ALL" for all messages.',
        "`-p`",
    ]
    assert parts[12:] == ["Purge old files.", "`-v, --verbose`", "Say more.", "Without an option it waits."]


@pytest.mark.parametrize("text", ["ONE\n   a\n\nTWO\n   b", "ONE\nTWO\nTHREE\n" + "code()\n" * 9, ""])
def test_what_is_no_manual_is_left_alone(text: str) -> None:
    assert manual_markdown(text) is None


@given(st.lists(st.text(alphabet="ab-•1) \n`*", max_size=40), min_size=3, max_size=6))
def test_no_word_of_a_manual_is_lost(bodies: list[str]) -> None:
    page = "\n".join(
        f"SECTION {n}\n       " + body.replace("\n", "\n       ") for n, body in enumerate(bodies)
    )
    found = manual_markdown(page) or ""
    assert re.findall(r"[ab]", found) == re.findall(r"[ab]", page)


def test_the_time_grows_with_the_size() -> None:
    page = "A B\n       x\nC D\n       x\nE F\n" + "       -a  word-\n       word\n\n" * 20_000
    began = time.process_time()
    assert manual_markdown(page)
    assert time.process_time() - began < 5
