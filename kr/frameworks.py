"""Which names mean one framework.

Case, ``-``, ``_``, ``.`` and space don't count; other usual names come from ``frameworks.txt`` and from the user's
``aliases``. A package's full name (``@nestjs/core``, ``github.com/gin-gonic/gin``, ``group:artifact``) is read as its registry does.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

from kr.text import fold

_SEPARATORS = str.maketrans("", "", "-_. ")
_PACKAGE = r"@[\w.-]+/[\w.-]+|[^\s/:*]+"
_VERSIONED = re.compile(r"(.*?[^\d\s._-])([\s._-]*)v?(\d+)(?:\.(?:\d+|x))*", re.DOTALL)
_LONGEST = 200
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


def framework_key(framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> str:
    """Return the key that all names of one framework share: ``Next.js``, ``next`` and ``vercel/next.js`` are ``nextjs``.

    ``aliases`` (other name: framework) go before the shipped table. A key is its own key. A version behind a name is dropped
    where the name is known or ``@`` stands before it (``Vue 3``, ``foo@1.2``): versions are kept elsewhere.
    """
    key = _key(fold(framework))
    if not aliases:
        return key
    targets = {_squashed(fold(other)): name for other, name in aliases.items()}
    target = targets.get(_squashed(fold(framework)), targets.get(key))
    return key if target is None else _key(fold(target))


def same_framework(one: str, other: str, aliases: Mapping[str, str] = _NO_ALIASES) -> bool:
    return framework_key(one, aliases) == framework_key(other, aliases)


def lookup_keys(framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> tuple[str, ...]:
    """Return the keys, made without ``aliases``, under which entries of the framework may be kept; sorted.

    What is kept stays findable when the configuration changes: rows hold ``framework_key(name)``, and a look-up asks for
    all of these. One of them may hold another framework too, when ``aliases`` part what the table joins.
    """
    wanted = framework_key(framework, aliases)
    names = {name for pair in aliases.items() for name in pair if framework_key(name, aliases) == wanted}
    return tuple(sorted({framework_key(name) for name in {framework, *names}}))


def is_usual_name(name: str) -> bool:
    """Tell whether the shipped table knows the name."""
    return framework_key(name) in _rows()


def is_language_or_product(name: str) -> bool:
    """Tell whether a name is never meant for a package whose full name only ends with it (``go``, ``postgresql``)."""
    return framework_key(name) in _products()


def named_by_group(package: str) -> str | None:
    """Return the name of the framework that a Maven group is (``spring-boot`` of its starters); None where the table has none.

    A package of the group that is a framework of its own has another row.
    """
    row = _rows().get(framework_key(package), [])
    is_group = f"{fold(package).partition(':')[0]}:*" in row
    return re.sub(r"\s+", "-", row[0]) if is_group else None


def packages_named(name: str) -> list[str]:
    """Return the other usual names of a framework, as the table writes them, that may be a package's: no ``owner/repo``, no blank."""
    row = _rows().get(framework_key(name), ())
    return [other for other in row if other != fold(name) and re.fullmatch(_PACKAGE, other)]


def _squashed(name: str) -> str:
    bare = name.translate(_SEPARATORS) or name
    return bare if bare.isascii() else fold(bare)  # a mark that stood alone may now stand on a letter


def _key(name: str) -> str:
    """Return the key of a folded name: what no rule makes simpler any more, so that a key is its own key."""
    if len(name) > _LONGEST:
        return name
    while (simpler := _simpler(name)) != name:
        name = simpler
    return name


@lru_cache(maxsize=2048)
def _simpler(name: str) -> str:
    if known := _known(name):
        return known
    if "/" in name or ":" in name or "@" in name:
        return _of_package(name)
    versioned = _VERSIONED.fullmatch(name)
    if versioned is None:
        return _squashed(name)
    bare, gap, major = versioned.groups()
    # One letter and a digit are a name of their own: R2, C3.
    is_name = len(bare) > 1 or gap
    return _known(bare + major) or (_known(bare) if is_name else None) or _squashed(name)


def _known(name: str) -> str | None:
    """Return the key of a name in the table."""
    squashed = _squashed(name)
    exact, prefixes = _index()
    if squashed in exact or not squashed.startswith(tuple(prefixes)):
        return exact.get(squashed)
    return next(key for prefix, key in prefixes.items() if squashed.startswith(prefix))


def _of_package(name: str) -> str:
    """Read a URL, a module's path, a scoped package, ``group:artifact`` or ``name@version``, one part at a time.

    A known scoped package is meant without its ``@`` too: agents leave it out.
    """
    for prefix in ("https://", "http://", "www.", "github.com/"):
        if name.startswith(prefix) and len(name) > len(prefix):
            return name.removeprefix(prefix)
    head, _, tail = name.rpartition("@")
    if head and tail.lstrip("^~=<>v")[:1].isdigit():
        return head
    if ":" in name and "://" not in name:
        head, _, tail = name.rpartition(":")
        return head if head and tail[:1].isdigit() else tail or _squashed(name)
    head, _, tail = name.rpartition("/")
    if head and (not tail or re.fullmatch(r"v\d+", tail)):
        return head
    if head and tail.endswith(".git"):
        return name.removesuffix(".git")
    if head == "@types" and tail:
        return tail
    if head.startswith("@") and tail == "core":
        return head.removeprefix("@")
    if head and (scoped := _known(f"@{name.removeprefix('@')}")):
        return scoped
    keys = {_key(part) for part in name.removeprefix("@").split("/")} if head else set()
    return keys.pop() if len(keys) == 1 else _squashed(name)


@cache
def _rows() -> dict[str, list[str]]:
    """Return the names of each framework as they are written, by its key, which is the first of them without separators."""
    rows = ([name.strip(" !") for name in line.replace("=", ",").split(",")] for line in _lines())
    return {_squashed(row[0]): row for row in rows}


@cache
def _products() -> frozenset[str]:
    return frozenset(_squashed(line[1:].partition("=")[0].strip()) for line in _lines() if line[0] == "!")


@cache
def _lines() -> list[str]:
    table = Path(__file__).with_name("frameworks.txt").read_text(encoding="utf-8")
    return [line for line in table.splitlines() if line and line[0] != "#"]


@cache
def _index() -> tuple[dict[str, str], dict[str, str]]:
    """Return the keys by name, and by what stands before the ``*`` of a name: a longer one before a shorter."""
    pairs = [(_squashed(name), key) for key, row in _rows().items() for name in row]
    prefixes = sorted(((name[:-1], key) for name, key in pairs if name[-1] == "*"), reverse=True)
    return {name: key for name, key in pairs if name[-1] != "*"}, dict(prefixes)
