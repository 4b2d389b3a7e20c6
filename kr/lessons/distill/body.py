"""JSON error bodies of services: the message, the field it speaks of, the remedy (SPEC 4.2)."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kr.lessons.returned import COMPLAINT_KEYS, REMEDY_KEYS

_BODY_MESSAGES = (
    *COMPLAINT_KEYS,
    "msg",
    "error_description",
    "errorMessage",
    "error_message",
    "defaultMessage",
    "title",
    "reason",
    "error",
)
_BODY_REMEDIES = (*REMEDY_KEYS, "hint", "help", "action", "solution")
_BODY_CODES = ("code", "error_code", "errorCode", "type", "status", "__type", "error")
_MANY = 3
_NESTED = ("error", "errors", "detail", "details", "fault", "issues", "violations")
_GENERIC_CODE = re.compile(
    r"(?:invalid_request_error|error|api_error|custom|invalid|badRequest|global|validation_error|about:blank|bad request|failure|fail|[0-9]{1,3}|-[0-9]+)$",
    re.IGNORECASE,
)


_GENERIC = re.compile(
    r"(?:bad request|unauthorized|forbidden|not found|conflict|unprocessable (?:entity|content)|internal server error|validation (?:failed|error)s?"
    r"|too many requests|one or more validation errors occurred|the given data was invalid|invalid (?:request|input|data)|request failed|an? (?:unknown |unexpected )?error (?:has )?occurred|参数(?:校验)?(?:错误|失败)|请求失败)[.!。]?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Essence:
    """What a text says is wrong, and what it says to do about it; either may be empty."""

    complaint: str = ""
    remedy: str = ""


def json_body(text: str) -> tuple[str, Any] | None:
    """Part a text into what stands before a JSON body, and the body; ``None`` where there is none that tells."""
    start = min((at for at in (text.find("{"), text.find("[{")) if at >= 0), default=-1)
    end = max(text.rfind("}"), text.rfind("]"))
    if start < 0 or end <= start or '"' not in text[start:end]:
        return None
    try:
        body = json.loads(text[start : end + 1], strict=False)
    except (ValueError, RecursionError):
        return None
    return (text[:start], body) if told_by(body).complaint else None


def told_by(body: Any, depth: int = 0) -> Essence:
    """Read the innermost message of a body, with the field it speaks of and the remedy it names."""
    if isinstance(body, str):
        return Essence(body.strip())
    if isinstance(body, list):
        return next(
            (told for told in (told_by(item, depth + 1) for item in body[:5]) if told.complaint), Essence()
        )
    if not isinstance(body, Mapping) or depth > 6:
        return Essence()
    message = _scalar(body, _BODY_MESSAGES)
    if depth and not message and (fields := _fields(body)):
        return Essence(fields)
    inner = next((told for told in _inner(body, depth) if told.complaint), Essence())
    codes = (_scalar(body, (key,)) for key in _BODY_CODES)
    code = next((code for code in codes if code and code != message and "://" not in code), "")
    where = _where(body)
    if inner.complaint and (
        not message or len(inner.complaint) > len(message) or _GENERIC.fullmatch(message)
    ):
        return Essence(inner.complaint, inner.remedy or _scalar(body, _BODY_REMEDIES))
    if not message and where and code:
        message, code = code.replace("_", " "), ""
    head = where or ("" if not code or _GENERIC_CODE.match(code) or code in message else code)
    return Essence(
        ": ".join(part for part in (head, message) if part), _scalar(body, _BODY_REMEDIES) or inner.remedy
    )


def _inner(body: Mapping[str, Any], depth: int) -> Iterator[Essence]:
    for key in _NESTED:
        if isinstance(body.get(key), Mapping | list):
            yield told_by(body[key], depth + 1)


def _fields(body: Mapping[str, Any]) -> str:
    """Read a mapping of fields to what is wrong with each."""
    told = ((key, value[0] if isinstance(value, list) and value else value) for key, value in body.items())
    found = [
        f"{key}: {value.strip()}" for key, value in told if isinstance(value, str) and " " in value.strip()
    ]
    return "; ".join(found[:_MANY]) if len(found) == len(body) else ""


def _where(body: Mapping[str, Any]) -> str:
    location = body.get("loc")
    if isinstance(location, list):
        return ".".join(str(part) for part in location)
    return _scalar(body, ("param", "field", "property", "instancePath", "path"))


def _scalar(body: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of ``keys`` that holds a text or a number, in whatever case it is written."""
    folded = {str(key).casefold(): value for key, value in body.items()}
    for key in keys:
        value = folded.get(key.casefold())
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value[:_MANY]):
            value = "; ".join(value[:_MANY])
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""
