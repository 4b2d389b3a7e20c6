"""Takes out of a text what means nothing on another machine or tomorrow, and what nobody else may see (SPEC 4.2)."""

import re

from kr.lessons.distill.secrets import without_secrets
from kr.text.characters import strip_invisible

_CLOCK = r"[0-2]?[0-9]:[0-5][0-9]:[0-5][0-9](?:[.,][0-9]{1,9})?"
_NOISE = (
    # Times: ISO, log4j, syslog and HTTP dates.
    (re.compile(rf"[\[(]?\b[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{_CLOCK}\s?(?:Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})?[\])]?|\[[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\]"), ""),
    (re.compile(rf"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:[0-9]{{1,2}} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* (?:[0-9]{{1,2}},? )?(?:[0-9]{{4}} )?{_CLOCK}(?: ?(?:GMT|UTC))?(?: [0-9]{{4}})?|\b{_CLOCK}\b"), ""),
    (re.compile(r"^==\d+==\s*", re.MULTILINE), ""),
    # Names that a process or a machine gave.
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\s?\bat 0x[0-9a-f]{6,16}\b|\b0x[0-9a-f]{8,16}\b|(?<=\w)@sha256:[0-9a-f]{12,64}\b", re.IGNORECASE), ""),
    (re.compile(r"\[(?:main|[\w-]*(?:thread|nio|exec|worker)[\w-]*)\]\s?|\b(?:pid|tid)[ :=]+[0-9]+\b", re.IGNORECASE), ""),
    # People and accounts.
    (re.compile(r"(?<![\w./@:+-])[\w.+-]{1,64}@(?!example\.)(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,12}\b(?![:/@(])"), "<e-mail>"),
    (re.compile(r"(?<=:)[0-9]{12}(?=:)|\b[0-9]{12}(?=\.dkr\.ecr\.)"), "<account>"),
)  # fmt: skip
_SEGMENT = r"[^\s/\\:*?\"'<>|()\[\]{},;，。；：（）`]+"
_UNIX = re.compile(rf"(?<![\w.~/:@}}-])(?:file://)?/{_SEGMENT}(?:/{_SEGMENT})+/?")
_WINDOWS = re.compile(
    rf"(?<![\w])(?:(?:file:///)?[A-Za-z]:[\\/]|\\\\(?=\w))(?:{_SEGMENT}(?: {_SEGMENT}(?=[\\/]))*[\\/])*{_SEGMENT}"
)
_ROUTE_BEFORE = re.compile(
    r"(?:\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|route|endpoint|path|url)\b[ :`'\"]*)$", re.IGNORECASE
)
_MACHINE = frozenset(
    re.findall(
        r"\S+",
        """
    home Users root tmp var usr opt etc mnt srv private build builds workspace workspaces runner github
    __w Volumes nix snap app code repo repos project projects work data media Library Applications go
    """,
    )
)
_EVERYWHERE = re.compile(
    r"Cargo\.toml|package\.json|pyproject\.toml|go\.mod|pom\.xml|Makefile|CMakeLists\.txt|__init__\.py|index\.\w+"
)
_PACKAGES = ("site-packages", "dist-packages", "node_modules")
_PROJECT = frozenset(
    re.findall(
        r"\S+",
        """
    src app apps lib packages modules tests test e2e cypress components pages server client backend
    frontend services cmd internal pkg scripts config docs migrations
    """,
    )
)


def visible(text: str) -> str:
    """Return the text without terminal escapes, invisible characters and secrets; paths stay whole."""
    return without_secrets(strip_invisible(text))


def clean(text: str) -> str:
    """Return the text also without times, machine names and absolute paths; lines stay lines."""
    return portable(visible(text))


def portable(text: str) -> str:
    """Return a ``visible`` text without times, machine names and absolute paths."""
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return "\n".join(_relative_paths(line) for line in text.split("\n"))


def _relative_paths(line: str) -> str:
    line = _UNIX.sub(lambda found: _shortened(found, line), line)
    return _WINDOWS.sub(lambda found: relative_path(found[0]), line)


def _shortened(found: re.Match[str], line: str) -> str:
    """Shorten a machine's path; a route of the program stays: ``GET /api/users``."""
    first = found[0].removeprefix("file://").strip("/").partition("/")[0]
    is_route = _ROUTE_BEFORE.search(line[max(0, found.start() - 24) : found.start()]) is not None
    if first not in _MACHINE or is_route:
        return found[0]
    path = relative_path(found[0])
    # Each folder has one of these: in a sentence its name alone says nothing.
    folder = found[0].rstrip("/").rpartition("/")[0].rpartition("/")[2]
    return f"{folder}/{path}" if _EVERYWHERE.fullmatch(path) else path


def relative_path(path: str) -> str:
    """Make a machine's path relative to the last folder that projects have; slashes become forward ones."""
    plain = path.strip().removeprefix("file://").replace("\\", "/")
    if not plain.startswith(("/", "~/")) and not re.match(r"[A-Za-z]:/", plain):
        return plain.removeprefix("./")
    parts = [part for part in plain.split("/") if part]
    for package in _PACKAGES:
        if package in parts[:-1]:
            return "/".join(parts[len(parts) - parts[::-1].index(package) :])
    start = next((at for at, part in enumerate(parts[1:-1], start=1) if part in _PROJECT), len(parts) - 1)
    return "/".join(parts[start:])
