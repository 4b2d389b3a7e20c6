"""Reads output that tools wrote for programs: SARIF, JUnit XML, and the JSON of ruff, eslint, cargo, pytest, terraform, services."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kr.lessons.distill.problems import LOOKED_AT, Problem

_LARGEST = 1024 * 1024
_DEPTH = 6
_MOST = 50
_MESSAGES = ("message", "msg", "detail", "description", "error_description", "errorMessage", "error_message", "defaultMessage", "title", "reason", "error")  # fmt: skip
_NESTED = ("error", "errors", "detail", "details", "fault", "violations", "failures", "issues")
_FIELDS = ("loc", "field", "param", "property", "instancePath", "pointer")
_XML = re.compile(r"<(?:testsuites?|\?xml)\b")


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
    if isinstance(data, list):
        for item in data[:_MOST]:
            if isinstance(item, Mapping):
                yield from _of_item(item)
    elif isinstance(data, Mapping):
        if isinstance(data.get("runs"), list):
            yield from _sarif(data)
        elif isinstance(data.get("tests"), list) and isinstance(data.get("summary"), Mapping):
            yield from _pytest(data)
        elif isinstance(data.get("testResults"), list):
            yield from _jest(data)
        elif isinstance(data.get("diagnostics"), list) and "format_version" in data:
            yield from (
                _terraform(item) for item in _mappings(data["diagnostics"]) if item.get("severity") == "error"
            )
        else:
            yield from _of_item(data)


def _of_item(item: Mapping[str, Any]) -> Iterator[Problem]:
    if isinstance(item.get("messages"), list) and "filePath" in item:
        yield from _eslint(item)
    elif isinstance(item.get("location"), Mapping) and "filename" in item and "code" in item:
        text = f"{item.get('code') or 'syntax-error'} {_text(item, 'message')}"
        yield _problem(text, item["filename"], item["location"].get("row"), "ruff")
    elif item.get("reason") == "compiler-message":
        yield from _cargo(_at(item, "message"))
    elif isinstance(item.get("diagnostic"), Mapping):
        if item["diagnostic"].get("severity") == "error":
            yield _terraform(item["diagnostic"])
    elif "Action" not in item and "reason" not in item and (told := _message(item)):
        # What has an action or a reason is a step of `go test -json` or of cargo, and tells no error.
        path = item.get("file") or item.get("path") or item.get("filename")
        yield _problem(told, path if isinstance(path, str) else None, item.get("line"), "")


def _eslint(item: Mapping[str, Any]) -> Iterator[Problem]:
    for told in _mappings(item["messages"]):
        if told.get("severity") == 2 or told.get("fatal"):
            rule = f" ({told['ruleId']})" if told.get("ruleId") else ""
            yield _problem(
                f"{_text(told, 'message')}{rule}", item.get("filePath"), told.get("line"), "eslint"
            )


def _cargo(told: Mapping[str, Any]) -> Iterator[Problem]:
    spans = [span for span in _mappings(told.get("spans")) if span.get("is_primary")]
    if told.get("level") == "error" and (spans or told.get("code")):
        span: Mapping[str, Any] = spans[0] if spans else {}
        yield _problem(_text(told, "message"), span.get("file_name"), span.get("line_start"), "rust")


def _sarif(data: Mapping[str, Any]) -> Iterator[Problem]:
    for run in _mappings(data["runs"]):
        driver = _at(run, "tool", "driver")
        for result in _mappings(run.get("results")):
            if result.get("level", "warning") in {"none", "note"}:
                continue
            place = _at(next(_mappings(result.get("locations")), {}), "physicalLocation")
            rule = f" ({result['ruleId']})" if result.get("ruleId") else ""
            yield _problem(
                f"{_text(_at(result, 'message'), 'text')}{rule}",
                _at(place, "artifactLocation").get("uri"),
                _at(place, "region").get("startLine"),
                str(driver.get("name") or "").lower(),
            )


def _pytest(data: Mapping[str, Any]) -> Iterator[Problem]:
    for test in _mappings(data["tests"]):
        for step in ("setup", "call", "teardown"):
            crash = _at(test, step, "crash")
            if crash:
                yield _problem(_text(crash, "message"), crash.get("path"), crash.get("lineno"), "pytest")


def _jest(data: Mapping[str, Any]) -> Iterator[Problem]:
    for suite in _mappings(data["testResults"]):
        tests = [test for test in _mappings(suite.get("assertionResults")) if test.get("status") == "failed"]
        for test in tests:
            told = (test.get("failureMessages") or [""])[0]
            yield _problem(str(told).split("\n    at ")[0], suite.get("name"), None, "jest")
        if not tests and suite.get("status") == "failed":
            yield _problem(_text(suite, "message"), suite.get("name"), None, "jest")


def _terraform(item: Mapping[str, Any]) -> Problem:
    text = ". ".join(filter(None, (_text(item, "summary").rstrip("."), _text(item, "detail"))))
    place = _at(item, "range")
    return _problem(text, place.get("filename"), _at(place, "start").get("line"), "terraform")


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
    where = next((data[key] for key in _FIELDS if data.get(key)), "")
    field = ".".join(map(str, where)) if isinstance(where, list) else str(where)
    return f"{field}: {told}" if told and field and field not in told else told


def _problem(text: str, file: object, line: object, tool: str) -> Problem:
    number = int(line) if isinstance(line, int | str) and str(line).isdigit() else None
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return Problem(text=first, file=str(file) if file else None, line=number, tool=tool, context=text[:2000])


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    items: Sequence[object] = value if isinstance(value, list) else ()
    return (item for item in items[:_MOST] if isinstance(item, Mapping))


def _at(data: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = data.get(key)
        data = value if isinstance(value, Mapping) else {}
    return data


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value.strip() if isinstance(value, str) else ""
