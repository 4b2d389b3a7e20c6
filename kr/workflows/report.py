"""The Markdown report of an instance, made from its state alone (rule 9)."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kr.text import fenced, one_line, strip_invisible
from kr.times import parse_time
from kr.workflows.expressions import as_text
from kr.workflows.state import Instance, StepState, SubTask

_LONGEST_RESULT = 4_000
MARKS = {"completed": "✓", "failed": "✗", "skipped": "–", "running": "…", "waiting": "?", "pending": " "}
_DECISIONS = {"completed": "approved", "failed": "rejected"}


def render_report(instance: Instance) -> str:
    """Write the report: header, timeline, approvals, sub-tasks, results and variables."""
    sections = {
        "Timeline": _timeline(instance),
        "Approvals": _approvals(instance),
        **{f"Sub-tasks of {_cell(step.name)}": _sub_tasks(step) for step in instance.steps},
        "Results": list(_results(instance)),
        "Variables": [_block(instance.variables)] if instance.variables else [],
    }
    lines = _header(instance)
    for title, content in sections.items():
        if content:
            lines += ["", f"## {title}", "", *content]
    return "\n".join(lines).rstrip("\n") + "\n"


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


def _header(instance: Instance) -> list[str]:
    numbers = Counter[str](step.status for step in instance.steps)
    counts = ", ".join(f"{numbers[status]} {status}" for status in MARKS if status in numbers)
    version = f", version {_cell(instance.template_version)}" if instance.template_version else ""
    took = duration(instance.started_at, instance.completed_at)
    is_simulated = any(run.is_simulated for step in instance.steps for run in (step, *step.sub_tasks))
    return [
        f"# Workflow report: {_cell(instance.template_id)}",
        "",
        *(["> **Simulated**: the steps marked as simulated ran no command.", ""] if is_simulated else []),
        "| | |",
        "|---|---|",
        f"| Workflow | `{instance.workflow_id}` |",
        f"| Template | {_code(instance.template_ref)}{version} |",
        f"| Type | {_cell(instance.type)} |",
        f"| Status | **{instance.status}** |",
        f"| Started | {_moment(instance.started_at)} |",
        f"| Ended | {_moment(instance.completed_at)} |",
        f"| Duration | {took} |",
        f"| Steps | {counts} |",
        f"| Path | {_cell(' → '.join(instance.path) or None)} |",
        *(f"| Parameter `{name}` | {_cell(value)} |" for name, value in instance.params.items()),
    ]


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay out rows whose cells are Markdown already; no line where there is no row."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", *lines] if lines else []


def _timeline(instance: Instance) -> list[str]:
    rows = [
        (
            number,
            _titled(step),
            step.type,
            _status(step),
            _moment(step.started_at),
            duration(step.started_at, step.completed_at),
            _cell(step.details),
        )
        for number, step in enumerate(instance.steps, 1)
    ]
    return _table(("#", "Step", "Type", "Status", "Started", "Duration", "Details"), rows)


def _status(run: StepState | SubTask) -> str:
    more = [f"{run.attempts} attempts"] if run.attempts > 1 else []
    more += ["interrupted"] if run.interruptions else []
    more += ["simulated"] if run.is_simulated and run.status != "pending" else []
    return f"{MARKS[run.status]} {run.status}".strip() + (f" ({', '.join(more)})" if more else "")


def _approvals(instance: Instance) -> list[str]:
    rows = []
    for step in instance.steps:
        if step.type != "approval" or step.status == "skipped":
            continue
        result = step.result or {}
        decision = _DECISIONS.get(step.status, step.status)
        note = _cell(result.get("note") or None)
        rows.append((_titled(step), decision, _cell(result.get("by")), _moment(result.get("at")), note))
    return _table(("Step", "Decision", "By", "At", "Note"), rows)


def _sub_tasks(step: StepState) -> list[str]:
    rows = [
        (
            task.id,
            _cell(task.name),
            _status(task),
            duration(task.started_at, task.completed_at),
            _cell(task.details),
        )
        for task in step.sub_tasks
    ]
    return _table(("#", "Element", "Status", "Duration", "Details"), rows)


def _results(instance: Instance) -> Iterator[str]:
    for step in instance.steps:
        if step.result and step.type in {"action", "parallel"}:
            yield from (f"### {_titled(step)}", "", _block(step.result), "")
        for task in step.sub_tasks:
            if task.result:
                yield from (f"#### {_cell(step.name)}: {_cell(task.name)}", "", _block(task.result), "")


def _block(value: Any) -> str:
    """Show a value as JSON in a fence that nothing in it can close."""
    text = strip_invisible(json.dumps(value, ensure_ascii=False, indent=2))
    if len(text) > _LONGEST_RESULT:
        text = f"{text[:_LONGEST_RESULT]}\n… cut: the state file has {len(text):,} characters of it"
    return fenced(text, "json")


def _titled(step: StepState) -> str:
    return f"{_cell(step.name)} (`{step.id}`)"


def _cell(value: Any) -> str:
    """Show a value in a cell of a table: one line, and nothing that Markdown would read."""
    if value is None:
        return "–"
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", one_line(as_text(value), 300))


def _code(text: str) -> str:
    """Show a text in a cell as code, where only the code's own mark and the table's have a meaning."""
    return "`" + one_line(text, 300).replace("`", "'").replace("|", "\\|") + "`"


def _moment(at: Any) -> str:
    """Show a time; whatever else stands there (a state can be edited) as it is."""
    if not isinstance(at, str) or parse_time(at) is None:
        return _cell(at)
    return at.replace("T", " ").partition(".")[0] + (" UTC" if at.endswith("Z") else "")
