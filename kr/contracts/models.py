"""The envelopes as pydantic models, made from the values themselves: what MCP and HTTP describe, and check."""

from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from kr.values import Value

V = TypeVar("V", bound=Value)


def model_of(value: type[Value]) -> type[BaseModel]:
    """Make the model that has the fields of a value, and models in place of the values within it."""
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
    if isinstance(plain, list):
        return (
            [_read_back(inner, item) for item in plain for inner in get_args(hint)[:1]]
            if get_args(hint)
            else plain
        )
    inner = next(
        (kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and issubclass(kind, Value)), None
    )
    return value_of(inner, plain) if inner is not None and isinstance(plain, dict) else plain
