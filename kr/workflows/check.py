"""What is wrong with a template's steps as a whole: where they lead, what they name, what does not compile (rule 9).

Pure: it takes the steps as they were read, before the model has seen them, so that a mistake in one hides none in another.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

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
from kr.workflows.model import DEFAULT_ELEMENT, END
from kr.workflows.work import misplaced

Found = tuple[KeyPath, str]
"""The path below ``steps``, and the sentence."""
Step = Mapping[str, Tree]

_HANDED_OVER = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)=")


def check_steps(items: Sequence[Tree], parameters: Collection[str]) -> Iterator[Found]:
    """Yield every mistake that no single value tells; paths are below ``steps``."""
    steps: list[Step] = [item if isinstance(item, dict) else {} for item in items]
    graph = _Graph(steps)
    yield from (*graph.bad_ids(), *graph.bad_nexts(), *graph.unreachable(), *graph.endless())
    names = _Names(parameters, steps, graph.ids)
    for at, step in enumerate(steps):
        for path, message in (*_work(step), *names.check(step)):
            yield (at, *path), message


class _Graph:
    """Which step leads to which. A ``next`` that leads nowhere counts as the step that follows."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.ids = [_text(step.get("id")) for step in steps]
        self._index = {name: at for at, name in reversed(list(enumerate(self.ids))) if name}

    def bad_ids(self) -> Iterator[Found]:
        for at, name in enumerate(self.ids):
            if name == END:
                yield (at, "id"), f"{END} is the name of the end, and can be no step's id"
            elif name and self._index[name] != at:
                yield (at, "id"), f"{name} is the id of another step too; each step needs its own"

    def bad_nexts(self) -> Iterator[Found]:
        names = [*self._index, END]
        for at, step in enumerate(self._steps):
            nexts: list[tuple[KeyPath, Tree]] = [((at, "next"), step.get("next"))]
            nexts += [((at, "cases", number, "next"), case.get("next")) for number, case in _cases(step)]
            for path, name in nexts:
                if isinstance(name, str) and name not in names:
                    hint = did_you_mean(name, names) or f"steps: {', '.join(names)}"
                    yield path, f"leads nowhere: there is no step {name}; {hint}"

    def unreachable(self) -> Iterator[Found]:
        reached: set[int] = set()
        ahead = [0]
        while ahead:
            at = ahead.pop()
            if at not in reached and at < len(self._steps):
                reached.add(at)
                ahead += self._after(at)
        for at, name in enumerate(self.ids):
            if at not in reached:
                yield (at,), f"the step {name or at + 1} can't be reached: no step leads to it"

    def endless(self) -> Iterator[Found]:
        """Yield the step that closes a cycle in which no condition can choose another way."""
        seen: set[int] = set()
        for start in range(len(self._steps)):
            path: list[int] = []
            after = [start]
            while after and after[0] not in seen:
                at = after[0]
                seen.add(at)
                path.append(at)
                after = [] if self._steps[at].get("type") == "condition" else self._after(at)
            if after and after[0] in path:
                ways = [self.ids[at] for at in (*path[path.index(after[0]) :], after[0])]
                yield (path[-1], "next"), f"a cycle without a condition: {' -> '.join(ways)}"

    def _after(self, at: int) -> list[int]:
        step = self._steps[at]
        following = self._target(step.get("next"), at)
        after: list[int] = []
        for _, case in _cases(step):
            after += following if case.get("next") is None else self._target(case["next"], at)
            if "when" not in case:
                return after
        return after + following

    def _target(self, name: Tree, at: int) -> list[int]:
        if name == END:
            return []
        if isinstance(name, str) and name in self._index:
            return [self._index[name]]
        return [at + 1] if at + 1 < len(self._steps) else []


def _work(step: Step) -> Iterator[Found]:
    """Check what one step does: a command or an operation, not both."""
    if step.get("type") not in {"action", "parallel"}:
        return
    if "run" in step and "uses" in step:
        yield ("run",), "run and uses exclude each other"
    elif "run" not in step and "uses" not in step:
        yield (), "needs run (a command) or uses (an operation)"
    elif "run" in step and "with" in step:
        yield ("with",), "belongs to uses; a command takes its values in its text"
    for key in {"env", "cwd"} & set(step) if "uses" in step else ():
        yield (key,), "belongs to run; an operation has none"
    if step.get("run") == []:
        yield ("run",), "must hold at least the program"
    name = _text(step.get("as"))
    if name in {*SCOPE, *OUTPUT_SCOPE}:
        yield ("as",), f"{name} is taken; not allowed: {', '.join((*SCOPE, *OUTPUT_SCOPE))}"
    elif name and not is_identifier(name):
        yield ("as",), f"{name} is a word of CEL's own"


class _Names:
    """The names that expressions may use, and what is wrong with those that a step has."""

    def __init__(self, parameters: Collection[str], steps: Sequence[Step], ids: Sequence[str]) -> None:
        variables = {*parameters, *(name for step in steps for name in _set_by(step))}
        self._known = {"params": parameters, "variables": variables, "steps": ids}

    def check(self, step: Step) -> Iterator[Found]:
        element = _text(step.get("as", DEFAULT_ELEMENT)) if step.get("type") == "parallel" else ""
        further = (element,) if is_identifier(element) else ()
        for path, expression in _expressions(step):
            names = (*OUTPUT_SCOPE, *further) if path[0] == "outputs" else ()
            yield from ((path, message) for message in self._check(expression, names))
        for key in ("run", "env", "cwd", "with", "message"):
            for path, text in _leaves(step.get(key), (key,)):
                yield from ((path, message) for message in self._check_text(text, further, path == ("run",)))

    def _check_text(self, text: str, further: tuple[str, ...], is_shell: bool) -> Iterator[str]:
        try:
            for expression in part(text)[1::2]:
                yield from self._check(expression, further)
            for expression, where in misplaced(text) if is_shell else ():
                yield f"${{{{ {expression} }}}} stands {where}: it becomes a quoted word by itself"
        except ExpressionError as error:
            yield str(error)

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


def _set_by(step: Step) -> Iterator[str]:
    """Yield the variables a step sets, as far as its text shows what it hands over in ``$KR_OUTPUT``."""
    for _, case in _cases(step):
        yield from _mapping(case.get("set"))
    yield from _mapping(step.get("outputs"))
    command = " ".join(text for _, text in _leaves(step.get("run"), ()))
    if "KR_OUTPUT" in command:
        yield from (found[1] for found in _HANDED_OVER.finditer(command))


def _expressions(step: Step) -> Iterator[tuple[KeyPath, str]]:
    """Yield the step's expressions with their paths."""
    for key in ("if", "foreach", "outputs"):
        yield from _leaves(step.get(key), (key,))
    for at, case in _cases(step):
        for key in ("when", "set"):
            yield from _leaves(case.get(key), ("cases", at, key))


def _cases(step: Step) -> Iterator[tuple[int, Mapping[str, Tree]]]:
    cases = step.get("cases")
    for at, case in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(case, dict):
            yield at, case


def _leaves(value: Tree, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text of nested data with its path."""
    items: Iterable[tuple[str | int, Tree]] = ()
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from _leaves(item, (*path, key))


def _mapping(value: Tree) -> Mapping[str, Tree]:
    return value if isinstance(value, dict) else {}


def _text(value: Tree) -> str:
    return value if isinstance(value, str) else ""
