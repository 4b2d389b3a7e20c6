"""What a step hands to the runner, and what is made of what comes back: texts filled in, variables set (SPEC 9).

Each value goes into a shell command as one quoted word, so that none can become a command. Quotes help only where the
shell reads them as quotes. Where it does not (inside quotes of the template's own, in a comment, a here-document,
backquotes, an expansion, after a backslash or a dollar sign) a ``${{ … }}`` is a mistake.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from kr.workflows.expressions import ExpressionError, as_text, evaluate, fill, fill_tree, part
from kr.workflows.model import WorkStep
from kr.workflows.state import Finished, Instance, Job, StepState, SubTask, Target

_HERE_DOCUMENT = re.compile(r"<<(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_WORD_ENDS = frozenset(" \t\n;&|()<>")


def scope_of(instance: Instance) -> dict[str, Any]:
    """Give what every expression sees: ``params``, ``variables`` and ``steps``."""
    return {
        "params": instance.params,
        "variables": instance.variables,
        "steps": {step.id: _step_view(step) for step in instance.steps},
    }


def make_job(target: Target, work: WorkStep, scope: Mapping[str, Any]) -> Job:
    """Fill in the texts of what is to be done. Raises ``ExpressionError``."""
    command: str | tuple[str, ...] | None = None
    if isinstance(work.run, str):
        command = fill_shell(work.run, scope)
    elif work.run is not None:
        command = tuple(fill(argument, scope) for argument in work.run)
    return Job(
        target,
        command=command,
        env={name: fill(value, scope) for name, value in (work.env or {}).items()},
        cwd=None if work.cwd is None else fill(work.cwd, scope),
        timeout_seconds=work.timeout_seconds,
        operation=work.uses,
        request=fill_tree(work.with_ or {}, scope),
    )


def unfilled(target: Target, work: WorkStep) -> Job:
    """Give a job as the template words it, for a simulation that doesn't know its values."""
    return Job(
        target,
        command=tuple(work.run) if isinstance(work.run, list) else work.run,
        operation=work.uses,
    )


def outputs_of(
    work: WorkStep, event: Finished, scope: Mapping[str, Any], *, is_simulated: bool
) -> dict[str, Any]:
    """Give the variables that an ended command sets. Raises ``ExpressionError``.

    In a simulation a value that only the command could have given is null.
    """
    result = result_of(event)
    seen = {
        **scope,
        "stdout": result.get("stdout", ""),
        "exit_code": result.get("exit_code", 0),
        "result": result,
        "outputs": dict(event.outputs),
    }
    values: dict[str, Any] = dict(event.outputs)
    for name, expression in (work.outputs or {}).items():
        try:
            values[name] = evaluate(expression, seen)
        except ExpressionError:
            if not is_simulated:
                raise
            values[name] = None
    return values


def simulated(job: Job) -> Finished:
    """Give what a simulation says of a command that it doesn't run."""
    what = job.operation or (job.command if isinstance(job.command, str) else " ".join(job.command or ()))
    result: dict[str, Any] = {} if job.operation else {"exit_code": 0, "stdout": "", "stderr": ""}
    return Finished(job.target, is_success=True, details=f"Simulated, not run: {shown(what)}", result=result)


def result_of(event: Finished) -> dict[str, Any]:
    """Give the result as it is kept: with what was handed over in ``$KR_OUTPUT``."""
    return {**event.result, "outputs": dict(event.outputs)} if event.outputs else dict(event.result)


def told(run: StepState | SubTask, details: str) -> str:
    """Say before the details of what ran that it was interrupted (SPEC 9)."""
    if not run.interruptions:
        return details
    times = "once" if run.interruptions == 1 else f"{run.interruptions} times"
    return f"Interrupted {times} and run again. {details}".rstrip()


def shown(value: Any) -> str:
    """Show a value in a sentence: one line of at most 100 characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"


def _step_view(step: StepState) -> dict[str, Any]:
    view: dict[str, Any] = {"status": step.status, "result": step.result}
    if step.type == "parallel":
        view["sub_tasks"] = [
            {"name": task.name, "item": task.item, "status": task.status, "result": task.result}
            for task in step.sub_tasks
        ]
    return view


# --- values in shell commands


def quote(value: Any) -> str:
    """Write a value as one word of a shell command. Raises ``ExpressionError`` for one that holds a NUL."""
    text = as_text(value)
    if "\x00" in text:
        raise ExpressionError("a NUL can't be part of a command")
    return shlex.quote(text)


def fill_shell(text: str, values: Mapping[str, Any]) -> str:
    """Put the values of its expressions into a shell command. Raises ``ExpressionError``."""
    for expression, where in misplaced(text):  # a state file that a person edited was never validated
        raise ExpressionError(f"`{expression}` stands inside {where}")
    parts = part(text).parts
    return "".join(quote(evaluate(piece, values)) if at % 2 else piece for at, piece in enumerate(parts))


def misplaced(text: str) -> list[tuple[str, str]]:
    """List the expressions of a shell command that stand where no quoted word can: with where that is."""
    parts = part(text).parts
    scanner = _Scanner()
    found = []
    for at, piece in enumerate(parts):
        if at % 2 == 0:
            scanner.read(piece)
        elif where := scanner.why_no_word():
            found.append((piece, where))
            scanner.word()
        else:
            scanner.word()
    return found


class _Scanner:
    """Follows a POSIX shell through quotes and nested constructs, as far as it needs to know where words are."""

    def __init__(self) -> None:
        self._nested: list[str] = []  # each of: ' " ` ( for $(…), { for ${…}, # for $((…))
        self._before = "\n"
        self._is_comment = False
        self._is_escaped = False
        self._is_ambiguous = False
        self._awaited: list[tuple[str, bool]] = []
        self._here: tuple[str, bool] | None = None
        self._line = ""

    def why_no_word(self) -> str | None:
        """Tell where the scanner stands, unless a quoted word may be put there."""
        if self._here is not None:
            return "a here-document"
        if self._is_comment:
            return "a comment"
        inner = self._nested[-1] if self._nested else ""
        names = {
            "'": "quotes of the template's own",
            '"': "quotes of the template's own",
            "{": "an expansion ${…}",
            "#": "arithmetic $((…))",
        }
        if "`" in self._nested:
            return "backquotes; write $(…)"
        if inner in names:
            return names[inner]
        if self._is_escaped:
            return "what a backslash escapes"
        if self._is_ambiguous:
            return "what follows $'…' or a here-document's odd name, which shells read in two ways"
        if self._before == "$":
            return "an expansion: a $ stands before it"
        return "a here-document" if self._before == "<<" else None

    def word(self) -> None:
        """Pass over an expression."""
        self._before, self._is_escaped = "x", False
        self._line += "x"

    def read(self, text: str) -> None:
        """Read on."""
        at = 0
        while at < len(text):
            at = self._step(text, at)

    def _step(self, text: str, at: int) -> int:
        sign = text[at]
        if self._here is not None:
            self._in_here_document(sign)
            return at + 1
        inner = self._nested[-1] if self._nested else ""
        if self._is_escaped:
            self._is_escaped, self._before = False, "x"
            return at + 1
        if self._is_comment:
            if sign == "\n":
                self._is_comment = False
                self._line_ends()
            return at + 1
        if inner == "'":
            return self._leave(at, sign == "'")
        if sign == "\\":
            self._is_escaped = True
            return at + 1
        if inner == '"':
            return self._in_double_quotes(text, at)
        return self._plain(text, at, inner)

    def _in_double_quotes(self, text: str, at: int) -> int:
        if text[at] == '"':
            return self._leave(at, leaves=True)
        return self._open(text, at) or self._ordinary(text, at)

    def _plain(self, text: str, at: int, inner: str) -> int:
        sign = text[at]
        if sign in "'\"":
            self._is_ambiguous |= sign == "'" and self._before == "$"
            self._nested.append(sign)
            self._before = "x"
            return at + 1
        if opened := self._open(text, at):
            return opened
        if inner == "#" and text.startswith("))", at):
            self._nested.pop()
            return at + 2
        if (inner == "(" and sign == ")") or (inner == "{" and sign == "}"):
            return self._leave(at, leaves=True)
        if sign == "(":
            self._nested.append("(")
            self._before = "("
            return at + 1
        if sign == "#" and self._before in _WORD_ENDS and inner not in {"{", "#"}:
            self._is_comment = True
            return at + 1
        if found := self._here_document(text, at, inner):
            return found
        if sign == "\n":
            self._line_ends()
            self._before = "\n"
            return at + 1
        return self._ordinary(text, at)

    def _here_document(self, text: str, at: int, inner: str) -> int | None:
        if not text.startswith("<<", at) or text.startswith("<<<", at) or inner == "#":
            return None
        found = _HERE_DOCUMENT.match(text, at)
        if found is None:
            self._before = "<<"
            return at + 2
        self._is_ambiguous |= "`" in found[2] or "$" in found[2]
        self._awaited.append((re.sub(r"[\\'\"]", "", found[2]), bool(found[1])))
        self._before = "x"
        return found.end()

    def _open(self, text: str, at: int) -> int | None:
        for opening, kind in (("$((", "#"), ("$(", "("), ("${", "{")):
            if text.startswith(opening, at):
                self._nested.append(kind)
                self._before = " "
                return at + len(opening)
        if text[at] == "`":
            if "`" in self._nested:
                while self._nested.pop() != "`":
                    pass
            else:
                self._nested.append("`")
            self._before = " "
            return at + 1
        return None

    def _leave(self, at: int, leaves: bool) -> int:
        if leaves:
            self._nested.pop()
        self._before = "x"
        return at + 1

    def _ordinary(self, text: str, at: int) -> int:
        self._before = text[at]
        return at + 1

    def _line_ends(self) -> None:
        if self._awaited:
            self._here, self._line = self._awaited.pop(0), ""

    def _in_here_document(self, sign: str) -> None:
        if self._here is None:
            return
        if sign != "\n":
            self._line += sign
            return
        ending, has_tabs = self._here
        if (self._line.lstrip("\t") if has_tabs else self._line) == ending:
            self._here = self._awaited.pop(0) if self._awaited else None
        self._line, self._before = "", "\n"
