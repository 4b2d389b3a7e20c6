"""Reads a template: Markdown with two blocks of YAML front matter and a fenced ``yaml`` block of steps (rule 9).

Everything wrong is told at once, each mistake with its line. The second front matter block may be left out where
there are no parameters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from kr.errors import BrokenYaml
from kr.text import KeyPath, Tree, show_path
from kr.workflows.check import check_steps
from kr.workflows.expressions import as_text
from kr.workflows.model import STEP_MODELS, STEP_TYPES, BadValue, Metadata, Parameter, Template, read_default
from kr.yaml_io import Place, read_yaml

LIMIT = 1024 * 1024
_KINDS = {
    "bool_parsing": "true or false",
    "dict_type": "a mapping of names to values",
    "float_parsing": "a number",
    "int_parsing": "a whole number",
    "list_type": "a list",
    "string_type": "text",
}
_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[ \t]*ya?ml\b[^\n]*$")


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


@dataclass(slots=True)
class Block:
    """One block of YAML, with the place of everything in it in the lines of the file."""

    line: int
    is_broken: bool = False
    data: dict[str, Tree] = field(default_factory=dict)
    places: dict[KeyPath, Place] = field(default_factory=dict)

    def line_of(self, path: KeyPath) -> int:
        """Give the line of a key, or of the nearest one around it."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places[path].line if path in self.places else self.line


def read_template(data: bytes) -> Reading:
    """Read and check a template's bytes; never raises for what stands in them."""
    if len(data) > LIMIT:
        return Reading(None, (Problem(1, "", f"the template is larger than {LIMIT} bytes"),))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Reading(None, (Problem(line, "", f"the template is not UTF-8 text (byte {error.start})"),))
    reader = _Reader(text.replace("\r\n", "\n").split("\n"))
    template = reader.read()
    problems = tuple(sorted(dict.fromkeys(reader.problems), key=lambda problem: problem.line))
    return Reading(None if problems else template, problems)


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self.problems: list[Problem] = []

    def read(self) -> Template | None:
        metadata = self._metadata()
        parameters = self._parameters()
        steps_block = self._steps_block()
        if steps_block is None:
            return None
        if steps_block.is_broken:
            return None
        steps = self._steps(steps_block)
        found = check_steps(steps_block.data.get("steps"), steps, parameters)
        self._tell(steps_block, [(("steps", *path), message) for path, message in found])
        if self.problems or metadata is None:
            return None
        return Template.model_construct(**dict(metadata), parameters=parameters, steps=steps)

    def _metadata(self) -> Metadata | None:
        block = self._front_matter("the first front matter block (template_id, version, type)")
        if block is None:
            self._tell_at(1, "the template must begin with a front matter block: --- , template_id: …, ---")
            return None
        value = None if block.is_broken else self._validated(Metadata, block, block.data, ())
        return value if isinstance(value, Metadata) else None

    def _parameters(self) -> dict[str, Parameter]:
        block = self._front_matter("the second front matter block (parameters)")
        if block is None:
            return {}
        for key in block.data:
            if key != "parameters":
                self._tell(block, [((key,), "is not a key of the second block; allowed: parameters")])
        found = block.data.get("parameters")
        if found is not None and not isinstance(found, dict):
            self._tell(
                block, [(("parameters",), "must be a mapping of names to {type, required, default, enum}")]
            )
        parameters = {}
        for name, value in found.items() if isinstance(found, dict) else ():
            parameters[name] = self._parameter(block, name, value)
        return parameters

    def _parameter(self, block: Block, name: str, value: Tree) -> Parameter:
        path: KeyPath = ("parameters", name)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self._tell(block, [(path, "a parameter's name must be letters, digits and _, no digit first")])
        if not isinstance(value, dict):
            self._tell(block, [(path, "must be a mapping such as {type: string, required: true}")])
            return Parameter()
        parameter = self._validated(Parameter, block, value, path)
        if not isinstance(parameter, Parameter):
            return Parameter()
        typed: dict[str, Any] = {}
        here = path
        try:
            if parameter.default is not None:
                here = (*path, "default")
                typed["default"] = read_default(parameter.default, parameter.type, block.places, here)
            if parameter.enum is not None:
                here = (*path, "enum")
                typed["enum"] = [
                    read_default(item, parameter.type, block.places, (*here, at))
                    for at, item in enumerate(parameter.enum)
                ]
        except BadValue as error:
            self._tell(block, [(here, str(error))])
            return parameter.model_copy(update={"default": None, "enum": None})
        if "enum" in typed and "default" in typed and typed["default"] not in typed["enum"]:
            allowed = ", ".join(as_text(item) for item in typed["enum"])
            self._tell(block, [((*path, "default"), f"must be one of enum: {allowed}")])
        return parameter.model_copy(update=typed)

    def _steps(self, block: Block) -> list[Any]:
        """Validate each step on its own, so that one mistake hides no other; None for one that is wrong."""
        for key in block.data:
            if key != "steps":
                self._tell(block, [((key,), "is not a key of the block of steps; allowed: steps")])
        found = block.data.get("steps")
        if not isinstance(found, list) or not found:
            self._tell(block, [(("steps",), "must be a list of at least one step")])
            return []
        return [self._step(block, at, value) for at, value in enumerate(found)]

    def _step(self, block: Block, at: int, value: Tree) -> BaseModel | None:
        """Give the step, without the keys that are wrong: what is left of it is checked too."""
        path: KeyPath = ("steps", at)
        if not isinstance(value, dict):
            self._tell(block, [(path, "a step must be a mapping with id, name and type")])
            return None
        kind = value.get("type")
        if kind not in STEP_TYPES:
            said = f"unknown step type {kind}" if isinstance(kind, str) else "the step's type is missing"
            self._tell(block, [((*path, "type"), f"{said}; allowed: {', '.join(STEP_TYPES)}")])
            meant = (name for name, key in (("condition", "cases"), ("parallel", "foreach")) if key in value)
            kind = next(meant, "action")
        model = STEP_MODELS[str(kind)]
        given = {**value, "type": kind}
        step = self._validated(model, block, given, path)
        if step is not None:
            return step
        for key in _bad_keys(model, given):
            given.pop(key, None)
        stand_ins = {"id": f"step_{at + 1}", "name": "?"}
        try:
            return model.model_validate(stand_ins | given)
        except ValidationError:  # it lacks what makes it a step of its type
            return None

    def _validated(
        self, model: type[BaseModel], block: Block, value: Mapping[str, Tree], path: KeyPath
    ) -> BaseModel | None:
        try:
            return model.model_validate(value)
        except ValidationError as exc:
            told = []
            for error in exc.errors(include_url=False, include_input=False):
                loc, sentence = error["loc"], _sentence(error, model)
                if loc[0] == "run" and len(loc) == 2:  # of a union, each part complains
                    loc, sentence = loc[:1], "must be a shell command, or a list of arguments"
                told.append(((*path, *(at for at in loc if not str(at).endswith("]"))), sentence))
            self._tell(block, list(dict(told).items()))
            return None

    def _front_matter(self, noun: str) -> Block | None:
        """Take the next block between lines of ``---``; the second may go on where the first one ends."""
        at = self._at
        while at < len(self._lines) and not self._lines[at].strip():
            at += 1
        if at < len(self._lines) and self._lines[at].rstrip() == "---":
            at += 1
        elif self._at == 0 or at >= len(self._lines) or not self._lines[at].startswith("parameters:"):
            return None
        end = next((i for i in range(at, len(self._lines)) if self._lines[i].rstrip() == "---"), None)
        if end is None:
            self._tell_at(at, f"{noun} never ends: a line --- must close it")
            end = len(self._lines)
        self._at = end + 1
        return self._block(at, end, noun)

    def _steps_block(self) -> Block | None:
        """Find the first fenced ``yaml`` block with a line ``steps:``."""
        at = self._at
        while at < len(self._lines):
            fence = _FENCE.match(self._lines[at])
            if fence is None:
                at += 1
                continue
            closing = re.compile(rf"^ {{0,3}}{re.escape(fence['fence'][0])}{{{len(fence['fence'])},}}[ \t]*$")
            end = next((i for i in range(at + 1, len(self._lines)) if closing.match(self._lines[i])), None)
            last = len(self._lines) if end is None else end
            if any(line.startswith("steps:") for line in self._lines[at + 1 : last]):
                if end is None:
                    self._tell_at(
                        at + 1, f"the block of steps never ends: a line {fence['fence']} must close it"
                    )
                return self._block(at + 1, last, "the block of steps")
            at = last + 1
        self._tell_at(len(self._lines), "there is no fenced block ```yaml with steps:")
        return None

    def _block(self, begin: int, end: int, noun: str) -> Block:
        """Read lines ``begin`` to ``end`` (from 0); what is broken is told, and reads as empty."""
        block = Block(begin + 1)
        # As many empty lines before it, so that the reader's lines are the file's.
        text = "\n" * begin + "\n".join(self._lines[begin:end]) + "\n"
        try:
            tree, block.places = read_yaml(text)
        except BrokenYaml as error:
            where = show_path(error.path)
            problem = error.problem if where else f"{noun} is broken: {error.problem}"
            self.problems.append(Problem(error.line, where, problem))
            block.is_broken = True
            return block
        if isinstance(tree, dict):
            block.data = tree
        elif tree is not None:
            self._tell_at(block.line, f"{noun} must be a mapping of keys to values")
        return block

    def _tell(self, block: Block, found: list[tuple[KeyPath, str]]) -> None:
        for path, message in found:
            self.problems.append(Problem(block.line_of(path), show_path(path), message))

    def _tell_at(self, line: int, message: str) -> None:
        self.problems.append(Problem(max(line, 1), "", message))


def _bad_keys(model: type[BaseModel], value: Mapping[str, Any]) -> set[str]:
    try:
        model.model_validate(value)
    except ValidationError as exc:
        return {str(error["loc"][0]) for error in exc.errors(include_url=False) if error["loc"]}
    return set()


def _sentence(error: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Say what is wrong and what is allowed, for the mistakes that templates have."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        inner = model if len(error["loc"]) == 1 else None
        keys = [field.alias or name for name, field in inner.model_fields.items()] if inner else []
        return "is not a key that is allowed here" + (f"; allowed: {', '.join(keys)}" if keys else "")
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        return f"allowed: {str(context['expected']).replace(chr(39), '').replace(' or ', ', ')}"
    if kind == "string_pattern_mismatch":
        return f"must be of the form {context['pattern']}"
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}"
    message = str(error["msg"])
    for said, plain in (("Input should be", "must be"), ("String should", "must"), ("List should", "must")):
        message = message.replace(said, plain)
    return message
