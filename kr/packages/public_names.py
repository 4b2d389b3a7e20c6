"""What a Python package offers, and under which path: its ``__init__`` files say it (SPEC 3.5.5: public import paths)."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_INTERNAL = re.compile(
    r"_\w+|internals?|tests?|testing_support|vendor(?:ed)?|v\d+|compat|legacy|deprecated", re.ASCII
)
_CLASS = re.compile(r"^class[ \t]+(\w+)[ \t]*\(([^()]{1,500})", re.MULTILINE)
_FROM = re.compile(r"^from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^()]{1,5000}\)|[^\n(]{1,500})", re.MULTILINE)
_MAX_STEPS = 4
_EXPORTED, _PLAIN, _KEPT = 1.25, 1.0, 0.6
_DEEP, _DEEPEST = (
    0.85,
    3,
)  # what lies in a module of a module of a package is seldom what users are meant to call


@dataclass(frozen=True, slots=True)
class Named:
    """How a name is shown. ``weight``: more when the package offers it, less when it keeps it to itself."""

    path: str
    weight: float
    is_exported: bool


class PublicNames:
    """The paths that users import names by. ``name`` is the distribution's, which wins where paths are alike."""

    def __init__(self, name: str, inits: Mapping[str, str], others: Mapping[str, str] | None = None) -> None:
        """Read the texts of ``__init__`` files by their modules' names; of ``others``, what they offer outright."""
        self._own = re.sub(r"[-.]+", "_", name).lower()
        self._offered: dict[str, set[str]] = {}
        self._heirs: dict[str, set[str]] = {}
        texts = [(*item, False) for item in inits.items()] + [
            (*item, True) for item in (others or {}).items()
        ]
        self._beside: set[str] = set()
        for module, source, only_listed in texts:
            for target, path in _imports(source, module, only_listed=only_listed):
                self._offered.setdefault(target, set()).add(path)
                if only_listed and "__all__" not in source:
                    self._beside.add(path)

    def add_module(self, source: str, module: str) -> None:
        """Remember whose members the classes of a module take over, and where the names come from that it only hands on."""
        for origin, names in _FROM.findall(source):
            for name in re.findall(r"\w+", names):
                if f"{module}.{name}" in self._offered:
                    place = _absolute(
                        origin.lstrip("."), len(origin) - len(origin.lstrip(".")), module, is_init=False
                    )
                    self._offered.setdefault(f"{place}.{name}", set()).add(f"{module}.{name}")
        for name, bases in _CLASS.findall(source):
            for base in bases.split(","):
                plain = base.partition("[")[0].strip().rpartition(".")[2]
                if plain.isidentifier():
                    self._heirs.setdefault(plain, set()).add(f"{module}.{name}")

    def modules(self) -> Iterator[str]:
        """Yield the modules that names are taken from, other packages' among them."""
        for target in self._offered:
            yield target.removesuffix(".*") if target.endswith(".*") else target.rpartition(".")[0]

    def named(self, path: str, module: str) -> Named:
        """Return the public name of what ``module`` defines as ``path`` (``module.Class.method``)."""
        top, _, rest = path[len(module) + 1 :].partition(".")
        own = f"{module}.{top}" if top else module
        found = self._public(own)
        if rest and found in {None, own}:
            found = self._inherited(top) or found
        is_kept = any(_INTERNAL.fullmatch(part) for part in (found or module).split(".")[1:])
        if found is not None:
            is_offered = found != own and found not in self._beside
            weight = _KEPT if is_kept else _EXPORTED if is_offered else _PLAIN
            weight *= _DEEP if found.count(".") >= _DEEPEST else 1.0
            return Named(f"{found}.{rest}" if rest else found, weight, found != own)
        # No path that a user could import: the name alone.
        return Named(path[len(module) + 1 :] if top else path, _KEPT, is_exported=False)

    def _public(self, own: str) -> str | None:
        """Return the path to import a definition by: in its package, the shortest; of equals what is named outright."""
        offered = self._closure(own)
        outright, by_star = (
            [path for path, is_star in offered if is_star is wanted] for wanted in (False, True)
        )
        public = [path for path in (*outright, own, *by_star) if not _is_private(path)]
        return min(
            public, key=lambda path: (path.split(".")[0].lower() != self._own, path.count(".")), default=None
        )

    def _inherited(self, name: str) -> str | None:
        known, level = {name}, [name]
        for _ in range(_MAX_STEPS):
            heirs = {heir for one in level for heir in self._heirs.get(one, ())}
            paths = [path for heir in sorted(heirs) if (path := self._public(heir)) not in {None, heir}]
            if paths:
                return min(path for path in paths if path)
            level = [heir for one in sorted(heirs) if (heir := _parted(one)[1]) not in known]
            known.update(level)
        return None

    def _closure(self, path: str) -> list[tuple[str, bool]]:
        """Return the paths that a definition is offered under, re-exports of re-exports too, and whether by a star."""
        found: dict[str, bool] = {}
        level = [(path, False)]
        for _ in range(_MAX_STEPS):
            level = [
                (offered, was_star or is_star)
                for one, was_star in level
                for offered, is_star in self._offers(one)
                if offered not in found
            ]
            found |= dict(level)
        return list(found.items())

    def _offers(self, path: str) -> Iterator[tuple[str, bool]]:
        yield from ((offered, False) for offered in sorted(self._offered.get(path, ())))
        module, name = _parted(path)
        if not name.startswith("_"):
            for package in sorted(self._offered.get(f"{module}.*", ())):
                yield f"{package.removesuffix('.*')}.{name}", True


def _parted(path: str) -> tuple[str, str]:
    module, _, name = path.rpartition(".")
    return module, name


def _is_private(path: str) -> bool:
    return any(part.startswith("_") for part in path.split("."))


def _imports(source: str, module: str, *, only_listed: bool) -> Iterator[tuple[str, str]]:
    """Yield what a module offers of others: ``(where it is defined, where it is offered)``; stars as ``.*``.

    What an ``__init__`` imports from another package it uses, unless it says that it hands it on (``__all__``, ``Y as Y``).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another package's odd escapes are not our warnings
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    listed = _listed(tree.body)
    private: dict[str, str] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            # ``logger = _Logger(...)``: what the class can do is offered by its one instance.
            made, target = ast.unparse(node.value.func), node.targets[0]
            if made in private and isinstance(target, ast.Name) and not target.id.startswith("_"):
                yield private[made], f"{module}.{target.id}"
        if not isinstance(node, ast.ImportFrom):
            continue
        origin = _absolute(node.module or "", node.level, module, is_init=not only_listed)
        is_own = _top(origin) == _top(module) and not only_listed
        for alias in node.names:
            shown = alias.asname or alias.name
            if shown.startswith("_"):
                private[shown] = f"{origin}.{alias.name}"
            elif is_own or shown in listed or shown == "*" or _hands_on(alias, only_listed=only_listed):
                yield f"{origin}.{alias.name}", f"{module}.{shown}"


def _hands_on(alias: ast.alias, *, only_listed: bool) -> bool:
    """Tell whether an import offers by ``as``; outside of an ``__init__`` by the same name alone (PEP 484)."""
    return alias.asname == alias.name or (alias.asname is not None and not only_listed)


def _top(module: str) -> str:
    return module.partition(".")[0].lstrip("_")


def _listed(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names of a module's ``__all__``."""
    lists = [
        node.value
        for node in _statements(body)
        if isinstance(node, ast.Assign)
        and "__all__" in {getattr(target, "id", None) for target in node.targets}
    ]
    items = (item for value in lists for item in ast.walk(value) if isinstance(item, ast.Constant))
    return {item.value for item in items if isinstance(item.value, str)}


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        for name in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.ExceptHandler)):
                yield from _statements(getattr(node, name, ()))


def _absolute(name: str, level: int, module: str, *, is_init: bool) -> str:
    """Return the module that an import means: ``level`` dots and a name, seen from ``module``."""
    if not level:
        return name
    parts = module.split(".")
    base = parts[: len(parts) - level + is_init]
    return ".".join([*base, *([name] if name else [])])
