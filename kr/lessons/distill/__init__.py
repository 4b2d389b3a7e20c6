"""From a failure to two lines: what kr knows in tables, and which tool a command line calls. Pure."""

import re
from functools import cache
from typing import Any

# What stands before a program: an assignment, an option or a duration of a wrapper.
_ASIDE = r"\w+=\S*$|-|[0-9]"
# What calls another program, with what stands between them.
_CALLS = (
    r"(?:\S*/)?(?:(?:python|py)[0-9.]*(?: -\w)*? -m|(?:poetry|pipenv|pdm|uv|hatch|rye|conda) run|bundle exec|(?:npm|pnpm|yarn|bun) (?:exec|dlx)|bun x|pnpm|yarn|bun|mise exec --|dotenv --)"
    r"(?: --?[\w=-]+)* (?=[a-z])"
)


@cache
def read_table(name: str) -> Any:
    """Read a shipped table; what is read is shared, and not to be changed."""
    from importlib.resources import files

    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("kr.lessons.distill").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=loader)  # noqa: S506 - one of the two safe loaders


@cache
def listed(table: str, kind: str) -> frozenset[str]:
    """Return the words of a list in a shipped table."""
    return frozenset(read_table(table)[kind].split())


@cache
def patterns(table: str, kind: str) -> tuple[str, ...]:
    """Return the patterns of one kind in a table, with its parts in them: ``%name%``."""
    parts: dict[str, str] = {}

    def whole(pattern: str) -> str:
        return re.sub(r"%(\w+)%", lambda part: parts[part[1]], pattern)

    parts.update((name, whole(pattern)) for name, pattern in read_table(table)["parts"].items())
    return tuple(map(whole, read_table(table)[kind]))


@cache
def phrases(kind: str) -> re.Pattern[str]:
    """Return the pattern of one kind of phrases."""
    return re.compile("|".join(patterns("phrases.yaml", kind)), re.IGNORECASE | re.MULTILINE)


_LONG_LINE = 2000


def shortened(output: str, limit: int) -> str:
    """Cut an output to ``limit`` characters: its head, and its tail from the start of a line on, where tools tell what stopped them."""
    if len(output) <= limit:
        return output
    head = limit // 2
    tail = output[head + 1 - limit :]
    # The rest of a line that was cut might read as another one, or be half a secret.
    start = tail.find("\n", 0, _LONG_LINE) + 1
    return f"{output[:head]}\n{tail[start:]}"


def program(command: str) -> str:
    """Return the program that a command line calls first; an argument may be a secret, and is not told."""
    return next(filter(None, map(_called, re.split(r"&&|\|\||[;|&\n]", command))), "")


def tool_of(command: str) -> str:
    """Return the tag of the tool that a command line calls; empty where it calls a script, a shell, or nothing known.

    What runs others is followed: ``python -m tox`` calls tox, ``npx rollup`` rollup.
    """
    name = program(re.sub(_CALLS, "", command)).lower().removesuffix(".exe")
    is_tool = re.fullmatch(r"[a-z][a-z0-9_+-]{1,20}|py\.test|python[0-9.]*", name)
    tags: dict[str, str] = read_table("programs.yaml")["tags"]
    if not is_tool or name in listed("programs.yaml", "no_tool"):
        return ""
    return tags.get(name, "python" if name.startswith("python") else name)


def speaks_alone(tool: str) -> bool:
    """Tell a tool whose output is its own from one that runs others, whose errors may be of any."""
    return bool(tool) and tool not in listed("programs.yaml", "runs_anything")


def _called(step: str) -> str:
    wrappers = listed("programs.yaml", "wrappers")
    names = (_name(word) for word in step.split() if not re.match(_ASIDE, word))
    name = next((name for name in names if name not in wrappers), "")
    is_known = re.fullmatch(r"[A-Za-z][\w.+-]{0,30}", name) and name not in listed(
        "programs.yaml", "preparations"
    )
    return name if is_known else ""


def _name(word: str) -> str:
    """Return a program's name without its folder and the version that a runner is to take."""
    return word.rpartition("/")[2].partition("@")[0]
