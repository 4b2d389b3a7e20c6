"""What of a failure is worth telling (SPEC 4.2).

Out of a text goes what nobody else may see, and what means nothing on another machine or tomorrow; whole failures teach
nothing when they were interrupted, meant to fail, or met a network that was away for a moment.

Secrets go before anything else looks at a text. What has a known shape is found by the detectors of ``detect-secrets``, which
are imported late: recording needs them, nothing else does. What has none is found by what stands before it (``secrets.yaml``).
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from kr.lessons.distill import listed, patterns, phrases, read_table, shortened
from kr.text.characters import strip_invisible

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

SECRET = "<secret>"  # noqa: S105 - what stands in place of one
# Letters of full width are read as the plain ones: a name must not hide in them.
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F) if chr(code).isalnum() or chr(code) in "=_-"}
_RANDOM = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_+/-]{24,}={0,2}(?![\w/+-])")
_HEX = re.compile(r"(?<![\w-])(?<!commit )(?:0x)?[0-9a-fA-F]{32,}(?![\w-])")
# The rest of one that a terminal wrapped.
_WRAPPED = re.compile(
    r"<secret>\n[ \t]*(?=\S*[0-9])(?=\S*[a-z])(?=\S*[A-Z])[\w+/=-]{8,}(?=\s*$)", re.MULTILINE
)
_FOLDER = 12
"""Characters that a folder's name has at most on the average; in a key a slash is rarer."""
# The detectors by entropy, by keyword and for addresses stay out: the rules know what stands beside a name, and an
# address is no secret.
_LEFT_OUT = frozenset({"base", "high_entropy_strings", "ip_public", "keyword", "private_key"})
_CLASSES = (str.isupper, str.islower, str.isdigit)

_SEGMENT = r"[^\s/\\:*?\"'<>|()\[\]{},;，。；：（）`]+"
_UNIX = re.compile(rf"(?<![\w.~/:@}}-])(?:file://)?/{_SEGMENT}(?:/{_SEGMENT})+/?")
_WINDOWS = re.compile(
    rf"(?<![\w])(?:(?:file:///)?[A-Za-z]:[\\/]|\\\\(?=\w))(?:{_SEGMENT}(?: {_SEGMENT}(?=[\\/]))*[\\/])*{_SEGMENT}"
)
_EVERYWHERE = re.compile(
    r"Cargo\.toml|package\.json|pyproject\.toml|go\.mod|pom\.xml|Makefile|CMakeLists\.txt|__init__\.py|index\.\w+"
)
_PACKAGES = ("site-packages", "dist-packages", "node_modules")


def without_secrets(text: str) -> str:
    """Return the text with ``<secret>`` in place of every value that is, or may be, one. Lines stay lines."""
    text = text.translate(_WIDE)
    for pattern, replacement in _rules("rules"):
        text = pattern.sub(replacement, text)
    for detector in _detectors():
        for found in sorted(set(detector.analyze_string(text)), key=len, reverse=True):
            if found and len(found) > 5:
                text = text.replace(found, SECRET)
    for pattern, _ in _rules("named"):
        text = pattern.sub(_taken_out, text)
    text = _WRAPPED.sub(SECRET, _HEX.sub(SECRET, text))
    return _RANDOM.sub(lambda found: SECRET if _is_random(found[0]) else found[0], text)


def _taken_out(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    is_count = value.isdigit() and "tokens" in name.lower()
    if is_count or SECRET in value or not any(map(str.isalnum, value)) or _is_harmless(value):
        return found[0]
    return f"{name}{SECRET}"


def _is_harmless(value: str) -> bool:
    if phrases("variable").match(value):
        return True
    has_digits = any(map(str.isdigit, value))
    return phrases("harmless").match(value) is not None and not (value[0] in "\"'`" and has_digits)


def _is_random(text: str) -> bool:
    """Tell a key from a name or a path: it changes between capitals, small letters and digits all the time."""
    if text.count("/") * _FOLDER > len(text):
        return False
    kinds = [next((at for at, kind in enumerate(_CLASSES) if kind(letter)), 3) for letter in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    return {0, 1, 2} <= set(kinds) and changes >= len(text) / 3


@cache
def _rules(kind: str) -> list[tuple[re.Pattern[str], str]]:
    """Return rules of ``secrets.yaml``: what they find, and what takes its place."""
    rows = read_table("secrets.yaml")[kind]
    put = (rf"\1{SECRET}" if text is None else text for text in map(rows.get, rows))
    return [
        (re.compile(pattern, re.IGNORECASE), text)
        for pattern, text in zip(patterns("secrets.yaml", kind), put, strict=True)
    ]


@cache
def _detectors() -> "Sequence[RegexBasedDetector]":
    # Loading them takes 0.2 s.
    from importlib import import_module
    from pkgutil import iter_modules

    from detect_secrets import plugins
    from detect_secrets.plugins.base import RegexBasedDetector

    names = [found.name for found in iter_modules(plugins.__path__) if found.name not in _LEFT_OUT]
    modules = [import_module(f"{plugins.__name__}.{name}") for name in names]
    kinds = {
        kind: None
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind is not RegexBasedDetector
    }
    return tuple(kind() for kind in kinds)


def visible(text: str) -> str:
    """Return the text without terminal escapes, invisible characters and secrets; paths stay whole."""
    return without_secrets(strip_invisible(text))


def clean(text: str) -> str:
    """Return the text also without times, machine names and absolute paths; lines stay lines."""
    return portable(visible(text))


def portable(text: str) -> str:
    """Return a ``visible`` text without times, machine names and absolute paths."""
    for pattern, replacement in _rules("noise"):
        text = pattern.sub(replacement, text)
    return "\n".join(_relative_paths(line) for line in text.split("\n"))


def _relative_paths(line: str) -> str:
    return _WINDOWS.sub(lambda found: relative_path(found[0]), _UNIX.sub(_shortened, line))


def _shortened(found: re.Match[str]) -> str:
    """Shorten a machine's path; another one is a route of the program's: ``/api/users``."""
    parts = found[0].removeprefix("file://").rstrip("/").split("/")
    if parts[1] not in listed("words.yaml", "machine"):
        return found[0]
    path = relative_path(found[0])
    # Each folder has one of these: in a sentence its name alone says nothing.
    return f"{parts[-2]}/{path}" if _EVERYWHERE.fullmatch(path) else path


def relative_path(path: str) -> str:
    """Make a machine's path relative to the last folder that projects have; slashes become forward ones."""
    plain = path.strip().removeprefix("file://").replace("\\", "/")
    if not plain.startswith(("/", "~/")) and not re.match(r"[A-Za-z]:/", plain):
        return plain.removeprefix("./")
    parts = [part for part in plain.split("/") if part]
    for package in _PACKAGES:
        if package in parts[:-1]:
            return "/".join(parts[len(parts) - parts[::-1].index(package) :])
    start = next(
        (at for at, part in enumerate(parts[1:-1], start=1) if part in listed("words.yaml", "project")), -1
    )
    if start < 0:
        start = _within_project(parts)
    return "/".join(parts[start:])


def _within_project(parts: Sequence[str]) -> int:
    """Return where in a machine's path a project's own part begins: behind the folder that a home keeps it in."""
    last = len(parts) - 1
    project = next((at for at in range(2, last) if parts[at] not in listed("words.yaml", "machine")), last)
    # What is hidden, or an environment, holds programs and is no project.
    is_project = parts[0] in {"home", "Users"} and not parts[project].startswith((".", "venv"))
    return min(project + 1, last) if is_project else last


_OFTEN = 3
_LOOKED_AT = 20_000


def teaches_nothing(text: str) -> bool:
    """Tell a failure that nobody can learn from, by what was said of it and by what a tool printed."""
    text = shortened(text, _LOOKED_AT)
    return _says("interrupted", text) or _says("meant", text) or _is_moment(text)


def is_no_failure(text: str) -> bool:
    """Tell an output that only warns, or that only says that what was looked for is not there."""
    text = shortened(text, _LOOKED_AT).strip()
    rest = phrases("outdated").sub("", text)
    is_warned = _says("warned", text) and not _says("more_than_warned", text)
    is_outdated = rest != text and not _says("error", rest)
    return is_warned or is_outdated or all(_is_in_vain(line, "looks") for line in text.split("\n"))


def is_meant(said: str) -> bool:
    """Tell by an agent's own words about its call that it is to fail: the red phase of test-first work."""
    return _says("meant", said) or _says("meant_call", said)


def without_vain_looks(text: str) -> str:
    """Return a text without the lines in which a shell's program says that what it looked for is not there."""
    return "\n".join(line for line in text.splitlines() if not _is_in_vain(line, "reads"))


def is_slip(text: str) -> bool:
    """Tell what a tool's failure shows to be but a slip of whoever called it."""
    text = shortened(text, _LOOKED_AT)
    is_usage = _says("usage", text) and not _says("rule", text)
    return (is_usage or _says("slip", text)) and not _says("out_of_memory", text)


def _says(kind: str, text: str) -> bool:
    return phrases(kind).search(text) is not None


def _is_in_vain(line: str, programs: str) -> bool:
    found = phrases(programs).search(line)
    return found is not None and phrases("absent").search(line, found.end()) is not None


def _is_moment(text: str) -> bool:
    """Tell a network that was away for a moment from one that stays away: that was tried again and again."""
    is_here = _says("here", phrases("fetched").sub("", text))
    if not _says("away", text) or is_here or _says("stays", text):
        return False
    times = (phrases("away").findall(phrases("said_again").sub("", text)), phrases("retried").findall(text))
    return max(map(len, times)) < _OFTEN
