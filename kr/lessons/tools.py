"""What a failed tool tells beside its words: what it was about, and whether it was but an agent's slip (SPEC 8)."""

import re
from collections.abc import Mapping
from typing import Any

from kr.lessons.distill.noise import is_slip, teaches_nothing

_OWN_SLIPS = frozenset(
    {"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Glob", "Grep", "LS", "TodoWrite", "Task", "Agent"}
)
_LONG = 20_000
_LONG_COMMAND = 2000
_WORDS = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]")
_EXIT = re.compile(r"\b(?:exit(?:ed with)?(?: code| status)?|status|code):? ?-?[0-9]+", re.IGNORECASE)
_AMOUNT = re.compile(r"[0-9]+(?:ms|[smh])?")
# A shell's way of reading what is not there: the same slip as one of the tools above.
_READER = re.compile(
    r"\b(?:cat|bat|ls|cd|pushd|head|tail|less|more|e?grep|rg|find|sed|awk|wc|stat|tree|du|diff|cp|mv|rm|rmdir|mkdir|ln)[:-]"
)
_ABSENT = re.compile(r"no such file|not a directory|is a directory|cannot access|file exists", re.IGNORECASE)
# Code that was written on the command line and is gone with it.
_THROWN_AWAY = re.compile(r"File \"<(?:string|stdin)>\"")
_MISWRITTEN = re.compile(r"^(?:Name|Syntax|Indentation|Tab|UnboundLocal)Error\b", re.MULTILINE)
# What any failure may say, whatever failed.
_SAID_BY_ANY = frozenset(
    _WORDS.findall(
        """
    error errors fatal failed failure failing fail command process task tool timed timeout time out after permission denied access
    operation not permitted killed terminated aborted abort segmentation fault core dumped broken pipe connection refused reset
    closed by peer network is unreachable no such file or directory found memory cannot allocate space left on device argument
    list too long bad interrupted system call resource temporarily unavailable exit code status signal bash sh zsh line seconds
    minutes ms the a was with
    """
    )
)

_STEPS = re.compile(r"&&|\|\||[;|&\n]")
_ASSIGNMENT = re.compile(r"\w+=\S*")
_WRAPPERS = frozenset({"sudo", "env", "nohup", "time", "exec", "command", "nice", "timeout", "npx", "uvx"})
_OF_WRAPPER = re.compile(r"-|[0-9]")
_PREPARATIONS = frozenset(
    {"cd", "export", "source", ".", "set", "echo", "printf", "mkdir", "sleep", "test", "[", "true", "unset"}
)
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]{0,30}")
# No more than words and files: an argument may be a secret.
_ARGUMENT = re.compile(r"[a-z][a-z0-9:-]{0,15}|[\w-]{1,30}\.[a-z]{1,4}")
_TAKES_A_NAME = frozenset({"run", "exec", "compose"})


def taught(tool: str, tool_input: object, error: str) -> tuple[str, str] | None:
    """Return what of an error may teach, and what it is about where the error doesn't say that.

    ``None`` for what interests nobody but the agent that did it, and for what names nothing even so.
    """
    told = "\n".join(line for line in error[:_LONG].splitlines() if not _is_looked_for_in_vain(line))
    given = tool_input if isinstance(tool_input, Mapping) else {}
    if is_slip(told) or teaches_nothing(told) or teaches_nothing(_said_of(given)):
        return None
    words = _WORDS.findall(_EXIT.sub("", told).lower())
    if tool in _OWN_SLIPS or len(words) < 2 or (_THROWN_AWAY.search(told) and _MISWRITTEN.search(told)):
        return None
    if any(word not in _SAID_BY_ANY and not _AMOUNT.fullmatch(word) for word in words):
        return told, ""
    about = _about(tool, given)
    return (told, about) if about else None


def _said_of(tool_input: Mapping[str, Any]) -> str:
    """Return what the agent says of its call: that the test is meant to fail, for one."""
    description = tool_input.get("description")
    return description[:_LONG_COMMAND] if isinstance(description, str) else ""


def _is_looked_for_in_vain(line: str) -> bool:
    reader = _READER.search(line)
    return reader is not None and _ABSENT.search(line, reader.end()) is not None


def _about(tool: str, tool_input: Mapping[str, Any]) -> str:
    command = tool_input.get("command")
    if isinstance(command, str):
        return next(filter(None, map(_called, _STEPS.split(command[:_LONG_COMMAND]))), "")
    path = tool_input.get("file_path")
    if isinstance(path, str) and path.strip():
        return re.split(r"[/\\]", path.strip())[-1]
    # mcp__SERVER__TOOL
    return " ".join(tool.split("__")[1:]) if tool.startswith("mcp__") else ""


def _called(step: str) -> str:
    """Return the program that a step of a command line calls, with its subcommand or its file."""
    words = step.split()
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in _WRAPPERS or _OF_WRAPPER.match(words[0])):
        del words[0]
    if not words or words[0] in _PREPARATIONS:
        return ""
    named = [words[0].rpartition("/")[2]]
    if not _PROGRAM.fullmatch(named[0]):
        return ""
    for word in words[1:]:
        argument = word.rpartition("/")[2]
        if not _ARGUMENT.fullmatch(argument):
            if word == "-m":
                continue
            break
        named.append(argument)
        if argument not in _TAKES_A_NAME:
            break
    return " ".join(named)
