"""Values of parameters: read by their type, from the command line and from the template (SPEC 9)."""

import json
import re
from collections.abc import Mapping
from typing import Any

from kr.documents import KeyPath, Place, Tree
from kr.workflows.expressions import as_json
from kr.workflows.model import Parameter, ParameterType

_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_MOST = 2**63 - 1
_KINDS: dict[ParameterType, str] = {
    "string": "text",
    "integer": "an integer such as 3",
    "number": "a number such as 0.5",
    "boolean": "true or false",
    "list": 'a list such as ["a", "b"], or texts parted by commas',
    "object": 'an object such as {"key": "value"}',
}


class BadValue(ValueError):
    """A value is none of its type; ``str()`` says what is allowed."""


def read_value(text: str, kind: ParameterType) -> Any:
    """Read what was written for a parameter: lists and objects as JSON, a list of texts with commas as well.

    Raises ``BadValue``.
    """
    if kind == "string":
        return text
    stripped = text.strip()
    if kind == "boolean" and stripped.lower() in _BOOLEANS:
        return _BOOLEANS[stripped.lower()]
    if (
        kind == "integer"
        and _INTEGER.fullmatch(stripped)
        and len(stripped) < 25
        and abs(int(stripped)) <= _MOST
    ):
        return int(stripped)
    if kind == "number" and _NUMBER.fullmatch(stripped) and abs(float(stripped)) < float("inf"):
        return (
            int(stripped) if _INTEGER.fullmatch(stripped) and abs(int(stripped)) <= _MOST else float(stripped)
        )
    if kind == "list":
        if not stripped.startswith("["):
            return [item.strip() for item in text.split(",")] if stripped else []
        value = _json(stripped)
        if isinstance(value, list):
            return value
    if kind == "object" and isinstance(value := _json(stripped), dict):
        return value
    raise BadValue(f"must be {_KINDS[kind]}, not {json.dumps(text[:80], ensure_ascii=False)}")


def read_default(value: Tree, kind: ParameterType, places: Mapping[KeyPath, Place], path: KeyPath) -> Any:
    """Read a value of the template, whose scalars are texts; within lists and objects, YAML's own types.

    Raises ``BadValue``.
    """
    if isinstance(value, str):
        return read_value(value, kind)
    if (kind == "list" and isinstance(value, list)) or (kind == "object" and isinstance(value, dict)):
        return _resolved(value, places, path)
    raise BadValue(f"must be {_KINDS[kind]}")


def _resolved(value: Tree, places: Mapping[KeyPath, Place], path: KeyPath) -> Any:
    """Give plain scalars the type that YAML's core schema gives them; null is null already."""
    if isinstance(value, dict):
        return {key: _resolved(item, places, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, places, (*path, at)) for at, item in enumerate(value)]
    if value is None or not places[path].is_plain:
        return value
    if value in _BOOLEANS:
        return _BOOLEANS[value]
    try:
        return read_value(value, "number")
    except BadValue:
        return value


def given_values(
    parameters: Mapping[str, Parameter], given: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Read the values of ``--set``, and fill in defaults: the values, and a sentence for each mistake."""
    problems = []
    values: dict[str, Any] = {}
    for name in given:
        if name not in parameters:
            allowed = ", ".join(parameters) or "none"
            problems.append(f"{name}: the template has no such parameter; it has: {allowed}")
    for name, parameter in parameters.items():
        if name in given:
            try:
                value = read_value(given[name], parameter.type)
            except BadValue as error:
                problems.append(f"{name}: {error}")
                continue
            if parameter.enum is not None and value not in parameter.enum:
                problems.append(
                    f"{name}: {_shown(value)} is not allowed; allowed: {_choices(parameter.enum)}"
                )
            values[name] = value
        elif parameter.default is None and parameter.required:
            told = f" ({parameter.description})" if parameter.description else ""
            problems.append(f"{name}: is required{told}; say --set {name}=…")
        else:
            values[name] = parameter.default
    return values, problems


def _choices(values: list[Any]) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(text: str) -> Any:
    """Read JSON as the state file can hold it; None for anything else."""
    try:
        return as_json(json.loads(text))
    except (ValueError, TypeError, RecursionError):  # a ValueError: no JSON, or a number without bound
        return None
