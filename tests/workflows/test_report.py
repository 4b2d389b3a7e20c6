"""The report of an instance, from its state alone; and texts in it that would be Markdown of their own."""

import re

import pytest

from kr.workflows.machine import handle
from kr.workflows.model import Begin, Decided, Finished, Instance, Target
from kr.workflows.report import render_report
from tests.support.workflows import NOW, action, approval, condition, make, parallel

LATER = "2026-11-22T13:02:03.000000Z"


def took(instance: Instance, *events: Begin | Decided | Finished) -> Instance:
    for event in events:
        instance, _ = handle(instance, event, now=NOW if isinstance(event, Begin) else LATER)
    return instance


def done(step: str, details: str = "fine", *, ok: bool = True, task: int | None = None) -> Finished:
    return Finished(
        Target(step, task), is_success=ok, details=details, result={"exit_code": 0, "stdout": details}
    )


def test_everything_that_happened_stands_in_it() -> None:
    steps = [
        action("test", retries=1),
        condition("check", {"when": "params.environment == 'production'", "next": "ask"}, {"next": "deploy"}),
        action("extra"),
        approval("ask"),
        parallel("deploy", "params.servers"),
    ]
    instance = took(
        make(steps, environment="production", servers=["a", "b"]),
        Begin(),
        done("test", ok=False),
        done("test"),
        Decided("ask", is_approved=True, by="Ada", note="go | now"),
        done("deploy", task=0),
        done("deploy", "no room", ok=False, task=1),
    )
    text = render_report(instance)
    for line in (
        "# Workflow report: sample",
        "| Workflow | sample-1 |",
        "| Template | /sample.md |",
        "| Status | failed |",
        "| Duration | 1:02:03 |",
        "| Steps | 3 completed, 1 failed, 1 skipped |",
        "| Parameter environment | production |",
        "| Path | test → check → ask → deploy |",
        "| test | action | ✓ completed (2 attempts) | 2026-11-22 12:00:00 UTC | 1:02:03 | fine |",
        "| extra | action | – skipped | – | – | – |",
        "| ask | approval | ✓ completed | 2026-11-22 13:02:03 UTC | 0.0 s | Approved by Ada: go \\| now. |",
        "| deploy | parallel | ✗ failed | 2026-11-22 13:02:03 UTC | 0.0 s | 1 of 2 failed: b |",
        "| deploy: b | sub\\_task | ✗ failed | 2026-11-22 13:02:03 UTC | 0.0 s | no room |",
    ):
        assert line in text.split("\n"), text
    assert '"stdout": "no room"' in text


def test_one_that_has_not_ended_or_not_begun_has_a_report_too() -> None:
    steps = [approval("ask", message="Go?"), action("b")]
    waiting = render_report(took(make(steps), Begin()))
    assert "| ask | approval | ? waiting | 2026-11-22 12:00:00 UTC | – | Go? |" in waiting
    assert "| Ended | – |" in waiting
    assert "| Path | – |" in render_report(make(steps))


@pytest.mark.parametrize(
    "text", ["```\n# forged", "| a | b |\n|---|", "\x1b[2Jx\u202e", "</td><script>", "[a](b) **c**"]
)
def test_no_text_can_forge_a_part_of_it(text: str) -> None:
    step = action("a", name=text.split("\n", maxsplit=1)[0] or "a")
    report = render_report(took(make([step], value=text), Begin(), done("a", text)))
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", report, flags=re.MULTILINE | re.DOTALL)
    assert "\n# forged" not in outside
    assert "<script" not in outside.replace("\\<script", "")
    assert not set(report) & {"\x1b", "\u202e"}
    titles = [line for line in outside.split("\n") if line.startswith("## ")]
    assert titles == ["## Timeline", "## Results", "## Variables"]
    rows = [line for line in outside.split("\n") if "| action |" in line]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [7]
