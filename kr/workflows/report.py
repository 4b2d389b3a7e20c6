"""The Markdown report of an instance, made from its state alone (rule 9)."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from kr.guard import mask_secrets
from kr.text import fenced, one_line, strip_invisible
from kr.times import parse_time
from kr.workflows.expressions import as_text
from kr.workflows.model import Instance, Run

_LONGEST_RESULT = 4_000
_MARKS = {"completed": "✓", "failed": "✗", "skipped": "–", "running": "…", "waiting": "?", "pending": " "}


def render_report(instance: Instance) -> str:
    """Write the report: header, timeline, results and variables."""
    timeline = [
        _row(run, step.name if run is step else f"{step.name}: {run.name}")
        for step in instance.steps
        for run in (step, *step.sub_tasks)
    ]
    sections = {
        "Timeline": _table(("Step", "Type", "Status", "Started", "Duration", "Details"), timeline),
        "Results": list(_results(instance)),
        "Variables": [_block(instance.variables)] if instance.variables else [],
    }
    lines = _header(instance)
    for title, content in sections.items():
        if content:
            lines += ["", f"## {title}", "", *content]
    return "\n".join(lines).rstrip("\n") + "\n"


def masked(value: Any, name: str = "") -> Any:
    """Return nested plain data with ``<secret>`` in place of secrets: what is named like one, and what looks like one."""
    if isinstance(value, dict):  # a session_id is named like a secret, and is none
        return {key: masked(it, "" if key == "session_id" else key) for key, it in value.items()}
    if isinstance(value, list):
        return [masked(it, name) for it in value]
    if not isinstance(value, str):
        return value
    return mask_secrets(f"{name}: {value}").removeprefix(f"{name}: ")


def _duration(started: str | None, ended: str | None) -> str:
    """Say how long something took; a dash where it has not ended."""
    begin, end = parse_time(started or ""), parse_time(ended or "")
    if begin is None or end is None:
        return "–"
    seconds = max((end - begin).total_seconds(), 0.0)
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def _header(instance: Instance) -> list[str]:
    numbers = Counter[str](step.status for step in instance.steps)
    params = masked(instance.params)
    facts = {
        "Workflow": instance.workflow_id,
        "Template": instance.template_ref,
        "Version": instance.template_version,
        "Type": instance.type,
        "Status": instance.status,
        "Started": instance.started_at,
        "Ended": instance.completed_at,
        "Duration": _duration(instance.started_at, instance.completed_at),
        "Steps": ", ".join(f"{numbers[status]} {status}" for status in _MARKS if status in numbers),
        "Path": " → ".join(instance.path) or None,
        **{f"Parameter {name}": value for name, value in params.items()},
    }
    return [
        f"# Workflow report: {_cell(instance.template_id)}",
        "",
        *(["> **Simulated**: no command was run.", ""] if instance.is_simulated else []),
        *_table(("", ""), facts.items()),
    ]


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", *lines]


def _status(run: Run) -> str:
    more = [f"{run.attempts} attempts"] if run.attempts > 1 else []
    more += ["interrupted"] if run.interruptions else []
    return f"{_MARKS[run.status]} {run.status}".strip() + (f" ({', '.join(more)})" if more else "")


def _row(run: Run, name: str) -> Sequence[object]:
    took = _duration(run.started_at, run.completed_at)
    return name, run.type, _status(run), run.started_at, took, masked(run.details)


def _results(instance: Instance) -> Iterator[str]:
    for step in instance.steps:
        if step.result and step.type in {"action", "parallel"}:
            yield from (f"### {_cell(step.name)}", "", _block(step.result), "")
        for task in step.sub_tasks:
            if task.result:
                yield from (f"#### {_cell(f'{step.name}: {task.name}')}", "", _block(task.result), "")


def _block(value: Any) -> str:
    """Show a value as JSON in a fence that nothing in it can close."""
    text = strip_invisible(json.dumps(masked(value), ensure_ascii=False, indent=2))
    if len(text) > _LONGEST_RESULT:
        text = f"{text[:_LONGEST_RESULT]}\n… cut: the state file has {len(text):,} characters of it"
    return fenced(text, "json")


def _cell(value: Any) -> str:
    """Show a value in a cell of a table: one line, a time to the second, and nothing that Markdown would read."""
    if value is None:
        return "–"
    text = re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d+Z$", r"\1 \2 UTC", as_text(value))
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", one_line(text, 300))
