"""CEL alone and in texts: what it gives, and what is told where it fails."""

from typing import Any

import pytest

from kr.workflows.expressions import (
    ExpressionError,
    evaluate,
    expressions,
    fill,
    fill_tree,
    holds,
    members,
)

VALUES: dict[str, Any] = {
    "params": {
        "environment": "production",
        "servers": ["a", "b"],
        "skip": False,
        "n": 3,
        "x": 1.5,
        "none": None,
    },
    "variables": {"tags": [], "中文": "值", "text": "a\nb"},
    "steps": {
        "build": {"status": "completed", "result": {"exit_code": 0}},
        "a-b": {"status": "failed", "result": None},
    },
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("params.environment == 'production' && !params.skip", True),
        ("params.n + 1", 4),
        ("params.servers.map(s, s + '-1')", ["a-1", "b-1"]),
        ("params.servers.join(', ')", "a, b"),
        ("variables['中文']", "值"),
        ("has(params.nothing)", False),
        ("params.none == null", True),
        ("steps.build.result.exit_code == 0", True),
        ("steps['a-b'].status", "failed"),
        ("{'a': [1, null]}", {"a": [1, None]}),
        ("params.nothing == 1 || true", True),
    ],
)
def test_values(expression: str, value: Any) -> None:
    found = evaluate(expression, VALUES)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("params.nothing", "nothing"),
        ("params.n + 'a'", "overload"),
        ("params.n / 0", "divide by zero"),
        ("duration('1s')", "not JSON serializable"),
        ("1.0 / 0.0", "not JSON compliant"),
        ("params.environment === 1", "1:22: Syntax error"),
        ("nobody", "undeclared reference to 'nobody'"),
        ("", "Syntax error"),
        ("(" * 100 + "1" + ")" * 100, "recursion"),
    ],
)
def test_what_fails_is_told_with_the_expression(expression: str, told: str) -> None:
    with pytest.raises(ExpressionError, match=r".") as error:
        evaluate(expression, VALUES)
    assert told in str(error.value)
    assert expression[:20] in str(error.value)
    assert "\n" not in str(error.value)


def test_a_condition_must_be_true_or_false() -> None:
    assert holds("params.n > 2", VALUES)
    with pytest.raises(ExpressionError, match="must be true or false, not 3"):
        holds("params.n", VALUES)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain $HOME {} }}", "plain $HOME {} }}"),
        ("${{ params.environment }}!", "production!"),
        ("${{params.n}}${{ params.x }}", "31.5"),
        ("${{ params.servers }}", '["a", "b"]'),
        ("${{ params.skip }} ${{ params.none }}.", "false ."),
        ("${{ {'a': {'b': 1} }['a'].b }}", "1"),
    ],
)
def test_texts_are_filled(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


def test_an_expression_that_never_ends_is_told() -> None:
    with pytest.raises(ExpressionError, match=r"\$\{\{ has no \}\} after it"):
        expressions("a ${{ params.n }")


def test_in_data_an_expression_alone_keeps_its_type() -> None:
    tree = {"tags": "${{ params.servers }}", "more": ["${{ params.n }}", "n is ${{ params.n }}"], "limit": 3}
    assert fill_tree(tree, VALUES) == {"tags": ["a", "b"], "more": [3, "n is 3"], "limit": 3}


def test_members_are_found_outside_of_texts_and_comments() -> None:
    text = "params.a + params['b'] + \"params.c\" + x.params.d + steps.s.result.variables // params.e\n + variables . v"
    assert members(text) == [("params", "a"), ("steps", "s"), ("variables", "v")]


def test_a_maps_keys_stand_in_order() -> None:
    items = ", ".join(f"'k{number}': {number}" for number in range(9))
    assert list(evaluate(f"{{{items}}}", {"params": {}, "variables": {}, "steps": {}})) == sorted(
        f"k{number}" for number in range(9)
    )
