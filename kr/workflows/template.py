"""Reads a template: Markdown with two blocks of YAML front matter and a fenced ``yaml`` block of steps (rule 9).

Everything wrong is told at once, each mistake with its line. The second front matter block may be left out where
there are no parameters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from kr.errors import BrokenYaml
from kr.text import KeyPath, Tree, show_path
from kr.workflows.check import check_steps
from kr.workflows.expressions import as_text
from kr.workflows.model import STEP_MODELS, BadValue, Case, Parameter, ParameterType, Template, read_default
from kr.yaml_io import Place, read_yaml

_MESSAGES = {
    "bool_parsing": "must be true or false",
    "dict_type": "must be a mapping of names to values",
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "list_type": "must be a list",
    "missing": "is missing",
    "model_attributes_type": "must be a mapping with id, name and type",
    "model_type": "must be a mapping",
    "string_type": "must be text",
}
# The second block may go on where the first one ends.
_FRONT_MATTER = re.compile(
    r"\s*^---[ \t]*\n(?P<metadata>.*?)^---[ \t]*$(?:\s*(?:^---[ \t]*\n)?(?P<parameters>^parameters:.*?)^---[ \t]*$)?",
    re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*ya?ml\b[^\n]*\n(?P<steps>.*?)(?P<end>^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_STEPS = re.compile(r"^steps:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: its line (from 1), the key's path (empty: none), and what is wrong and what is allowed."""

    line: int
    field: str
    message: str

    def sentence(self, name: str) -> str:
        """Write it as compilers do: ``deployment.md:12: steps[1].next: …``."""
        return f"{name}:{self.line}: {self.field + ': ' if self.field else ''}{self.message}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a template's text holds: ``template`` is None when there are ``problems``."""

    template: Template | None
    problems: tuple[Problem, ...]


def read_template(data: bytes) -> Reading:
    """Read and check a template's bytes; never raises for what stands in them."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Reading(None, (Problem(line, "", f"the template is not UTF-8 text (byte {error.start})"),))
    reader = _Reader(text.replace("\r\n", "\n"))
    template = reader.read()
    problems = tuple(sorted(dict.fromkeys(reader.problems), key=lambda problem: problem.line))
    return Reading(None if problems else template, problems)


class _Reader:
    """Reads the three blocks as one mapping; ``_places`` has the line of everything in it."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._data: dict[str, Tree] = {}
        self._places: dict[KeyPath, Place] = {}
        self._is_broken = False

    def read(self) -> Template | None:
        self._find_blocks()
        data: dict[str, Any] = self._data
        parameters, steps = data.get("parameters") or {}, data.get("steps")
        if isinstance(parameters, dict):
            data["parameters"] = {name: self._typed(name, it) for name, it in parameters.items()}
        if isinstance(steps, list) and not self._is_broken:
            for path, message in check_steps(steps, parameters):
                self._tell(("steps", *path), message)
        try:
            return Template.model_validate(data)
        except ValidationError as exc:
            errors = exc.errors(include_url=False, include_input=False)
        told = dict(self._place_and_message(error) for error in errors)
        for path, message in told.items():
            if not (self._is_broken and message == _MESSAGES["missing"] and len(path) == 1):
                self._tell(path, message)
        return None

    def _typed(self, name: str, parameter: Tree) -> Any:
        """Give a parameter whose ``default`` and ``enum`` are of its type, as far as they are."""
        kind: Any = parameter.get("type", "string") if isinstance(parameter, dict) else None
        if not isinstance(parameter, dict) or kind not in get_args(ParameterType):
            return parameter
        typed: dict[str, Any] = {**parameter}
        path: KeyPath = ("parameters", name)
        here: KeyPath = (*path, "default")
        try:
            if parameter.get("default") is not None:
                typed["default"] = read_default(parameter["default"], kind, self._places, here)
            allowed = parameter.get("enum")
            if isinstance(allowed, list):
                here = (*path, "enum")
                typed["enum"] = [
                    read_default(item, kind, self._places, (*here, at)) for at, item in enumerate(allowed)
                ]
                if typed.get("default") not in [None, *typed["enum"]]:
                    listed = ", ".join(map(as_text, typed["enum"]))
                    self._tell((*path, "default"), f"must be one of enum: {listed}")
        except BadValue as error:
            self._tell(here, str(error))
        return typed

    def _place_and_message(self, error: Mapping[str, Any]) -> tuple[KeyPath, str]:
        """Give the path of the model's error, without the parts that name types, and its sentence."""
        path: KeyPath = ()
        for key in error["loc"]:
            path = (*path, key) if (*path, key) in self._places else path
        if error["type"] == "missing":
            return (*path, error["loc"][-1]), _MESSAGES["missing"]
        if error["type"].startswith("union_tag"):
            tag = error["ctx"].get("tag")
            said = f"unknown step type {tag}" if tag else "the step's type is missing"
            return (*path, "type"), f"{said}; allowed: {', '.join(STEP_MODELS)}"
        if path[2:] == ("run",):  # of a union, each part complains
            return path, "must be a shell command, or a list of arguments"
        return path, _sentence(error)

    def _find_blocks(self) -> None:
        front = _FRONT_MATTER.match(self._text)
        if front is None:
            self._break(1, "the template must begin with a front matter block: --- , template_id: …, ---")
        else:
            self._block(front, "metadata")
            self._block(front, "parameters")
        steps = next((it for it in _FENCED.finditer(self._text) if _STEPS.search(it["steps"])), None)
        if steps is None:
            line = self._text.count("\n") + 1
            self._break(line, "there is no fenced block ```yaml with steps:")
        elif not steps["end"]:
            line = self._text.count("\n", 0, steps.start("steps"))
            self._break(line, f"the block of steps never ends: a line {steps['fence']} must close it")
        else:
            self._block(steps, "steps")

    def _block(self, found: re.Match[str], name: str) -> None:
        """Take in a block of YAML, where it is there."""
        if found[name] is None:
            return
        noun, lines_before = f"the block of {name}", self._text.count("\n", 0, found.start(name))
        text = "\n" * lines_before + found[name]  # so that the reader's lines are the file's
        try:
            tree, places = read_yaml(text)
        except BrokenYaml as error:
            where = show_path(error.path)
            self._break(error.line, error.problem if where else f"{noun} is broken: {error.problem}", where)
            return
        self._places = places | self._places
        if isinstance(tree, dict):
            self._data |= tree
        elif tree is not None:
            self._break(lines_before + 1, f"{noun} must be a mapping of keys to values")

    def _tell(self, path: KeyPath, message: str) -> None:
        """Note a mistake at the line of a key, or of the nearest one around it."""
        near = path
        while near and near not in self._places:
            near = near[:-1]
        line = self._places[near].line if near in self._places else 1
        self.problems.append(Problem(line, show_path(path), message))

    def _break(self, line: int, message: str, where: str = "") -> None:
        """Note that a block can't be read: what it would have held is not missed."""
        self._is_broken = True
        self.problems.append(Problem(line, where, message))


def _sentence(error: Mapping[str, Any]) -> str:
    """Say what is wrong and what is allowed, for the mistakes that templates have."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        fields = _model_at(error["loc"]).model_fields.items()
        allowed = ", ".join(field.alias or name for name, field in fields)
        return f"is not a key that is allowed here; allowed: {allowed}"
    if kind == "literal_error":
        return f"allowed: {str(context['expected']).replace(chr(39), '').replace(' or ', ', ')}"
    if kind == "string_pattern_mismatch":
        return f"must be of the form {context['pattern']}"
    message = str(error["msg"])
    for said, plain in (("Input should be", "must be"), ("String should", "must"), ("List should", "must")):
        message = message.replace(said, plain)
    return _MESSAGES.get(kind, message)


def _model_at(loc: KeyPath) -> type[Any]:
    """Give the model whose key a place is."""
    if loc[0] == "steps":
        return Case if "cases" in loc else STEP_MODELS[str(loc[2])]
    return Parameter if loc[0] == "parameters" else Template
