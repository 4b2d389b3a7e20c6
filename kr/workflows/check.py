"""What is wrong with a template's steps as a whole: where they lead, what they name, what does not compile (rule 9).

Pure: it takes the steps as they were read and as the model has them (None: the model refused that one), so that a
mistake in one step hides none in another.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kr.text import KeyPath, Tree, did_you_mean
from kr.workflows.expressions import (
    OUTPUT_SCOPE,
    SCOPE,
    ExpressionError,
    compile_expression,
    is_identifier,
    members,
    part,
)
from kr.workflows.model import (
    END,
    ActionStep,
    ApprovalStep,
    ConditionStep,
    ParallelStep,
    Parameter,
)
from kr.workflows.work import misplaced

Found = tuple[KeyPath, str]
"""The path below ``steps``, and the sentence."""

_HANDED_OVER = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)=")


def check_steps(raw: Tree, steps: Sequence[Any], parameters: Mapping[str, Parameter]) -> list[Found]:
    """Find every mistake that no single value tells; paths are below ``steps``."""
    items = raw if isinstance(raw, list) else []
    graph = _Graph([item if isinstance(item, dict) else {} for item in items])
    found = [*graph.bad_ids(), *graph.bad_nexts(), *graph.unreachable(), *graph.endless()]
    names = _Names(parameters, steps, graph.ids)
    for at, step in enumerate(steps):
        found += [((at, *path), message) for path, message in _work(step, items[at])]
        found += [((at, *path), message) for path, message in names.check(step)]
    return found


class _Graph:
    """Which step leads to which. A ``next`` that leads nowhere counts as the step that follows."""

    def __init__(self, items: Sequence[Mapping[str, Tree]]) -> None:
        self._items = items
        ids = [item.get("id") for item in items]
        self.ids: list[str] = [name if isinstance(name, str) else "" for name in ids]
        self._index = {name: at for at, name in reversed(list(enumerate(self.ids))) if name}

    def bad_ids(self) -> Iterator[Found]:
        for at, name in enumerate(self.ids):
            if name == END:
                yield (at, "id"), f"{END} is the name of the end, and can be no step's id"
            elif name and self._index[name] != at:
                yield (at, "id"), f"{name} is the id of another step too; each step needs its own"

    def bad_nexts(self) -> Iterator[Found]:
        for at in range(len(self._items)):
            for path, name in self._nexts(at):
                if name not in self._index and name != END:
                    names = [*self._index, END]
                    hint = did_you_mean(name, names) or f"steps: {', '.join(names)}"
                    yield path, f"leads nowhere: there is no step {name}; {hint}"

    def unreachable(self) -> Iterator[Found]:
        reached: set[int] = set()
        ahead = [0] if self._items else []
        while ahead:
            at = ahead.pop()
            if at not in reached:
                reached.add(at)
                ahead += self._after(at)
        for at, name in enumerate(self.ids):
            if at not in reached:
                yield (at,), f"the step {name or at + 1} can't be reached: no step leads to it"

    def endless(self) -> Iterator[Found]:
        """Yield the step that closes a cycle in which no condition can choose another way."""
        state: dict[int, str] = {}
        for start in range(len(self._items)):
            path: list[int] = []
            at: int | None = start
            while at is not None and at not in state:
                state[at] = "open"
                path.append(at)
                after = [] if self._items[at].get("type") == "condition" else self._after(at)
                at = after[0] if after else None
            if at is not None and state[at] == "open":
                ways = [self.ids[i] for i in path[path.index(at) :]]
                where: KeyPath = (path[-1], "next") if "next" in self._items[path[-1]] else (path[-1],)
                yield where, f"a cycle without a condition: {' -> '.join([*ways, self.ids[at]])}"
            state.update(dict.fromkeys(path, "done"))

    def _nexts(self, at: int) -> Iterator[tuple[KeyPath, str]]:
        item = self._items[at]
        if isinstance(name := item.get("next"), str):
            yield (at, "next"), name
        cases = item.get("cases")
        for number, case in enumerate(cases if isinstance(cases, list) else ()):
            if isinstance(case, dict) and isinstance(name := case.get("next"), str):
                yield (at, "cases", number, "next"), name

    def _after(self, at: int) -> list[int]:
        item = self._items[at]
        following = self._target(item.get("next"), at)
        cases = item.get("cases")
        if item.get("type") != "condition" or not isinstance(cases, list):
            return following
        after = []
        for case in cases:
            name = case.get("next") if isinstance(case, dict) else None
            after += following if name is None else self._target(name, at)
            if isinstance(case, dict) and "when" not in case:
                return after
        return after + following

    def _target(self, name: Tree, at: int) -> list[int]:
        if name == END:
            return []
        if isinstance(name, str) and name in self._index:
            return [self._index[name]]
        return [at + 1] if at + 1 < len(self._items) else []


def _work(step: Any, raw: Tree) -> Iterator[Found]:
    """Check what one step does: a command or an operation, not both; ``raw`` is how it stands in the template."""
    if not isinstance(step, ActionStep | ParallelStep) or not isinstance(raw, dict):
        return
    if "run" in raw and "uses" in raw:
        yield ("run",), "run and uses exclude each other"
    elif "run" not in raw and "uses" not in raw and raw.get("type") == step.type:
        yield (), "needs run (a command) or uses (an operation)"
    if step.run is not None and step.with_ is not None:
        yield ("with",), "belongs to uses; a command takes its values in its text"
    if isinstance(step.run, list) and not step.run:
        yield ("run",), "must hold at least the program"
    for key in ("env", "cwd") if step.uses is not None else ():
        if getattr(step, key) is not None:
            yield (key,), "belongs to run; an operation has none"
    if isinstance(step, ParallelStep):
        yield from _element_name(step.as_)


def _element_name(name: str) -> Iterator[Found]:
    if name in {*SCOPE, *OUTPUT_SCOPE}:
        yield ("as",), f"{name} is taken; not allowed: {', '.join((*SCOPE, *OUTPUT_SCOPE))}"
    elif not is_identifier(name):
        yield ("as",), f"{name} is a word of CEL's own"


class _Names:
    """The names that expressions may use, and what is wrong with those that a step has."""

    def __init__(self, parameters: Mapping[str, Parameter], steps: Sequence[Any], ids: Sequence[str]) -> None:
        self._known = {
            "params": set(parameters),
            "variables": {*parameters, *(name for step in steps for name in _set_by(step))},
            "steps": {name for name in ids if name},
        }

    def check(self, step: Any) -> Iterator[Found]:
        for path, expression, further in _expressions(step):
            yield from ((path, message) for message in self._check(expression, further))
        for path, text, further in _texts(step):
            yield from ((path, message) for message in self._check_text(text, further))
        if isinstance(step, ActionStep | ParallelStep) and isinstance(step.run, str):
            for expression, where in _misplaced(step.run):
                yield ("run",), f"${{{{ {expression} }}}} stands {where}: it becomes a quoted word by itself"

    def _check_text(self, text: str, further: tuple[str, ...]) -> Iterator[str]:
        try:
            expressions = part(text)[1::2]
        except ExpressionError as error:
            yield str(error)
            return
        for expression in expressions:
            yield from self._check(expression, further)

    def _check(self, expression: str, further: tuple[str, ...]) -> Iterator[str]:
        try:
            compile_expression(expression, further)
        except ExpressionError as error:
            yield str(error)
            return
        for root, name in dict.fromkeys(members(expression)):
            if name not in self._known[root]:
                yield f"`{expression}`: {self._unknown(root, name)}"

    def _unknown(self, root: str, name: str) -> str:
        known = self._known[root]
        allowed = did_you_mean(name, known) or f"there are: {', '.join(sorted(known)) or 'none'}"
        said = {
            "params": f"the parameter {name} is not declared",
            "variables": f"{name} is not a parameter, and no step's outputs or set makes it a variable",
            "steps": f"there is no step {name}",
        }[root]
        return f"{said}; {allowed}"


def _set_by(step: Any) -> Iterator[str]:
    """Yield the variables a step sets, as far as its text shows what it hands over in ``$KR_OUTPUT``."""
    if isinstance(step, ConditionStep):
        for case in step.cases:
            yield from case.set or ()
    elif isinstance(step, ActionStep | ParallelStep):
        yield from step.outputs or ()
        command = step.run if isinstance(step.run, str) else " ".join(step.run or ())
        if "KR_OUTPUT" in command:
            yield from (found[1] for found in _HANDED_OVER.finditer(command))


def _misplaced(text: str) -> list[tuple[str, str]]:
    try:
        return misplaced(text)
    except ExpressionError:  # told where its expressions are checked
        return []


def _expressions(step: Any) -> Iterator[tuple[KeyPath, str, tuple[str, ...]]]:
    """Yield the step's expressions with their paths and the names they see besides ``SCOPE``."""
    if isinstance(step, ConditionStep):
        for at, case in enumerate(step.cases):
            if case.when is not None:
                yield ("cases", at, "when"), case.when, ()
            for name, expression in (case.set or {}).items():
                yield ("cases", at, "set", name), expression, ()
    elif isinstance(step, ActionStep | ParallelStep):
        if isinstance(step, ActionStep) and step.if_ is not None:
            yield ("if",), step.if_, ()
        if isinstance(step, ParallelStep):
            yield ("foreach",), step.foreach, ()
        for name, expression in (step.outputs or {}).items():
            yield ("outputs", name), expression, (*OUTPUT_SCOPE, *_element(step))


def _texts(step: Any) -> Iterable[tuple[KeyPath, str, tuple[str, ...]]]:
    """Yield the step's texts that may hold ``${{ … }}``, in the same form."""
    if isinstance(step, ApprovalStep):
        return [(("message",), step.message, ())] if step.message else []
    if not isinstance(step, ActionStep | ParallelStep):
        return []
    found: list[tuple[KeyPath, str]] = []
    for key, value in (("run", step.run), ("env", step.env), ("cwd", step.cwd), ("with", step.with_)):
        found += _leaves(value, (key,))
    return [(path, text, _element(step)) for path, text in found]


def _element(step: ActionStep | ParallelStep) -> tuple[str, ...]:
    return (step.as_,) if isinstance(step, ParallelStep) and is_identifier(step.as_) else ()


def _leaves(value: Any, path: KeyPath) -> list[tuple[KeyPath, str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for at, item in enumerate(value) for leaf in _leaves(item, (*path, at))]
    return []
