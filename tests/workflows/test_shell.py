"""Values in shell commands, judged by a real shell: whatever a value holds, it arrives as one word and does nothing."""

import os
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.workflows.expressions import ExpressionError, fill_shell, require_words


def scope(value: Any) -> dict[str, Any]:
    return {"params": {"value": value}, "variables": {}, "steps": {}}


def words(text: str, value: Any) -> list[str]:
    """Let a shell take a command apart: the arguments that a program would get."""
    show = 'show() { for word in "$@"; do printf "%s\\0" "$word"; done; }\n'
    command, values = fill_shell(show + text, scope(value))
    environ = {**os.environ, **values}
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, check=True, timeout=20, env=environ
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_value_is_one_word_wherever_a_word_may_stand(value: str) -> None:
    text = "show ${{ params.value }} x${{ params.value }}y $(printf %s. ${{ params.value }} | wc -c)"
    size = str(len(value.encode()) + 1)
    assert words(text, value) == [value, f"x{value}y", size]


@given(st.text(st.sampled_from(list("'\"\\$(){}`#<>&;| \nEOF-ab")), max_size=40))
def test_a_value_runs_nothing_whatever_stands_before_it(before: str) -> None:
    if "${{" in before or not may_hold(before + "${{ params.value }}"):
        return
    hostile = "'\"; echo KR_PWNED >&2; echo KR_PWNED; #\n echo KR_PWNED\n"
    command, values = fill_shell(before + "${{ params.value }}", scope(hostile))
    # Names that stand before it may be run as commands, and fail; redirections go nowhere.
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        check=False,
        timeout=20,
        cwd="/proc",
        env={"PATH": "", **values},
        stdin=subprocess.DEVNULL,
    )
    assert "KR_PWNED" not in (done.stdout + done.stderr).decode(errors="replace").split("\n")


@pytest.mark.parametrize(
    "text",
    [
        "echo '${{ a }}'",
        'echo "${{ a }}"',
        'echo "it\'s ${{ a }}"',
        "cat <<EOF\n${{ a }}\nEOF\n",
        "cat <<-'E'\n\tx\n${{ a }}",
        "echo \\${{ a }}",
        "echo $${{ a }}",
        "echo $((1 + ${{ a }}))",
    ],
)
def test_where_no_word_can_stand(text: str) -> None:
    with pytest.raises(ExpressionError, match="`a`: stands inside quotes, arithmetic, or behind"):
        require_words(text.replace("${{ a }}", "${{a}}"))


@pytest.mark.parametrize(
    "text",
    [
        "echo ${{ a }}",
        "x=a#${{ a }}",
        "# it's fine\necho ${{ a }}",
        "echo ${X} ${{ a }} $((1 + 2)) ${{ a }}",
        'echo "a # b" ${{ a }}',
    ],
)
def test_where_a_word_may_stand(text: str) -> None:
    assert may_hold(text)


def may_hold(text: str) -> bool:
    try:
        require_words(text)
    except ExpressionError:
        return False
    return True


def test_a_state_file_that_was_edited_is_checked_again() -> None:
    with pytest.raises(ExpressionError, match="stands inside quotes"):
        fill_shell("echo '${{ params.value }}'", scope("x"))
