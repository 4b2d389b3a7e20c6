"""Which names mean one framework (SPEC 3.2, "Candidates").

Case, ``-``, ``_``, ``.`` and space don't count; other usual names come from ``frameworks.txt`` and from the user's
``aliases``. A package's full name (``@nestjs/core``, ``github.com/gin-gonic/gin``, ``group:artifact``) is read as its registry
does. No guess is made here but by :func:`meant`, which needs to know what the cache holds.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

from kr.naming import fold

_SEPARATORS = str.maketrans("", "", "-_. ")
_DASHES = str.maketrans("_. ", "---")
_PACKAGE = r"@[\w.-]+/[\w.-]+|[^\s/:*]+"
_LONGEST = 200
_SHORTEST_TYPO = 5
_SHORTEST_ASKED = 3
_MOST_ALIKE = 3
_LEAST_ALIKE = 60.0
_MUCH_LESS = 15.0
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


def canonical(framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> str:
    """Return the key that all names of one framework share: ``Next.js``, ``next`` and ``vercel/next.js`` are ``nextjs``.

    ``aliases`` (other name: framework) goes before the shipped table and is followed from name to name; where
    it goes round in a circle, the names in it are one. A key is its own key. A version behind a name is dropped
    where the name is known or ``@`` stands before it (``Vue 3``, ``foo@1.2``), since versions are told apart elsewhere.
    """
    key = _key(fold(framework))
    if not aliases:
        return key
    targets = {_squashed(fold(other)): name for other, name in aliases.items()}
    seen: list[str] = []
    written = _squashed(fold(framework))
    while (target := targets.get(written, targets.get(key))) is not None:
        step = written if written in targets else key
        if step in seen:
            return min(seen[seen.index(step) :])
        seen.append(step)
        written, key = _squashed(fold(target)), _key(fold(target))
    return key


def same_framework(one: str, other: str, aliases: Mapping[str, str] = _NO_ALIASES) -> bool:
    """Tell whether two names mean one framework."""
    return canonical(one, aliases) == canonical(other, aliases)


def lookup_keys(framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> tuple[str, ...]:
    """Return the keys, made without ``aliases``, under which entries of the framework may be kept; sorted.

    What is kept stays findable when the configuration changes: rows hold ``canonical(name)``, and a look-up asks for
    all of these. One of them may hold another framework too, when ``aliases`` parts what the table joins.
    """
    if not aliases:
        return (canonical(framework),)
    wanted = canonical(framework, aliases)
    names = {name for pair in aliases.items() for name in pair if canonical(name, aliases) == wanted}
    return tuple(sorted({canonical(name) for name in {framework, *names}}))


def is_usual_name(name: str) -> bool:
    """Tell whether the shipped table knows the name."""
    return bool(_usual_names(canonical(name)))


def packages_named(name: str) -> list[str]:
    """Return the other usual names of a framework, as the table writes them, that may be a package's: no ``owner/repo``, no blank."""
    key = canonical(name)
    if not is_usual_name(key):
        return []
    lines = (line.replace("=", ",").split(",") for line in names().splitlines())
    usual = next(row for row in ([it.strip() for it in line] for line in lines) if _squashed(row[0]) == key)
    return [it for it in usual if it != fold(name) and re.fullmatch(_PACKAGE, it)]


def meant(name: str, known: Iterable[str], packages: Collection[str] = ()) -> str | None:
    """Return the key of the one known framework that a mistyped or shortened name means, or None.

    ``known`` are the frameworks that the cache has entries of, ``packages`` the project's dependencies: one of them
    is never taken for a typing error, nor is any name of the table. One error (a letter more, less, another, or
    two swapped) in names of five letters or more, not in the first letter and not in a digit; short forms are
    those of the table (``tf``). Two known frameworks that fit are none.
    """
    typed = canonical(name)
    keys = {canonical(other) for other in known}
    if typed in keys or is_usual_name(typed) or typed in {canonical(package) for package in packages}:
        return None
    fitting = keys & _short_forms().get(typed, frozenset())
    if not fitting and len(typed) >= _SHORTEST_TYPO:
        fitting = {key for key in keys if any(_is_slip(typed, usual) for usual in _usual_names(key) or [key])}
    return fitting.pop() if len(fitting) == 1 else None


def mistyped(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that one typing error parts from a name which is none of them, and no usual one: to ask back."""
    typed = canonical(name)
    keys = {canonical(other): other for other in known}
    if typed in keys or is_usual_name(typed):
        return []
    return sorted(other for key, other in keys.items() if _is_slip(typed, key, shortest=_SHORTEST_ASKED))


def most_alike(wanted: str, names: Iterable[str]) -> list[str]:
    """Return the names most like ``wanted`` when folded, at most three, the most alike first."""
    from rapidfuzz import fuzz, process

    found = process.extract(
        fold(wanted[:_LONGEST]),
        sorted(names),
        scorer=fuzz.WRatio,
        processor=fold,
        limit=_MOST_ALIKE,
        score_cutoff=_LEAST_ALIKE,
    )
    return [choice for choice, score, _ in found if score > found[0][1] - _MUCH_LESS]


def _key(name: str) -> str:
    """Return the key of a folded name: what no rule makes simpler any more, so that a key is its own key."""
    if len(name) > _LONGEST:
        return name
    while (simpler := _simpler(name)) != name:
        name = simpler
    return name


@lru_cache(maxsize=2048)
def _simpler(name: str) -> str:
    known = _known(_squashed(name))
    if known:
        return known
    if "/" in name or ":" in name or "@" in name:
        return _of_package(name)
    return _without_version(name) or _without_language(name) or _squashed(name)


def _known(squashed: str) -> str | None:
    names = _usual_names(squashed)
    if names or squashed.isalnum():
        return names[0] if names else None
    return next((key for prefix, key in _prefixes() if squashed.startswith(prefix)), None)


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
    if head and (not tail or (tail[0] == "v" and tail[1:].isdigit())):
        return head
    if head and tail.endswith(".git"):
        return name.removesuffix(".git")
    if head == "@types" and tail:
        return tail
    if head.startswith("@") and tail == "core":
        return head.removeprefix("@")
    if head and (scoped := _known(_squashed(f"@{name.removeprefix('@')}"))):
        return scoped
    keys = {_key(part) for part in name.removeprefix("@").split("/")} if head else set()
    return keys.pop() if len(keys) == 1 else _squashed(name)


def _without_version(name: str) -> str | None:
    """Return the key of a known name that a version follows: ``Vue 3.x``, ``angular-17``, ``python3``."""
    parts = name.translate(_DASHES).split("-")
    shorter = ["".join(parts)]
    while len(parts) > 1 and _is_number(parts[-1]):
        parts.pop()
        shorter.append("".join(parts))
    bare = [rest.rstrip("0123456789") for rest in shorter]
    # One letter and a digit are a name of their own: R2, C3.
    joined = [rest for rest in (*bare, *(rest.removesuffix("v") for rest in bare)) if len(rest) > 1]
    return next((names[0] for rest in (*shorter, *joined) if (names := _usual_names(rest))), None)


def _without_language(name: str) -> str | None:
    """Return the key of what belongs to one language and stands beside its name: ``python-celery``, ``gin golang``."""
    parts = [part for part in name.translate(_DASHES).split("-") if part]
    for language, rest in ((parts[:1], parts[1:]), (parts[-1:], parts[:-1])):
        key = _known("".join(rest))
        if key and {*language} & {*_languages_of(key)}:
            return key
    return None


def _languages_of(key: str) -> list[str]:
    text = _table()
    start = text.rfind("[", 0, text.find(f",{key},")) + 1
    return text[start : text.find("]", start)].split(",")


def _is_number(part: str) -> bool:
    return part in {"", "x"} or part.removeprefix("v").isdigit()


def _is_slip(one: str, other: str, *, shortest: int = _SHORTEST_TYPO) -> bool:
    """Tell whether one typing error parts two names, and neither the first letter nor a digit is touched."""
    if min(len(one), len(other)) < shortest or one[0] != other[0]:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return (one + other).isalpha() and (
        (len(one) < 2 and len(other) < 2) or (len(one) == 2 and one == other[::-1])
    )


def _squashed(name: str) -> str:
    bare = name.translate(_SEPARATORS) or name
    return bare if bare.isascii() else fold(bare)  # a mark that stood alone may now stand on a letter


def _usual_names(squashed: str) -> list[str]:
    """Return the names of the table's line in which a name stands, the framework's key first; none when it stands in none."""
    text = _table()
    at = text.find(f",{squashed},") if "," not in squashed and "\n" not in squashed else -1
    if at < 0:
        return []
    return text[text.rfind("\n", 0, at) + 2 : text.find(",\n", at)].split(",")


@cache
def _table() -> str:
    """Return the table as one text, each name without separators and between commas.

    It is searched as it stands: a look-up of one or two names need not take apart 1,500.
    """
    text = names().translate(_SEPARATORS).replace("=", ",").replace("\n", ",\n,")
    return f"\n,{text},\n"


def names() -> str:
    """Return the shipped table as it is written, one framework a line."""
    return _sections()[0]


def short_forms() -> list[str]:
    """Return the lines of the short forms that stand for one of several, as they are written."""
    return _sections()[1].splitlines()


@cache
def _sections() -> tuple[str, str]:
    text = Path(__file__).with_name("frameworks.txt").read_text(encoding="utf-8")
    usual, _, short = text.partition("\n\n# Short forms")
    return usual[usual.index("\n[]\n") + 1 :], short.partition("]\n")[2].rstrip()


@cache
def _prefixes() -> tuple[tuple[str, str], ...]:
    """Return what stands before the ``*`` of a name, and the framework's key; a longer one before a shorter."""
    lines = (line.strip(",").split(",") for line in _table().splitlines() if "[" not in line)
    return tuple(
        sorted(((n[:-1], key) for key, *names in lines for n in names if n[-1] == "*"), reverse=True)
    )


@cache
def _short_forms() -> Mapping[str, frozenset[str]]:
    lines = (line.translate(_SEPARATORS).partition("=") for line in short_forms())
    return {short: frozenset(map(canonical, names.split(","))) for short, _, names in lines}
