"""What an agent returned, read from whatever shape it has (SPEC 4.2, "Where the facts stand").

Agents are careless: a list may be a single text, a number may be text, a block may be missing. What can't be
read is absent; nothing here raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kr.lessons.distill.distill import is_vague

REMEDY_KEYS = ("fix", "suggestion", "recommendation", "resolution")
COMPLAINT_KEYS = ("message", "description", "summary", "detail")
_PATH_KEYS = ("file", "path")
_MANY = 50
_LONG = 20_000
_TRUE = frozenset({"true", "yes", "on", "1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One error or issue: what is wrong, what to do about it, how bad it is, and where; or what an agent says in all."""

    complaint: str = ""
    remedy: str = ""
    severity: str = ""
    path: str | None = None
    is_summary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReturn:
    """``status`` and ``agent`` are folded: lower case, dashes for spaces and underscores."""

    status: str
    agent: str
    summary: str
    remedy: str
    errors: tuple[Finding, ...]
    issues: tuple[Finding, ...]
    review_rounds: int | None
    is_auto_fixed: bool
    artifacts: tuple[str, ...]

    @property
    def severe(self) -> tuple[Finding, ...]:
        """The issues of severity HIGH."""
        return tuple(issue for issue in self.issues if issue.severity == "high")


def read_return(data: Mapping[str, Any]) -> AgentReturn:
    """Read an ``agent_return``: plain data, scalars as text or as themselves."""
    results = _mapping(data.get("results"))
    return AgentReturn(
        status=_folded(data.get("status")),
        agent=_folded(data.get("agent")),
        summary=_text(data.get("summary")),
        remedy=_first(results, REMEDY_KEYS) or _first(data, REMEDY_KEYS),
        errors=tuple(_findings(data.get("errors"))),
        issues=tuple(_findings(results.get("issues"))),
        review_rounds=_count(results.get("review_rounds")),
        is_auto_fixed=_folded(results.get("auto_fix_applied")) in _TRUE,
        artifacts=tuple(filter(None, map(_path, _list(results.get("artifacts"))))),
    )


def _findings(value: object) -> Iterator[Finding]:
    for item in _list(value):
        finding = _finding(item)
        if finding.complaint or finding.remedy or finding.severity:
            yield finding


def _finding(item: object) -> Finding:
    if not isinstance(item, Mapping):
        return Finding(complaint=_text(item))
    nested = _mapping(item.get("error"))
    return Finding(
        complaint=_first(item, COMPLAINT_KEYS) or _first(nested, COMPLAINT_KEYS) or _text(item.get("error")),
        remedy=_first(item, REMEDY_KEYS) or _first(nested, REMEDY_KEYS),
        severity=_folded(item.get("severity")),
        path=_path(item),
    )


def _path(item: object) -> str | None:
    if not isinstance(item, Mapping):
        return _text(item) or None
    path = _first(item, _PATH_KEYS)
    line = _count(item.get("line"))
    has_line = path.rpartition(":")[2].isdigit()
    return (f"{path}:{line}" if line and not has_line else path) or None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    if value is None or value == "":
        return ()
    if isinstance(value, list | tuple):
        return value[:_MANY]
    return (value,)


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> str:
    texts = (_text(data.get(key)) for key in keys)
    return next((text for text in texts if text and not is_vague(text)), "")


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, (_text(item) for item in value[:_MANY])))[:_LONG]
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip()[:_LONG]


def _folded(value: object) -> str:
    return _text(value).casefold().replace("_", "-").replace(" ", "-")


def _count(value: object) -> int | None:
    text = _text(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
