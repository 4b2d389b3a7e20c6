"""Takes out of a text what means nothing on another machine or tomorrow (SPEC 4.2).

Times, process noise, absolute paths of a machine and secrets go; names of APIs, routes and settings stay.
"""

import re

from kr.text.characters import strip_invisible

_CLOCK = r"[0-2]?[0-9]:[0-5][0-9]:[0-5][0-9](?:[.,][0-9]{1,9})?"
_TIME = re.compile(
    rf"(?:\b(?:at|on|since) )?[\[(]?(?:[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{_CLOCK}\s?(?:Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})?"
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:[0-9]{{1,2}} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    rf"[a-z]* (?:[0-9]{{1,2}},? )?(?:[0-9]{{4}} )?(?:at )?{_CLOCK}(?: ?(?:GMT|UTC|[A-Z]{{3,4}}|[+-][0-9]{{4}}))?(?: [0-9]{{4}})?"
    rf"|\b{_CLOCK}(?: ?[AP]M)?\b|\b1[0-9]{{9}}(?:[0-9]{{3}})?\b|\[[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\]"
    rf"|[0-9]{{4}}年[0-9]{{1,2}}月[0-9]{{1,2}}日\s*(?:{_CLOCK}|[0-9]{{1,2}}:[0-9]{{2}})?)[\])]?"
)
_LEVEL = re.compile(
    r"^\W*(?:\[?(?:FATAL|ERROR|WARN(?:ING)?|INFO|DEBUG|SEVERE|CRITICAL)\]?(?:\s*[:|-]|\s|$)\s*)+"
)
_NOISE = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), ""),
    (re.compile(r"\s?\bat 0x[0-9a-f]{6,16}\b|\b0x[0-9a-f]{8,16}\b", re.IGNORECASE), ""),
    (re.compile(r"(?<=\w)@[0-9a-f]{6,8}\b"), ""),
    (re.compile(r"\b(?:request|trace|correlation)[-_ ]?id[\"']?\s*[:=]?\s*[\"']?[\w-]{6,}[\"']?,?", re.IGNORECASE), ""),
    (re.compile(r"\b(?:pid|tid)[ :=]+[0-9]+\b", re.IGNORECASE), ""),
    (re.compile(r"\b([Pp]rocess|[Gg]oroutine|[Tt]ransaction) [1-9][0-9]{0,9}\b(?! (?:ms|seconds?|minutes?))"), r"\1"),
    (re.compile(r"(?<=[a-z0-9])-(?=[a-f0-9]*[0-9])[a-f0-9]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), ""),
    (re.compile(r"(?<=\w)@sha256:[0-9a-f]{12,64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{64}\b"), ""),
    (re.compile(r" ?\((?:x[0-9]+ over )?[0-9.]+ ?m?s\)|\bTime elapsed: [0-9.,]+ ?m?s\b|(?<=  )[0-9]+[smhd](?=  | \(x)"), ""),
    (re.compile(r"\[(?:main|nio-[\w-]+|http-nio-[\w-]+|pool-[0-9]+-thread-[0-9]+|Thread-[0-9]+|worker-[0-9]+)\]"), ""),
)  # fmt: skip
_PRIVATE = (
    (re.compile(r"(?<![\w./@:+-])[\w.+-]{1,64}@(?!example\.)(?:[A-Za-z0-9-]{1,63}\.){1,5}(?!service\b|socket\b|timer\b)[A-Za-z]{2,12}\b(?![:/@(])"), "<e-mail>"),
    (re.compile(r"(\barn:aws[\w-]*:[\w-]*:[\w-]*:)[0-9]{12}(?=:)"), r"\1<account>"),
    (re.compile(r"(\baccount(?:[ _-]?id)?[\"']?[ :=]+[\"']?)[0-9]{12}\b", re.IGNORECASE), r"\1<account>"),
    (re.compile(r"\b[0-9]{12}(?=\.dkr\.ecr\.)"), "<account>"),
)  # fmt: skip
_SECRETS = (
    (re.compile(r"\b(Bearer|Basic)\s+(?!auth|token|scheme|header)[\w.~+/=-]{8,}", re.IGNORECASE), r"\1 <secret>"),
    (re.compile(r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[\w-]{16,}"), "<secret>"),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza|tvly-|ctx7sk-|BSA)[\w-]{12,}"), "<secret>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), "<secret>"),
    (re.compile(r"(?<=://)[^\s/:@]+:[^\s/@]+@"), "<secret>@"),
    (re.compile(r"\b((?:password|passwd|pwd|secret|token|api[-_]?key|access[-_]?key)[\"']?\s*[=:]\s*)"
                r"([\"']?)(?!<secret>)[^\s\"',;]{6,}\2", re.IGNORECASE), r"\1<secret>"),
)  # fmt: skip

_MACHINE_ROOTS = re.findall(
    r"\w+",
    "home Users root tmp var usr opt etc mnt srv private builds build workspace workspaces runner github __w Volumes nix snap",
)
# These begin routes as well.
_MAYBE_ROOTS = re.findall(
    r"\w+", "app code repo repos project projects work go data media export Library Applications"
)
_SEGMENT = r"[^\s/\\:*?\"'<>|()\[\]{},;，。；：（）]+"
_UNIX = re.compile(rf"(?<![\w.~/:@}}-])(?:file://)?/{_SEGMENT}(?:/{_SEGMENT})*/?")
# A folder's name may hold blanks where it is plain that it goes on: `Program Files (x86)`, `Jane Doe`.
_BLANK_SEGMENT = r"[\w.-]+(?: (?:[A-Z][\w.-]*|\([\w.-]+\)|and))+"
_WINDOWS = re.compile(
    rf"(?<![\w])(?:(?:file:///)?[A-Za-z]:[\\/]|\\\\(?=\w))(?:(?:{_BLANK_SEGMENT}|{_SEGMENT})[\\/])*{_SEGMENT}"
)
_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")
_ROUTE_BEFORE = re.compile(
    r"(?:\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|route|endpoint|path|url|接口|路由)\b[ :：`'\"]*)$",
    re.IGNORECASE,
)
_BEFORE = 24
"""Characters before a path in which it may be called a route."""
_KEPT = re.compile(
    r"/(?:dev/(?:null|shm|stdin|stdout|stderr|tty|u?random)|proc/\S*|api(?:/\S*)?|v[0-9]+(?:/\S*)?)$"
)
# What is above these is the machine's; from here on it is the project's, or a package's own.
_LANDMARKS = re.findall(
    r"\S+",
    "site-packages dist-packages node_modules src app apps lib packages modules tests test e2e cypress components pages"
    " server client backend frontend services cmd internal pkg scripts config docs migrations",
)
_HIDDEN_LANDMARKS = frozenset({"site-packages", "dist-packages", "node_modules"})


def scrub(text: str) -> str:
    """Return the text without times, machine noise, absolute paths and secrets; lines stay lines."""
    text = strip_invisible(text)
    for pattern, replacement in (*_SECRETS, *_PRIVATE, (_TIME, ""), *_NOISE):
        text = pattern.sub(replacement, text)
    return "\n".join(_LEVEL.sub("", relative_paths(line)) for line in text.split("\n"))


def relative_paths(line: str) -> str:
    """Shorten every absolute path of a machine to what another machine knows of it."""
    if "/" in line:
        line = _UNIX.sub(
            lambda found: _shortened(found[0], line[max(0, found.start() - _BEFORE) : found.start()]), line
        )
    return _WINDOWS.sub(lambda found: relative_path(found[0]), line)


def _shortened(path: str, before: str) -> str:
    bare = path.removeprefix("file://").rstrip("/.")
    first = bare.strip("/").partition("/")[0]
    is_file = _FILE.search(bare) is not None and "/" in bare.strip("/")
    is_route = _KEPT.match(bare) is not None or _ROUTE_BEFORE.search(before) is not None
    parts = bare.strip("/").split("/")
    is_deep = first in _MAYBE_ROOTS and (len(parts) > 3 or (len(parts) > 1 and parts[1] in _LANDMARKS))
    is_machine = len(parts) > 1 and (first in _MACHINE_ROOTS or is_file or is_deep)
    return relative_path(path) if is_machine and not is_route else path


def relative_path(path: str, root: str | None = None) -> str:
    """Make a path relative: to ``root`` where it lies in it, else to the last folder that projects have.

    A path that is relative already stays; slashes become forward ones.
    """
    plain = path.strip().removeprefix("file://").replace("\\", "/")
    if root and plain.startswith(root.rstrip("/") + "/"):
        return plain[len(root.rstrip("/")) + 1 :]
    if not plain.startswith(("/", "~/")) and not re.match(r"[A-Za-z]:/", plain):
        return plain.removeprefix("./")
    parts = [part for part in plain.split("/") if part]
    for package in _HIDDEN_LANDMARKS:
        if package in parts[:-1]:
            return "/".join(parts[len(parts) - parts[::-1].index(package) :])
    for at, part in enumerate(parts[1:-1], start=1):
        if part in _LANDMARKS:
            return "/".join(parts[at:])
    return parts[-1] if parts else ""
