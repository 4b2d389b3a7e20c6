"""The envelopes as pydantic models: what MCP and HTTP describe, made from the values themselves."""

from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from kr.values import Value


def model_of(value: type[Value]) -> type[BaseModel]:
    """Make the model that has the fields of a value, and models in place of the values within it."""
    hints = get_type_hints(value)
    fields: dict[str, Any] = {
        name: (_modelled(hints[name]), value.defaults().get(name, ...)) for name in value.names()
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
