"""Reads output that tools wrote for programs: SARIF, JUnit XML, and the JSON of ruff, eslint, cargo, pytest, terraform, services."""

import json
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kr.lessons.distill.problems import LOOKED_AT, Problem

_LARGEST = 1024 * 1024
_DEPTH = 6
_MOST = 50
_MESSAGES = ("message", "msg", "detail", "description", "error_description", "errorMessage", "error_message", "defaultMessage", "title", "reason", "error")  # fmt: skip
_CAUSES = ("err", "error", "cause", "exception")
_NESTED = ("error", "errors", "detail", "details", "fault", "violations", "failures", "issues")
_FIELDS = ("loc", "field", "param", "property", "instancePath", "pointer")
_XML = re.compile(r"<(?:testsuites?|\?xml)\b")


class _Shape(NamedTuple):
    """How a tool's document tells its errors, by paths of keys; ``*`` goes through a list.

    An error sees the keys of what it stands in, too. ``has`` are keys that tell the shape from others, ``errors`` the
    severities that count.
    """

    tool: str
    has: tuple[str, ...]
    path: str
    text: str
    file: str
    line: str
    severity: str = ""
    errors: frozenset[object] = frozenset({"error"})


_SHAPES = (
    _Shape("eslint", ("filePath",), "messages.*", "{message} ({ruleId})", "filePath", "line", "severity", frozenset({2})),
    _Shape("ruff", ("filename", "code", "location"), "", "{code} {message}", "filename", "location.row"),
    _Shape("rust", ("reason", "message"), "message", "{message}", "spans.is_primary.file_name", "spans.is_primary.line_start", "level"),
    _Shape("terraform", ("diagnostics",), "diagnostics.*", "{summary}. {detail}", "range.filename", "range.start.line", "severity"),
    _Shape("terraform", ("diagnostic",), "diagnostic", "{summary}. {detail}", "range.filename", "range.start.line", "severity"),
    *(_Shape("pytest", ("tests", "summary"), f"tests.*.{step}.crash", "{message}", "path", "lineno") for step in ("call", "setup", "teardown")),
    _Shape("jest", ("testResults",), "testResults.*.assertionResults.*", "{failureMessages.0}", "name", "", "status", frozenset({"failed"})),
    _Shape("jest", ("testResults",), "testResults.*", "{message}", "name", "", "status", frozenset({"failed"})),
    _Shape("{tool.driver.name}", ("runs",), "runs.*.results.*", "{message.text} ({ruleId})", "locations.0.physicalLocation.artifactLocation.uri",
           "locations.0.physicalLocation.region.startLine", "level", frozenset({"error", "warning", ""})),
)  # fmt: skip


def read_structured(output: str) -> list[Problem]:
    """Return the problems of structured output, empty when it is none, or tells of none."""
    text = output.strip()
    if len(text) > _LARGEST:
        return []
    if (start := _XML.search(text[:LOOKED_AT])) and "<testcase" in text:
        return list(_junit(text[start.start() :]))
    problems = [problem for document in _documents(text) for problem in _of_json(document)]
    return problems[:_MOST]


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON of a text: one document after words of a program, or one in each line."""
    decoder = json.JSONDecoder(strict=False)
    lines = [line for line in text.split("\n") if line.startswith("{")]
    if len(lines) > 1 and all(line.endswith("}") for line in lines):
        for line in lines:
            try:
                yield decoder.decode(line)
            except (ValueError, RecursionError):
                continue
        return
    starts = [found.start() for found in re.finditer(r"(?:^|(?<=\s))(?:\{\s*\"|\[\s*\{)", text)][:_DEPTH]
    for start in starts:
        try:
            yield decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        return


def _of_json(data: Any) -> Iterator[Problem]:
    for item in data[:_MOST] if isinstance(data, list) else [data]:
        if not isinstance(item, Mapping):
            continue
        shapes = [shape for shape in _SHAPES if all(key in item for key in shape.has)]
        told = (list(_of_shape(item, shape)) for shape in shapes)
        found = next(filter(None, told), [])
        yield from found
        if not shapes and "Action" not in item and "reason" not in item and (text := _message(item)):
            # What has an action or a reason is a step of `go test -json` or of cargo, and tells no error.
            path = item.get("file") or item.get("path") or item.get("filename")
            yield _problem(text, path if isinstance(path, str) else None, item.get("line"), "")


def _of_shape(data: Mapping[str, Any], shape: _Shape) -> Iterator[Problem]:
    for error in _walk(data, shape.path.split(".") if shape.path else [], ()):
        if shape.severity and _get(error, shape.severity) not in shape.errors:
            continue
        text = _filled(shape.text, error).replace(" ()", "").replace("..", ".").strip(" .")
        if text:
            tool = _filled(shape.tool, error).lower()
            yield _problem(text, _get(error, shape.file), _get(error, shape.line), tool)


def _walk(data: Any, path: list[str], around: tuple[Mapping[str, Any], ...]) -> Iterator[Mapping[str, Any]]:
    """Yield what a path leads to, with the keys of what is around it."""
    if not path:
        if isinstance(data, Mapping):
            yield ChainMap(*({**one} for one in (data, *around)))
    elif path[0] == "*":
        for item in data[:_MOST] if isinstance(data, list) else ():
            yield from _walk(item, path[1:], around)
    elif isinstance(data, Mapping):
        yield from _walk(data.get(path[0]), path[1:], (data, *around))


def _get(data: Any, path: str) -> Any:
    """Follow a path of keys; a number is a place in a list, another key the first item that has it. Empty: nothing."""
    for key in path.split(".") if path else ():
        if isinstance(data, list):
            place = int(key) if key.isdigit() else None
            some = data[place : place + 1] if place is not None else [it for it in data if _get(it, key)]
            data = some[0] if some else ""
        else:
            data = data.get(key) if isinstance(data, Mapping) else ""
    return "" if data is None or not path else data


def _filled(template: str, data: Mapping[str, Any]) -> str:
    return re.sub(r"\{([\w.]+)\}", lambda found: str(_get(data, found[1])).strip(), template)


def _junit(text: str) -> Iterator[Problem]:
    # A stranger's XML: entities and the like are refused, not expanded.
    from defusedxml import DefusedXmlException, ElementTree

    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, DefusedXmlException, ValueError):
        return
    for case in root.iter("testcase"):
        for failure in (*case.findall("error"), *case.findall("failure")):
            told = failure.get("message") or (failure.text or "").strip()
            kind = failure.get("type") or ""
            text = (
                told if not kind or kind.rpartition(".")[2] in told else f"{kind.rpartition('.')[2]}: {told}"
            )
            yield _problem(text, case.get("file"), case.get("line"), "")


def _message(data: Any, depth: int = 0) -> str:
    """Read the innermost message of a service's error, with the field it speaks of."""
    if isinstance(data, str):
        return data.strip()
    if isinstance(data, list):
        return next((told for item in data[:5] if (told := _message(item, depth + 1))), "")
    if not isinstance(data, Mapping) or depth > _DEPTH:
        return ""
    inner = (_message(data[key], depth + 1) for key in _NESTED if isinstance(data.get(key), Mapping | list))
    told = next(filter(None, inner), "") or next(
        (text for key in _MESSAGES if (text := _text(data, key))), ""
    )
    if (
        (cause := next(filter(None, (_text(data, key) for key in _CAUSES)), ""))
        and told
        and cause not in told
    ):
        told = f"{told}: {cause}"
    where = next((data[key] for key in _FIELDS if data.get(key)), "")
    field = ".".join(map(str, where)) if isinstance(where, list) else str(where)
    return f"{field}: {told}" if told and field and field not in told else told


def _problem(text: str, file: object, line: object, tool: str) -> Problem:
    number = int(line) if isinstance(line, int | str) and str(line).isdigit() else None
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split("\n    at ", maxsplit=1)[0].split())
    return Problem(text=first, file=str(file) if file else None, line=number, tool=tool, context=text[:2000])


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value.strip() if isinstance(value, str) else ""
