"""The former bases of records, for modules that are not yet made of dataclasses; it goes with the last of them."""

import dataclasses
from operator import itemgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NoReturn,
    Self,
    TypeVar,
    dataclass_transform,
)

V = TypeVar("V")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """A frozen value: its fields are the annotations of its class, given by keyword, and compared one by one.

    A frozen dataclass does the same and costs half a millisecond for each class that is imported; on a hit that would
    be more than all its SQL.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        own = [name for name in cls.__annotations__ if not name.startswith("_")]
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}

    def __init__(self, **values: Any) -> None:
        given = {**self._defaults, **values}
        if given.keys() != self._names:
            odd = sorted(given.keys() ^ self._names)
            raise TypeError(f"{type(self).__name__}: missing or unknown: {', '.join(odd)}")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} can't be set: it is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} can't be deleted: it is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((type(self), *self.fields().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.fields().items())})"

    def _replace(self, **changes: Any) -> Self:
        if not changes.keys() <= self._names:
            odd = sorted(changes.keys() - self._names)
            raise TypeError(f"{type(self).__name__}: unknown: {', '.join(odd)}")
        made = object.__new__(type(self))
        # What a cached property keeps beside the fields is not the new one's.
        known = self.__dict__ if len(self.__dict__) == len(self._fields) else self.fields()
        made.__dict__.update(known, **changes)
        return made

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return cls._fields

    @classmethod
    def field_defaults(cls) -> dict[str, Any]:
        return dict(cls._defaults)

    def fields(self) -> dict[str, Any]:
        """Return the fields by their names, as they are."""
        return {name: self.__dict__[name] for name in self._fields}

    def plain(self) -> dict[str, Any]:
        """Return the fields as nested plain data: values within it as mappings, tuples as lists."""
        return {name: _plain(value) for name, value in self.fields().items()}


def _plain(value: object) -> object:
    if isinstance(value, Value):
        return value.plain()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def replace(value: V, /, **changes: Any) -> V:
    return value._replace(**changes) if isinstance(value, Value) else dataclasses.replace(value, **changes)  # type: ignore[type-var]


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported
else:

    class NamedTuple(tuple):  # noqa: SLOT001 - of the classes below it none is kept in great numbers
        """``typing.NamedTuple`` for what a hit imports: a class is made in a tenth of the time (a tenth of a millisecond)."""

        def __init_subclass__(cls) -> None:
            """Give each field its place."""
            cls._fields = tuple(cls.__annotations__)
            cls._field_defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
            for at, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(at)))

        def __new__(cls, *placed: Any, **named: Any) -> Self:
            """Take every field that has no default, by its place or its name, and no other."""
            if named or len(placed) != len(cls._fields):
                rest = {**cls._field_defaults, **named}
                odd = {*named} - {*cls._fields[len(placed) :]}
                if odd or len(placed) > len(cls._fields) or {*cls._fields[len(placed) :]} - {*rest}:
                    raise TypeError(f"{cls.__name__} takes {', '.join(cls._fields)}")
                placed += tuple(rest[name] for name in cls._fields[len(placed) :])
            return tuple.__new__(cls, placed)

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Copy by place."""
            return tuple(self)

        def __repr__(self) -> str:
            """Show the fields."""
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes: Any) -> Self:
            return type(self)(**{**self._asdict(), **changes})
