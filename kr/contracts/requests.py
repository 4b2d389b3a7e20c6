"""Requests of F1 (seed 000, "Input Schema"): research and lessons-inject.

``parse_request`` takes the nested plain data of a document, in which scalars are text as written, and
answers with a typed request or with every bad field at once. What is odd but harmless (unknown keys, an
override that is no number) is a warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from kr.contracts.fields import (
    Line,
    OptionalPaths,
    OptionalText,
    Phase,
    StoryKey,
    Text,
    YesNo,
    as_text,
    bad,
    is_blank,
    one_of,
    read_count,
    shown,
    unknown_keys,
    validate,
)
from kr.errors import FieldError, InvalidRequest
from kr.values import PHASES, IfUnsure, Query

MODES = ("research", "lessons-inject")
Mode = Literal["research", "lessons-inject"]


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _tags(value: object) -> object:
    """Drop blank members, as long as one tag is left (seed 000: at least one tag)."""
    if value is None:
        raise bad("required, but missing")
    if not isinstance(value, list | tuple):
        raise bad("must be a list of at least one tag")
    tags = [as_text(tag) for tag in value if tag is not None]
    tags = list(dict.fromkeys(tag for tag in tags if not is_blank(tag)))
    if not tags:
        raise bad("must hold at least one tag")
    return tags


class ResearchQuery(_Request):
    """The ``research_query`` of a request."""

    framework: Line
    framework_version: Line
    topic: Line
    tags: Annotated[tuple[Line, ...], BeforeValidator(_tags)]
    question: Text

    def query(self) -> Query:
        """Give the plain value that the layers below speak."""
        return Query(
            framework=self.framework,
            framework_version=self.framework_version,
            topic=self.topic,
            tags=self.tags,
            question=self.question.strip(),
        )


class ConfigOverrides(_Request):
    """What a caller may override; ``None`` is the configured value."""

    max_calls: int | None = None
    timeout_seconds: int | None = None


class ResearchOverrides(ConfigOverrides):
    """What a caller of research may say besides (SPEC 3.1, 3.2).

    ``refresh`` researches again whatever the cache holds; ``use`` is the id of the entry to be served; ``if_unsure``
    says what to do where kr is not sure.
    """

    refresh: YesNo = False
    use: Line | None = None
    if_unsure: Annotated[IfUnsure, BeforeValidator(one_of(*get_args(IfUnsure)))] = "research"

    @field_validator("use")
    @classmethod
    def _is_no_refresh(cls, use: str | None, info: ValidationInfo) -> str | None:
        if use is not None and info.data.get("refresh"):
            raise bad("can't be combined with refresh: an entry is served as it is, or researched again")
        return use


class ResearchRequest(_Request):
    """A request in mode ``research``."""

    story_key: StoryKey
    mode: Literal["research"] = "research"
    session_id: Text
    research_query: ResearchQuery
    config_overrides: ResearchOverrides = ResearchOverrides()


class LessonsInject(_Request):
    """The ``lessons_inject`` of a request."""

    # Validated although absent, so that the answer begins with the seed's words there too.
    phase: Annotated[Phase, Field(validate_default=True)] = ""
    framework: OptionalText = ""
    query: OptionalText = ""
    files: OptionalPaths = ()
    dry_run: YesNo = False


class LessonsInjectRequest(_Request):
    """A request in mode ``lessons-inject``."""

    story_key: StoryKey
    mode: Literal["lessons-inject"] = "lessons-inject"
    session_id: Text
    lessons_inject: LessonsInject
    config_overrides: ConfigOverrides = ConfigOverrides()


class _Identity(_Request):
    story_key: StoryKey
    session_id: Text


class _ResearchBlock(_Request):
    research_query: ResearchQuery


class _InjectBlock(_Request):
    lessons_inject: LessonsInject


_BLOCKS: dict[type[BaseModel], str] = {_ResearchBlock: "research_query", _InjectBlock: "lessons_inject"}


class AnyRequest(_Request):
    """Every key that either mode knows: a caller may send one document for both."""

    story_key: str
    mode: str
    session_id: str
    research_query: ResearchQuery
    lessons_inject: LessonsInject
    config_overrides: ResearchOverrides


@dataclass(frozen=True, slots=True)
class Parsed:
    """A valid request with what is to be said about it on standard error."""

    request: ResearchRequest | LessonsInjectRequest
    warnings: tuple[str, ...]


def parse_request(
    data: Mapping[str, Any], *, default_mode: Mode | None = None, phases: Sequence[str] = PHASES
) -> Parsed:
    """Validate a request of either mode (seed 000, "Input Validation Rules").

    ``default_mode`` stands in for a missing ``mode`` where a command takes one mode alone.
    Raises ``InvalidRequest`` with one ``FieldError`` per bad field.
    """
    warnings = [f"unknown key ignored: {shown(key)}" for key in unknown_keys(AnyRequest, data)]
    mode = data.get("mode")
    if mode is None and default_mode is not None:
        mode = default_mode
    if mode not in MODES:
        detail = "required, but missing" if mode is None else shown(mode)
        wrong = FieldError("mode", f"Invalid mode: {detail}; allowed: {', '.join(MODES)}")
        raise InvalidRequest(wrong, *_errors_whatever_the_mode(data, phases))
    overrides = _overrides(data.get("config_overrides"), warnings)
    model, block = _MODELS[mode]
    inner = data.get(block)
    # A block that is missing or no mapping is told field by field, as the table lists them.
    prepared = {
        **data,
        "mode": mode,
        block: inner if isinstance(inner, Mapping) else {},
        "config_overrides": overrides,
    }
    result = validate(model, prepared, phases=phases)
    if isinstance(result, list):
        raise InvalidRequest(*result)
    return Parsed(result, tuple(warnings))


def _errors_whatever_the_mode(data: Mapping[str, Any], phases: Sequence[str]) -> Iterator[FieldError]:
    """Check what can be checked without a mode: the identity, and the blocks that were sent."""
    models: list[type[BaseModel]] = [_Identity]
    models += [model for model, block in _BLOCKS.items() if isinstance(data.get(block), Mapping)]
    for model in models:
        result = validate(model, data, phases=phases)
        if isinstance(result, list):
            yield from result


_MODELS: dict[str, tuple[type[ResearchRequest | LessonsInjectRequest], str]] = {
    "research": (ResearchRequest, "research_query"),
    "lessons-inject": (LessonsInjectRequest, "lessons_inject"),
}


def _overrides(value: object, warnings: list[str]) -> dict[str, object]:
    """Read the counts, where anything odd is a warning; what else was said is left to the models."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        warnings.append("config_overrides is no mapping: the configured values are used")
        return {}
    read: dict[str, object] = {key: given for key, given in value.items() if given is not None}
    for key in ConfigOverrides.model_fields:
        given = value.get(key)
        count = read[key] = read_count(given, zero_is_meant=key == "max_calls")
        if given is not None and count is None:
            warnings.append(
                f"config_overrides.{key}: {shown(given)} is no positive integer below 10^18: the configured value is used"
            )
    return read
