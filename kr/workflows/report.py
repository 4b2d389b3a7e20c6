"""The Markdown report of an instance, made from its state alone (rule 9)."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kr.text import one_line, strip_invisible
from kr.times import parse_time
from kr.workflows.state import Instance, StepState, SubTask

_LONGEST_RESULT = 4_000
_MARKS = {
    "completed": "✓",
    "failed": "✗",
    "skipped": "–",
    "running": "…",
    "waiting": "?",
    "pending": " ",
}


def render_report(instance: Instance) -> str:
    """Write the report: header, timeline, approvals, sub-tasks, results and variables."""
    sections = [
        _header(instance),
        _section("Timeline", _timeline(instance)),
        _section("Approvals", _approvals(instance)),
        *(
            _section(f"Sub-tasks of {_cell(step.name)}", _sub_tasks(step))
            for step in instance.steps
            if step.sub_tasks
        ),
        _section("Results", _results(instance)),
        _section("Variables", _block(instance.variables) if instance.variables else []),
    ]
    return "\n".join(filter(None, sections)).rstrip("\n") + "\n"


def duration(started: str | None, ended: str | None) -> str:
    """Say how long something took; a dash where it has not ended."""
    begin, end = parse_time(started or ""), parse_time(ended or "")
    if begin is None or end is None:
        return "–"
    seconds = max((end - begin).total_seconds(), 0.0)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _header(instance: Instance) -> str:
    counts = ", ".join(
        f"{number} {status}"
        for status in _MARKS
        if (number := sum(step.status == status for step in instance.steps))
    )
    simulated = any(run.is_simulated for _, run in instance.runs())
    lines = [
        f"# Workflow report: {_cell(instance.template_id)}",
        "",
        *(["> **Simulated**: the steps marked as simulated ran no command.", ""] if simulated else []),
        "| | |",
        "|---|---|",
        f"| Workflow | `{instance.workflow_id}` |",
        f"| Template | {_code(instance.template_ref)}{_version(instance)} |",
        f"| Type | {_cell(instance.type)} |",
        f"| Status | **{instance.status}** |",
        f"| Started | {_moment(instance.started_at)} |",
        f"| Ended | {_moment(instance.completed_at)} |",
        f"| Duration | {duration(instance.started_at, instance.completed_at)} |",
        f"| Steps | {counts} |",
        f"| Path | {_cell(' → '.join(instance.path) or None)} |",
        *(f"| Parameter `{name}` | {_cell(value)} |" for name, value in instance.params.items()),
    ]
    return "\n".join([*lines, ""])


def _version(instance: Instance) -> str:
    return f", version {_cell(instance.template_version)}" if instance.template_version else ""


def _section(title: str, lines: Iterable[str]) -> str:
    text = "\n".join(lines).rstrip("\n")
    return f"## {title}\n\n{text}\n" if text else ""


def _timeline(instance: Instance) -> Iterator[str]:
    yield "| # | Step | Type | Status | Started | Duration | Details |"
    yield "|---|---|---|---|---|---|---|"
    for number, step in enumerate(instance.steps, 1):
        yield (
            f"| {number} | {_cell(step.name)} (`{step.id}`) | {step.type} | {_status(step)} | "
            f"{_moment(step.started_at)} | {duration(step.started_at, step.completed_at)} | {_cell(step.details)} |"
        )


def _status(run: StepState | SubTask) -> str:
    more = [f"{run.attempts} attempts"] if run.attempts > 1 else []
    more += ["interrupted"] if run.interruptions else []
    more += ["simulated"] if run.is_simulated and run.status != "pending" else []
    return f"{_MARKS[run.status]} {run.status}".strip() + (f" ({', '.join(more)})" if more else "")


def _approvals(instance: Instance) -> Iterator[str]:
    rows = [step for step in instance.steps if step.type == "approval" and step.status != "skipped"]
    if not rows:
        return
    yield "| Step | Decision | By | At | Note |"
    yield "|---|---|---|---|---|"
    for step in rows:
        result = step.result or {}
        approved = result.get("approved")
        decision = ("approved" if approved else "rejected") if isinstance(approved, bool) else step.status
        yield (
            f"| {_cell(step.name)} (`{step.id}`) | {decision} | {_cell(result.get('by'))} | "
            f"{_moment(result.get('at'))} | {_cell(result.get('note') or None)} |"
        )


def _sub_tasks(step: StepState) -> Iterator[str]:
    yield "| # | Element | Status | Duration | Details |"
    yield "|---|---|---|---|---|"
    for task in step.sub_tasks:
        took = duration(task.started_at, task.completed_at)
        yield f"| {task.id} | {_cell(task.name)} | {_status(task)} | {took} | {_cell(task.details)} |"


def _results(instance: Instance) -> Iterator[str]:
    for step in instance.steps:
        if step.result and step.type in {"action", "parallel"}:
            yield f"### {_cell(step.name)} (`{step.id}`)"
            yield ""
            yield from _block(step.result)
            yield ""
        for task in step.sub_tasks:
            if task.result:
                yield f"#### {_cell(step.name)}: {_cell(task.name)}"
                yield ""
                yield from _block(task.result)
                yield ""


def _block(value: Any) -> list[str]:
    """Show a value as JSON in a fence that nothing in it can close."""
    text = strip_invisible(json.dumps(value, ensure_ascii=False, indent=2))
    if len(text) > _LONGEST_RESULT:
        text = f"{text[:_LONGEST_RESULT]}\n… cut: the state file has {len(text):,} characters of it"
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}json", text, fence]


def _cell(value: Any) -> str:
    """Show a value in a cell of a table: one line, and nothing that Markdown would read."""
    if value is None:
        return "–"
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 300)
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


def _code(text: str) -> str:
    """Show a text in a cell as code, where only the code's own mark and the table's have a meaning."""
    return "`" + one_line(text, 300).replace("`", "'").replace("|", "\\|") + "`"


def _moment(at: Any) -> str:
    """Show a time; whatever else stands there (a state can be edited) as it is."""
    if not isinstance(at, str) or parse_time(at) is None:
        return _cell(at)
    return at.replace("T", " ").partition(".")[0] + (" UTC" if at.endswith("Z") else "")
