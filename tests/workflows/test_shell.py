"""Values in shell commands, judged by a real shell: whatever a value holds, it arrives as one word and does nothing."""

import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.workflows.expressions import ExpressionError
from kr.workflows.work import fill_shell, misplaced, quote


def scope(value: Any) -> dict[str, Any]:
    return {"params": {"value": value}, "variables": {}, "steps": {}}


def words(text: str) -> list[str]:
    """Let a shell take a command apart: the arguments that a program would get."""
    show = 'show() { for word in "$@"; do printf "%s\\0" "$word"; done; }\n'
    done = subprocess.run(["/bin/sh", "-c", show + text], capture_output=True, check=True, timeout=20)
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


_ODD = "what follows $'…' or a here-document's odd name, which shells read in two ways"
HOSTILE = [
    "a b",
    "; touch /tmp/pwned",
    "$(id)",
    "`id`",
    "it's",
    "'\"'\"'",
    "",
    "-n",
    "a\nb",
    "\\",
    "*",
    "~root",
    "A=B",
    "#no",
    "${HOME}",
    "值",
    "'; exit 3; '",
    "\x07\x1b[2J",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_is_one_word_wherever_a_word_may_stand(value: str) -> None:
    text = 'show ${{ params.value }} x${{ params.value }}y "$(show ${{ params.value }})"'
    assert misplaced(text) == []
    found = words(fill_shell(text, scope(value)))
    # Command substitution drops NULs and the line breaks at the end.
    assert found == [value, f"x{value}y", value.rstrip("\n")]


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=20
    )
)
def test_any_values_are_words(values: list[str]) -> None:
    assert words("show " + " ".join(map(quote, values))) == values


@given(st.text(st.sampled_from(list("'\"\\$(){}`#<>&;| \nEOF-ab")), max_size=40))
def test_where_the_scanner_sees_a_word_the_shell_does(before: str) -> None:
    """Whatever stands before: if the place is allowed, a value there can't run anything."""
    if "${{" in before or misplaced(before + "${{ params.value }}"):
        return
    text = fill_shell(
        before + "${{ params.value }}", scope("'\"; echo KR_PWNED >&2; echo KR_PWNED; #\n echo KR_PWNED\n")
    )
    # Names that stand before it may be run as commands, and fail; redirections go nowhere.
    done = subprocess.run(
        ["/bin/sh", "-c", text],
        capture_output=True,
        check=False,
        timeout=20,
        cwd="/proc",
        env={"PATH": ""},
        stdin=subprocess.DEVNULL,
    )
    lines = (done.stdout + done.stderr).decode(errors="replace").split("\n")
    assert "KR_PWNED" not in lines


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("echo '${{ a }}'", "quotes of the template's own"),
        ('echo "${{ a }}"', "quotes of the template's own"),
        ('echo "it\'s ${{ a }}"', "quotes of the template's own"),
        ("true # ${{ a }}", "a comment"),
        ("true;#${{ a }}", "a comment"),
        ("cat <<EOF\n${{ a }}\nEOF\n", "a here-document"),
        ("cat <<-'E'\n\tx\n${{ a }}", "a here-document"),
        ("cat <<A <<B\nA\n${{ a }}\nB\n", "a here-document"),
        ("cat <<${{ a }}\n", "a here-document"),
        ("echo `cat ${{ a }}`", "backquotes; write $(…)"),
        ('echo "`cat ${{ a }}`"', "backquotes; write $(…)"),
        ("echo \\${{ a }}", "what a backslash escapes"),
        ("echo $${{ a }}", "an expansion: a $ stands before it"),
        ("echo ${X:-${{ a }}}", "an expansion ${…}"),
        ("echo $((1 + ${{ a }}))", "arithmetic $((…))"),
        ("echo $'x' ${{ a }}", _ODD),
        ("cat <<E`(|& ${{ a }}", _ODD),
    ],
)
def test_where_no_word_can_stand(text: str, where: str) -> None:
    assert misplaced(text) == [("a", where)]


@pytest.mark.parametrize(
    "text",
    [
        "echo ${{ a }}",
        "x=a#${{ a }}",
        "echo \\\\${{ a }}",
        "cat <<EOF\ntext\nEOF\necho ${{ a }}",
        "cat <<-E\n\ttext\n\tE\necho ${{ a }}",
        "case x in x) echo ${{ a }};; esac",
        "f() { echo ${{ a }}; }",
        "echo ${X} ${{ a }} $((1 + 2)) ${{ a }}",
        'echo "a # b" ${{ a }}',
        "cat <<< ${{ a }}",
    ],
)
def test_where_a_word_may_stand(text: str) -> None:
    assert misplaced(text) == []


def test_a_nul_is_told() -> None:
    with pytest.raises(ExpressionError, match="NUL"):
        quote("a\0b")


def test_what_was_never_validated_is_refused_all_the_same() -> None:
    with pytest.raises(ExpressionError, match="stands inside quotes"):
        fill_shell("echo '${{ params.value }}'", scope("x"))
