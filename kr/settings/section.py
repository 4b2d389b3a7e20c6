"""What the models of the configuration are built from: the base of a section, and mappings of one kind."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from kr.settings.kinds import Kind, shown, wrong


def described(default: Any, description: str, **kwargs: Any) -> Any:
    """Declare a key with its default and the line that the template and the reference explain it with."""
    return Field(default, description=description, **kwargs)


class Section(BaseModel):
    """A mapping of the file. A key with nothing after it holds no keys; unknown keys are ignored here."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _is_mapping(cls, data: object) -> object:
        if data is None:
            return {}
        if not isinstance(data, dict | cls):
            raise wrong(f"must be a mapping, not {shown(data)}")
        return data


def mapping_of(kind: Kind) -> Callable[[object], object]:
    """Check every value of a mapping, naming the key that holds a wrong one."""

    def read(value: object) -> object:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong(f"must be a mapping, not {shown(value)}")
        for key, item in value.items():
            try:
                kind(item.get_secret_value() if isinstance(item, SecretStr) else item)
            except ValueError as exc:
                raise wrong(f"has a wrong value for {shown(key)}: {exc}") from exc
        return value

    return read
