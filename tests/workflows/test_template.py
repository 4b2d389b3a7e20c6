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
    next: four
  - id: five
    name: Five
    type: action
    run: echo ${{ variables.environment === 1 }}
    retries: many
```
"""


def test_ten_mistakes_are_told_in_one_run_each_with_its_line() -> None:
    template, problems = read_template(TEN_MISTAKES.encode())
    assert template is None
    expected = [
        (8, "parameters.environment.default", "must be one of staging, production"),
        (9, "parameters.count.default", "must be a whole number"),
        (14, "steps[0]", "type must be one of 'action', 'condition', 'approval', 'parallel', not 'acton'"),
        (20, "steps[1].run", "inside quotes"),
        (21, "steps[1].next", "there is no step thre; did you mean three?"),
        (26, "steps[2].cases[0].when", "there is no params.enviroment; did you mean environment?"),
        (29, "steps[3]", "needs either run (a command) or uses (an operation)"),
        (32, "steps[3].next", "a cycle without a condition: four -> four"),
        (36, "steps[4].run", "Syntax error"),
        (37, "steps[4].retries", "must be a whole number"),
    ]
    for problem, (line, field, words) in zip(problems, expected, strict=True):
        assert (problem.line, problem.field) == (line, field)
        assert words in problem.message


def test_steps_that_can_not_be_read_hide_no_mistake_before_them() -> None:
    text = template_text("- {id: a, name: A: B}", "servers: {type: array}")
    template, problems = read_template(text.encode())
    assert template is None
    assert [problem.field for problem in problems] == ["parameters.servers.type", ""]


def test_a_value_in_quotes_hides_no_unknown_name() -> None:
    found = mistakes("- {id: a, name: A, type: action, run: 'echo \"${{ params.x }}\"'}")
    assert len(found) == 2
    assert "inside quotes" in found[0] or "inside quotes" in found[1]


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
        servers: {type: list, default: [a, 1, 3.10]}
        limits: {type: object, default: '{"cpu": 2}'}
        """,
    )
    assert (template.template_id, template.version) == ("sample", "1.0")
    build, deploy = template.steps
    assert isinstance(build, ActionStep)
    assert isinstance(deploy, ParallelStep)
    assert (build.run, build.retries, build.timeout_seconds) == (["make", "${{ params.target }}"], 2, 1.5)
    assert deploy.as_ == "server"
    assert template.parameters["servers"].default == ["a", "1", "3.10"]
    assert template.parameters["limits"].default == {"cpu": 2}
    assert template.parameters["skip"].default is False


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("- {id: a, name: A, type: action, run: x, uses: research}", "steps[0]: needs either run"),
        (
            "- {id: a, name: A, type: action, uses: deploy}",
            "steps[0].uses: must be one of 'research', 'save'",
        ),
        ("- {id: a, name: A, type: action, run: {}}", "steps[0].run: must be a text"),
        (
            "- {id: a b, name: A, type: action, run: x}",
            "steps[0].id: must be a name of letters, digits and _",
        ),
        ("- {id: end, name: A, type: action, run: x}", "steps[0].id: end is the name of the end"),
        (
            "- {id: a, name: A, type: approval}\n- {id: a, name: A, type: approval}",
            "steps[1].id: a is the id of another",
        ),
        (
            "- {id: a, name: A, type: condition, cases: []}",
            "steps[0].cases: must not be empty",
        ),
        (
            "- {id: a, name: A, type: condition, cases: [{next: b}]}",
            "steps[0].cases[0].next: leads nowhere: there is no step b; steps: a, end",
        ),
        ("- {id: a, name: A, type: parallel, run: x}", "steps[0].foreach: is required"),
        ("- {id: a, name: A, type: action, run: 'x ${{ 1'}", "steps[0].run: `${{ 1`: ${{ has no }}"),
        ("- {id: a, name: A, type: action, run: 'x ${{ item }}'}", "undeclared reference to 'item'"),
        ("- {id: a, name: A, type: approval, message: '${{ params.x }}'}", "there is no params.x"),
        (
            "- {id: a, name: A, type: action, run: x, outputs: {1b: stdout}}",
            "steps[0].outputs.1b: must be a name",
        ),
        (
            "- {id: a, name: A, type: approval, name: B}",
            "steps[0].name: this key is given twice",
        ),
        ("- 3", "steps[0]: must be a mapping"),
    ],
)
def test_single_mistakes(steps: str, told: str) -> None:
    found = mistakes(steps)
    assert [told in message for message in found] == [True], found


def test_variables_are_known_from_wherever_they_are_set() -> None:
    steps = """
        - {id: a, name: A, type: action, run: date, outputs: {b: stdout}}
        - {id: c, name: C, type: condition, cases: [{set: {d: "'1'"}}]}
        - {id: e, name: E, type: action, run: 'echo ${{ variables.b }} ${{ variables.d }} ${{ variables.p }}'}
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
    assert [message.partition(":")[0] for message in found] == ["steps[0].retries", "steps[1]"]


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
        ("---\ntemplate_id: a\n---\ntext\n", 5, "there is no fenced block ```yaml with steps:"),
        (template_text("- {id: a, name: A,"), 15, "needs quotes"),
        (template_text("- &x {id: a, name: A, type: approval}\n- *x"), 16, "aliases are not allowed"),
        (template_text("- {id: a, name: A, type: approval}").replace("version: 1.0\n", ""), 1, "required"),
        (
            template_text("- {id: a, name: A, type: approval}", "a: {type: text}"),
            8,
            "must be one of 'string',",
        ),
        (template_text("- {id: a, name: A, type: approval}", "a-b: {}"), 8, "must be a name of letters"),
        (template_text("- {id: a, name: A, type: approval}")[:-4], 16, "there is no fenced block"),
    ],
)
def test_what_the_file_is_broken_by(text: str, line: int, told: str) -> None:
    _, found = read_template(text.encode())
    assert any(problem.line == line and told in problem.message for problem in found), found


def test_bytes_that_are_no_text_are_told() -> None:
    problem = Problem(2, "", "the template is not UTF-8 text (byte 4)")
    assert read_template(b"---\n\xff\n") == (None, [problem])


def test_the_second_block_may_go_on_where_the_first_ends_or_be_left_out() -> None:
    text = template_text("- {id: a, name: A, type: action, run: 'x ${{ params.a }}'}", "a: {default: b}")
    for variant in (text, text.replace("---\n---\n", "---\n"), text.replace("\n", "\r\n")):
        template, _ = read_template(variant.encode())
        assert template is not None
        assert list(template.parameters) == ["a"]
    left_out = template_text("- {id: a, name: A, type: approval}").replace(
        "---\nparameters:\n  {}\n---\n", ""
    )
    assert read_template(left_out.encode())[1] == []


def test_the_steps_stand_in_the_first_yaml_block_that_has_them() -> None:
    text = template_text("- {id: a, name: A, type: approval}")
    text = text.replace("# A sample\n", "# A sample\n\n```yaml\nother: 1\n```\n")
    assert read_template(text.encode())[1] == []


def test_the_schema_names_every_key_as_templates_write_it() -> None:
    schema = template_schema()
    assert set(schema["required"]) == {"template_id", "version", "type", "steps"}
    kinds = schema["$defs"]
    assert {"if", "with", "run", "uses", "outputs", "on_interrupt"} <= set(kinds["ActionStep"]["properties"])
    assert {"foreach", "as", "max_parallel"} <= set(kinds["ParallelStep"]["properties"])
    assert kinds["ActionStep"]["additionalProperties"] is False
