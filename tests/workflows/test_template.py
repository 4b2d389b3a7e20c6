"""Reading templates: the two front matter blocks and the steps, and every mistake in one run."""

import pytest

from kr.workflows.model import ActionStep, ParallelStep, template_schema
from kr.workflows.template import Problem, read_template
from tests.support.workflows import mistakes, read, template_text

TEN_MISTAKES = """\
---
template_id: broken
version: 1.0
type: test
---
---
parameters:
  environment: {type: string, enum: [staging, production], default: prod}
  count: {type: integer, default: three}
---

```yaml
steps:
  - id: one
    name: One
    type: acton
    run: echo
  - id: two
    name: Two
    type: action
    run: echo "${{ params.environment }}"
    next: thre
  - id: three
    name: Three
    type: condition
    cases:
      - when: params.enviroment == 'production'
        next: five
      - next: end
  - id: four
    name: Four
    type: action
    run: echo
    next: four
  - id: five
    name: Five
    type: action
    run: echo ${{ variables.environment === 1 }}
    retries: many
```
"""


def test_ten_mistakes_are_told_in_one_run_each_with_its_line() -> None:
    reading = read_template(TEN_MISTAKES.encode())
    assert reading.template is None
    told = [(problem.line, problem.field) for problem in reading.problems]
    assert told == [
        (8, "parameters.environment.default"),
        (9, "parameters.count.default"),
        (16, "steps[0].type"),
        (21, "steps[1].run"),
        (22, "steps[1].next"),
        (27, "steps[2].cases[0].when"),
        (30, "steps[3]"),
        (34, "steps[3].next"),
        (38, "steps[4].run"),
        (39, "steps[4].retries"),
    ]
    messages = " ".join(problem.message for problem in reading.problems)
    for words in (
        "must be one of enum",
        'must be an integer such as 3, not "three"',
        "unknown step type acton; allowed: action, condition, approval, parallel",
        "inside quotes",
        "there is no step thre; did you mean three?",
        "the parameter enviroment is not declared; did you mean environment?",
        "the step four can't be reached",
        "a cycle without a condition: four -> four",
        "Syntax error",
        "must be a whole number",
    ):
        assert words in messages


def test_a_template_without_mistakes() -> None:
    template = read(
        """
        - id: build
          name: Build
          type: action
          if: "!params.skip"
          run: [make, "${{ params.target }}"]
          env: {A: b}
          cwd: src
          retries: 2
          timeout_seconds: 1.5
          on_interrupt: fail
          outputs: {image: stdout}
        - id: deploy
          name: Deploy
          type: parallel
          foreach: params.servers
          as: server
          run: ./deploy ${{ server }} ${{ variables.image }} ${{ steps.build.status }}
          next: end
        """,
        """
        skip: {type: boolean, default: false}
        target: {required: true}
        servers: {type: list, default: [a, 1, true, '1', [2.5], null]}
        limits: {type: object, default: {cpu: 2}}
        """,
    )
    assert (template.template_id, template.version) == ("sample", "1.0")
    build, deploy = template.steps
    assert isinstance(build, ActionStep)
    assert isinstance(deploy, ParallelStep)
    assert (build.run, build.retries, build.timeout_seconds) == (["make", "${{ params.target }}"], 2, 1.5)
    assert deploy.as_ == "server"
    assert template.parameters["servers"].default == ["a", 1, True, "1", [2.5], None]
    assert template.parameters["limits"].default == {"cpu": 2}
    assert template.parameters["skip"].default is False


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("- {id: a, name: A, type: action}", "steps[0]: needs run (a command) or uses (an operation)"),
        (
            "- {id: a, name: A, type: action, run: x, uses: research}",
            "steps[0].run: run and uses exclude each other",
        ),
        (
            "- {id: a, name: A, type: action, uses: deploy}",
            "steps[0].uses: allowed: research, save, lessons.inject, lessons.record, export-yaml",
        ),
        ("- {id: a, name: A, type: action, uses: warm, cwd: x}", "steps[0].cwd: belongs to run"),
        ("- {id: a, name: A, type: action, run: x, with: {a: b}}", "steps[0].with: belongs to uses"),
        ("- {id: a, name: A, type: action, run: []}", "steps[0].run: must hold at least the program"),
        (
            "- {id: a, name: A, type: action, run: x, foo: 1}",
            "steps[0].foo: is not a key that is allowed here; allowed: ",
        ),
        ("- {id: a, type: action, run: x}", "steps[0].name: is missing"),
        ("- {id: a b, name: A, type: action, run: x}", "steps[0].id: must be of the form"),
        ("- {id: end, name: A, type: action, run: x}", "steps[0].id: end is the name of the end"),
        (
            "- {id: a, name: A, type: approval}\n- {id: a, name: A, type: approval}",
            "steps[1].id: a is the id of another",
        ),
        ("- {id: a, name: A}", "steps[0].type: the step's type is missing; allowed: action, "),
        ("- {id: a, name: A, type: condition, cases: []}", "steps[0].cases: must have at least 1 item"),
        (
            "- {id: a, name: A, type: condition, cases: [{next: b}]}",
            "leads nowhere: there is no step b; steps: a, end",
        ),
        ("- {id: a, name: A, type: parallel, run: x}", "steps[0].foreach: is missing"),
        (
            "- {id: a, name: A, type: parallel, run: x, foreach: '[1]', as: params}",
            "steps[0].as: params is taken",
        ),
        (
            "- {id: a, name: A, type: parallel, run: x, foreach: '[1]', as: in}",
            "steps[0].as: in is a word of CEL's own",
        ),
        ("- {id: a, name: A, type: action, run: 'x ${{ 1'}", "steps[0].run: `${{ 1`: ${{ has no }}"),
        ("- {id: a, name: A, type: action, run: 'x ${{ item }}'}", "undeclared reference to 'item'"),
        ("- {id: a, name: A, type: action, run: 'x ${{ steps.b.status }}'}", "there is no step b"),
        ("- {id: a, name: A, type: approval, message: '${{ params.x }}'}", "the parameter x is not declared"),
        (
            "- {id: a, name: A, type: action, run: x, outputs: {b: variables.c}}",
            "c is not a parameter, and no step's",
        ),
        (
            "- {id: a, name: A, type: action, run: x, outputs: {1b: stdout}}",
            "steps[0].outputs.1b: must be of the form",
        ),
        (
            "- {id: a, name: A, type: action, uses: warm, with: {x: ['${{ params.y }}']}}",
            "the parameter y is not",
        ),
        ("- {id: a, name: A, type: approval, name: B}", "steps[0].name: this key is given twice"),
        ("- 3", "steps[0]: must be a mapping with id, name"),
    ],
)
def test_single_mistakes(steps: str, told: str) -> None:
    found = mistakes(steps)
    assert [told in message for message in found] == [True], found


def test_variables_are_known_from_wherever_they_are_set() -> None:
    steps = """
        - {id: a, name: A, type: action, run: 'echo tag=$(date) >> "$KR_OUTPUT"', outputs: {b: stdout}}
        - {id: c, name: C, type: condition, cases: [{set: {d: "'1'"}}]}
        - id: e
          name: E
          type: action
          run: echo ${{ variables.tag }} ${{ variables.b }} ${{ variables.d }} ${{ variables.p }}
        """
    assert mistakes(steps, "p: {}") == []


def test_one_mistake_makes_no_others() -> None:
    found = mistakes(
        """
        - {id: a, name: A, type: action, run: x, outputs: {b: stdout}, retries: lots}
        - {id: c, name: C, type: condtion, cases: [{set: {d: "'1'"}, next: e}]}
        - {id: e, name: E, type: action, run: 'echo ${{ variables.b }} ${{ variables.d }} ${{ steps.c.status }}'}
        """
    )
    assert [message.partition(":")[0] for message in found] == ["steps[0].retries", "steps[1].type"]


def test_a_cycle_needs_a_condition_that_can_leave_it() -> None:
    with_condition = """
        - {id: a, name: A, type: action, run: x}
        - {id: b, name: B, type: condition, cases: [{when: steps.a.status == 'x', next: end}]}
        - {id: c, name: C, type: approval, next: a}
        """
    assert mistakes(with_condition) == []
    without = """
        - {id: a, name: A, type: action, run: x}
        - {id: b, name: B, type: approval}
        - {id: c, name: C, type: action, run: x, next: b}
        """
    assert mistakes(without) == ["steps[2].next: a cycle without a condition: b -> c -> b"]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("", 1, "must begin with a front matter block"),
        ("# Title\n", 1, "must begin with a front matter block"),
        ("---\ntemplate_id: a\n", 1, "must begin with a front matter block"),
        (
            "---\ntemplate_id: a\nversion: 1\ntype: t\n---\ntext\n",
            7,
            "there is no fenced block ```yaml with steps:",
        ),
        (template_text("- {id: a, name: A,"), 15, "the block of steps is broken"),
        (template_text("- &x {id: a, name: A, type: approval}\n- *x"), 16, "aliases are not allowed"),
        (template_text("- {id: a, name: A, type: approval}").replace("version: 1.0\n", ""), 2, "is missing"),
        (
            template_text("- {id: a, name: A, type: approval}", "a: {type: text}"),
            8,
            "allowed: string, integer",
        ),
        (
            template_text("- {id: a, name: A, type: approval}", "a-b: {}"),
            8,
            "must be of the form ^[A-Za-z_]",
        ),
        (template_text("- {id: a, name: A, type: approval}", "a: 3"), 8, "must be a mapping"),
        (template_text("- {id: a, name: A, type: approval}")[:-4], 13, "the block of steps never ends"),
        ("\ufffe", 1, "must begin with"),
    ],
)
def test_what_the_file_is_broken_by(text: str, line: int, told: str) -> None:
    found = read_template(text.encode()).problems
    assert any(problem.line == line and told in problem.message for problem in found), found


def test_bytes_that_are_no_text_are_told() -> None:
    assert read_template(b"---\n\xff\n").problems == (
        Problem(2, "", "the template is not UTF-8 text (byte 4)"),
    )


def test_the_second_block_may_go_on_where_the_first_ends_or_be_left_out() -> None:
    text = template_text("- {id: a, name: A, type: action, run: 'x ${{ params.a }}'}", "a: {default: b}")
    for variant in (text, text.replace("---\n---\n", "---\n"), text.replace("\n", "\r\n")):
        template = read_template(variant.encode()).template
        assert template is not None
        assert list(template.parameters) == ["a"]
    left_out = template_text("- {id: a, name: A, type: approval}").replace(
        "---\nparameters:\n  {}\n---\n", ""
    )
    assert read_template(left_out.encode()).problems == ()


def test_the_steps_stand_in_the_first_yaml_block_that_has_them() -> None:
    text = template_text("- {id: a, name: A, type: approval}")
    text = text.replace(
        "# A sample\n", "# A sample\n\n~~~~yaml\n```yaml\nsteps: []\n```\n~~~~\n\n```yaml\nother: 1\n```\n"
    )
    assert "steps: must" not in str(read_template(text.encode()).problems)


def test_the_schema_names_every_key_as_templates_write_it() -> None:
    schema = template_schema()
    assert set(schema["required"]) == {"template_id", "version", "type", "steps"}
    kinds = schema["$defs"]
    assert {"if", "with", "run", "uses", "outputs", "on_interrupt"} <= set(kinds["ActionStep"]["properties"])
    assert {"foreach", "as", "max_parallel"} <= set(kinds["ParallelStep"]["properties"])
    assert kinds["ActionStep"]["additionalProperties"] is False
