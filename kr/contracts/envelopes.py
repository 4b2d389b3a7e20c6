"""Return values of F1 (seed 000, "Return Value"), every field in the seed's order.

``envelope.plain()`` gives nested plain data for YAML or JSON, ``model_of`` what MCP and HTTP describe and check it by.
"""

from collections.abc import Iterable, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from kr.errors import FieldError
from kr.values import Confidence, Consulted, EntryStatus, Origin, Related, ResearchStatus, Tier, Value

if TYPE_CHECKING:
    from pydantic import BaseModel

V = TypeVar("V", bound=Value)


class Problem(Value):
    """One item of ``errors``."""

    type: str
    field: str | None = None
    message: str

    def plain(self) -> dict[str, Any]:
        """Leave ``field`` out where no field is to blame."""
        return {name: value for name, value in super().plain().items() if value is not None}


class MatchView(Value):
    """Why an entry answered (SPEC 3.2)."""

    tier: Tier
    topic_overlap: float
    shared_tags: list[str]
    entry_status: EntryStatus
    origin: Origin
    worked: int
    wrong: int
    score: float | None


class CandidateReport(Value):
    """The report of the best candidate, so that the asker mostly needs no second call."""

    id: str
    text: str


class LessonView(Value):
    """A lesson of the framework whose words the question shares."""

    summary: str
    ref: str | None


class ResearchResults(Value):
    """The ``results`` of a research. ``lru_evicted`` is -1 when the capacity guard failed.

    ``related`` holds the candidates, best first; ``report_file`` is the absolute path of the report.
    """

    cache_hit: bool
    cache_entry_id: str | None
    report_path: str | None
    confidence: Confidence | None
    sources_consulted: list[Consulted]
    budget_remaining: int
    degradation_notes: list[str]
    index_updated: bool
    index_count: int
    lru_evicted: int
    match: MatchView | None
    related: list[Related]
    candidate_report: CandidateReport | None
    lessons: list[LessonView]
    auto_archived: int
    report: str | None
    report_file: str | None


class Envelope(Value):
    """What every request of F1 gets back."""

    status: str
    story_key: Any
    mode: Any
    session_id: Any
    results: Any
    errors: list[Problem]


class ResearchEnvelope(Envelope):
    """The return value of mode ``research``."""

    status: ResearchStatus
    results: ResearchResults | None


def failure(data: Mapping[str, Any], *problems: Problem, mode: str | None = None) -> Envelope:
    """Make the ``failure`` envelope: the identity echoed as given, null where absent (SPEC 3.1).

    ``mode`` stands in for a missing one, as in ``parse_request``.
    """
    return Envelope(
        status="failure",
        story_key=data.get("story_key"),
        mode=mode if data.get("mode") is None else data["mode"],
        session_id=data.get("session_id"),
        results=None,
        errors=list(problems),
    )


def validation_problems(fields: tuple[FieldError, ...]) -> list[Problem]:
    return [Problem(type="validation_error", field=field.field, message=field.message) for field in fields]


def told(problems: Iterable[Problem]) -> str | None:
    texts = (f"{item.type}: {f'{item.field}: ' if item.field else ''}{item.message}" for item in problems)
    return "; ".join(texts) or None


def interruption(error: BaseException) -> str:
    return f"interrupted: {type(error).__name__}"


def model_of(value: type[Value]) -> "type[BaseModel]":
    """Make the pydantic model that has the fields of a value, and models in place of the values within it."""
    from pydantic import create_model

    hints = get_type_hints(value)
    fields: dict[str, Any] = {
        name: (_modelled(hints[name]), value.field_defaults().get(name, ...)) for name in value.names()
    }
    model: type[BaseModel] = create_model(value.__name__, __doc__=value.__doc__, **fields)
    return model


def _modelled(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Value):
        return model_of(hint)
    origin: Any = get_origin(hint)
    inner = get_args(hint)
    if origin in {Union, UnionType}:
        return Union[tuple(map(_modelled, inner))]  # noqa: UP007 - of members that are known at run time alone
    if isinstance(origin, type):
        generic: Any = origin
        return generic[tuple(map(_modelled, inner))]
    return hint


def value_of(value: type[V], plain: Any) -> V:
    """Read back what ``plain()`` gave, in another process. Raises ``ValueError``; unknown fields are passed over."""
    model_of(value).model_validate(plain)
    hints = get_type_hints(value)
    return value(**{name: _read_back(hints[name], plain[name]) for name in value.names() if name in plain})


def _read_back(hint: Any, plain: Any) -> Any:
    inner = get_args(hint)
    if isinstance(plain, list):
        return [_read_back(inner[0], item) for item in plain] if inner else plain
    kind = next((it for it in (hint, *inner) if isinstance(it, type) and issubclass(it, Value)), None)
    return value_of(kind, plain) if kind is not None and isinstance(plain, dict) else plain
