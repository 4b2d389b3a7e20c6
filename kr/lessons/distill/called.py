"""Which tool a command line calls, so that a lesson names it where its output does not (SPEC 4.2, tags)."""

import re

from kr.lessons.distill import read_table

_STEPS = re.compile(r"&&|\|\||[;|&\n]")
_ASSIGNMENT = re.compile(r"\w+=\S*")
_OF_WRAPPER = re.compile(r"-|[0-9]")
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]{0,30}")
# What calls another program, with what stands between them.
_CALLS = re.compile(
    r"(?:\S*/)?(?:(?:python|py)[0-9.]*(?: -\w)*? -m|(?:poetry|pipenv|pdm|uv|hatch|rye|conda) run|bundle exec|(?:npm|pnpm|yarn|bun) (?:exec|dlx)|bun x|pnpm|yarn|bun|mise exec --|dotenv --)"
    r"(?: --?[\w=-]+)* (?=[a-z])"
)


def _named(kind: str) -> list[str]:
    names: str = read_table("programs.yaml")[kind]
    return names.split()


def program(command: str) -> str:
    """Return the program that a command line calls first; an argument may be a secret, and is not told."""
    return next(filter(None, map(_called, _STEPS.split(command))), "")


def tool_of(command: str) -> str:
    """Return the tag of the tool that a command line calls; empty where it calls a script, a shell, or nothing known.

    What runs others is followed: ``python -m tox`` calls tox, ``npx rollup`` rollup.
    """
    name = program(_CALLS.sub("", command)).lower().removesuffix(".exe")
    is_tool = re.fullmatch(r"[a-z][a-z0-9_+-]{1,20}|py\.test|python[0-9.]*", name) and name not in _named(
        "no_tool"
    )
    tags: dict[str, str] = read_table("programs.yaml")["tags"]
    return tags.get(name, "python" if name.startswith("python") else name) if is_tool else ""


def speaks_alone(tool: str) -> bool:
    """Tell a tool whose output is its own from one that runs others, whose errors may be of any."""
    return bool(tool) and tool not in _named("runs_anything")


def _called(step: str) -> str:
    words = step.split()
    while words and (
        _ASSIGNMENT.fullmatch(words[0])
        or _name(words[0]) in _named("wrappers")
        or _OF_WRAPPER.match(words[0])
    ):
        del words[0]
    if not words or words[0] in _named("preparations"):
        return ""
    name = _name(words[0])
    return name if _PROGRAM.fullmatch(name) else ""


def _name(word: str) -> str:
    """Return a program's name without its folder and the version that a runner is to take."""
    return word.rpartition("/")[2].partition("@")[0]
