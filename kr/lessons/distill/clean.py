"""What of a failure is worth telling (SPEC 4.2).

Out of a text goes what nobody else may see, and what means nothing on another machine or tomorrow; whole failures teach
nothing when they were interrupted, meant to fail, or met a network that was away for a moment.

Secrets go before anything else looks at a text (``kr.guard``).
"""

import re
from collections.abc import Sequence
from functools import cache

from kr import guard
from kr.guard import mask_secrets
from kr.lessons.distill import listed, patterns, phrases, read_table, shortened

_SEGMENT = r"[^\s/\\:*?\"'<>|()\[\]{},;，。；：（）`]+"
_UNIX = re.compile(rf"(?<![\w.~/:@}}-])(?:file://)?/{_SEGMENT}(?:/{_SEGMENT})+/?")
_WINDOWS = re.compile(
    rf"(?<![\w])(?:(?:file:///)?[A-Za-z]:[\\/]|\\\\(?=\w))(?:{_SEGMENT}(?: {_SEGMENT}(?=[\\/]))*[\\/])*{_SEGMENT}"
)
_EVERYWHERE = re.compile(
    r"Cargo\.toml|package\.json|pyproject\.toml|go\.mod|pom\.xml|Makefile|CMakeLists\.txt|__init__\.py|index\.\w+"
)
_PACKAGES = ("site-packages", "dist-packages", "node_modules")


@cache
def _noise() -> list[tuple[re.Pattern[str], str]]:
    rows = read_table("noise.yaml")["noise"].values()
    return [
        (re.compile(pattern, re.IGNORECASE), text)
        for pattern, text in zip(patterns("noise.yaml", "noise"), rows, strict=True)
    ]


def visible(text: str) -> str:
    """Return the text without terminal escapes, invisible characters and secrets; paths stay whole."""
    return mask_secrets(guard.clean(text))


def clean(text: str) -> str:
    """Return the text also without times, machine names and absolute paths; lines stay lines."""
    return portable(visible(text))


def portable(text: str) -> str:
    """Return a ``visible`` text without times, machine names and absolute paths."""
    for pattern, replacement in _noise():
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
