"""Reads a template: Markdown with two blocks of YAML front matter and a fenced ``yaml`` block of steps (rule 9).

Everything wrong is told at once, each mistake with its line. The second front matter block may be left out where
there are no parameters.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kr.errors import BrokenYaml
from kr.text import KeyPath, Tree, did_you_mean, show_path
from kr.workflows.expressions import (
    OUTPUT_SCOPE,
    ExpressionError,
    compile_expression,
    expressions,
    members,
    require_words,
)
from kr.workflows.model import DEFAULT_ELEMENT, END, IS_REQUIRED, Template, problems_of
from kr.yaml_io import Place, read_yaml

# The second block may go on where the first one ends.
_FRONT_MATTER = re.compile(
    r"\s*^---[ \t]*\n(?P<metadata>.*?)^---[ \t]*$(?:\s*(?:^---[ \t]*\n)?(?P<parameters>^parameters:.*?)^---[ \t]*$)?",
    re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*ya?ml\b[^\n]*\n(?P<steps>.*?)^ {0,3}(?P=fence)[`~]*[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_STEPS = re.compile(r"^steps:", re.MULTILINE)
_EXPRESSIONS = frozenset({"if", "foreach", "outputs", "when", "set"})
_TEXTS = frozenset({"run", "env", "cwd", "with", "message"})

Found = tuple[KeyPath, str]
"""Where a mistake stands, and its sentence."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake: its line (from 1), the key's path (empty: none), and what is wrong and what is allowed."""

    line: int
    field: str
    message: str

    def sentence(self, name: str) -> str:
        """Write it as compilers do: ``deployment.md:12: steps[1].next: …``."""
        return f"{name}:{self.line}: {self.field + ': ' if self.field else ''}{self.message}"


def read_template(data: bytes) -> tuple[Template | None, list[Problem]]:
    """Read and check a template's bytes: the template, or None and what is wrong, in the order of its lines."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, [Problem(line, "", f"the template is not UTF-8 text (byte {error.start})")]
    try:
        return _read(_yaml_of(text))
    except BrokenYaml as error:
        problem = Problem(error.line, show_path(error.path), error.problem)
    # Steps that can't be read hide no mistake before them.
    others: list[Problem] = []
    with suppress(BrokenYaml):
        others = [it for it in _read(_yaml_of(text, with_steps=False))[1] if it.field != "steps"]
    return None, sorted([*others, problem])


def _read(text: str) -> tuple[Template | None, list[Problem]]:
    """Raises ``BrokenYaml``."""
    content, places = read_yaml(text)
    found = list(_check_steps(content)) if isinstance(content, dict) else []
    template: Template | None = None
    try:
        template = Template.model_validate(content)
    except ValidationError as exc:
        errors = [(_path(where, problem, places), problem) for where, problem in problems_of(exc)]
        found += dict(reversed(errors)).items()  # of a union, each part complains: the first is told
    problems = {Problem(_line(path, places), show_path(path), message) for path, message in found}
    return None if problems else template, sorted(problems)


def _yaml_of(text: str, *, with_steps: bool = True) -> str:
    """Blank out all but the blocks of YAML. Together they are one mapping, and its lines are the file's.

    Raises ``BrokenYaml`` where a block is missing.
    """
    front = _FRONT_MATTER.match(text)
    steps = next((it for it in _FENCED.finditer(text) if _STEPS.search(it["steps"])), None)
    if front is None:
        problem = "the template must begin with a front matter block: ---, template_id: …, ---"
        raise BrokenYaml(1, 1, problem)
    if steps is None:
        raise BrokenYaml(text.count("\n") + 1, 1, "there is no fenced block ```yaml with steps:")
    blank = re.compile(r"[^\n]+")
    kept, end = "", 0
    spans = [front.span("metadata"), front.span("parameters"), *([steps.span("steps")] if with_steps else [])]
    for begin, stop in sorted(spans):
        if begin >= 0:
            kept += blank.sub("", text[end:begin]) + text[begin:stop]
            end = stop
    return kept


def _path(where: KeyPath, problem: str, places: Mapping[KeyPath, Place]) -> KeyPath:
    """Give the path of a mistake, without the parts that name types."""
    path: KeyPath = ()
    for key in where:
        path = (*path, key) if (*path, key) in places else path
    return (*path, where[-1]) if problem == IS_REQUIRED else path


def _line(path: KeyPath, places: Mapping[KeyPath, Place]) -> int:
    """Find the line of a key, or of the nearest one around it."""
    while path and path not in places:
        path = path[:-1]
    return places[path].line if path else 1


# --- what no single value tells. The steps are as they were read, so that a mistake in one hides none in another.


def _check_steps(content: dict[str, Any]) -> Iterator[Found]:
    parameters, items = content.get("parameters"), content.get("steps")
    parameters = parameters if isinstance(parameters, dict) else {}
    steps = [item if isinstance(item, dict) else {} for item in items] if isinstance(items, list) else []
    ids = [str(step.get("id", "")) for step in steps]
    texts = [(at, path, text) for at, step in enumerate(steps) for path, text in _leaves(step, ())]
    variables = {*parameters, *(path[-1] for _, path, _ in texts if {"outputs", "set"} & {*path[-2:-1]})}
    known: dict[str, Collection[Any]] = {"params": parameters, "steps": ids, "variables": variables}
    for at in range(len(steps)):
        yield from ((("steps", at, *path), message) for path, message in _check_step(at, steps, ids))
    for at, path, text in texts:
        element = str(steps[at].get("as", DEFAULT_ELEMENT)) if "foreach" in steps[at] else None
        yield from ((("steps", at, *path), message) for message in _check_text(path, text, element, known))


def _check_step(at: int, steps: list[dict[str, Tree]], ids: list[str]) -> Iterator[Found]:
    """Check where a step leads, and that it does one thing."""
    step = steps[at]
    if ids[at] == END:
        yield ("id",), f"{END} is the name of the end, and can be no step's id"
    elif ids[at] and ids[at] in ids[:at]:
        yield ("id",), f"{ids[at]} is the id of another step too; each step needs its own"
    for path, name in _leaves(step, ()):
        if path[0] in {"next", "cases"} and path[-1] == "next" and name not in {*ids, END}:
            names = [*filter(None, dict.fromkeys(ids)), END]
            hint = did_you_mean(name, names) or f"steps: {', '.join(names)}"
            yield path, f"leads nowhere: there is no step {name}; {hint}"
    if step.get("next") in ids[: at + 1]:
        begin = ids.index(str(step["next"]))
        if not any(it.get("type") == "condition" for it in steps[begin : at + 1]):
            way = " -> ".join([*ids[begin : at + 1], ids[begin]])
            yield ("next",), f"a cycle without a condition: {way}"
    if step.get("type") in ["action", "parallel"] and ("run" in step) == ("uses" in step):
        yield (), "needs either run (a command) or uses (an operation)"


def _check_text(
    path: KeyPath, text: str, element: str | None, known: Mapping[str, Collection[Any]]
) -> Iterator[str]:
    """Compile the expressions of a text, and look for the names in them."""
    key = path[2] if path[0] == "cases" and len(path) > 2 else path[0]
    names = OUTPUT_SCOPE if key == "outputs" else ()
    if element is not None and key != "foreach":
        names = (*names, element)
    try:
        found = [text] if key in _EXPRESSIONS else expressions(text) if key in _TEXTS else []
        for expression in found:
            compile_expression(expression, names)
    except ExpressionError as error:
        yield str(error)
        return
    if path == ("run",):
        try:
            require_words(text)
        except ExpressionError as error:
            yield str(error)
    for expression in found:
        for root, name in members(expression):
            if name not in known.get(root, {name}):
                hint = did_you_mean(name, known[root]) or f"there are: {', '.join(known[root]) or 'none'}"
                yield f"`{expression}`: there is no {root}.{name}; {hint}"


def _leaves(value: Tree, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text of nested data with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, at))
