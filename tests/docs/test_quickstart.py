"""``scripts/quickstart``, the first thing that a stranger runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(sys.executable).parents[1]

_PYTHON = """#!/bin/sh
# A python whose environments hold the kr of this one, and whose pip writes down what it is asked for.
case "$1 $2" in
  "-m venv") mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && ln -s "{real}/kr" "$4/bin/kr" && ln -s "{real}/../lib" "$4/lib" ;;
  "-m pip") echo "$@" >>"{log}"; echo "Collecting click>=8.4 (from kr)" ;;
  *) exec "{real}/python" "$@" ;;
esac
"""


def _run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KR_")}
    return subprocess.run(
        [str(ROOT / "scripts" / "quickstart"), *arguments],
        env={**kept, "KR_SOURCES": "[]", "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null", **environ},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_help_says_what_it_does_and_asks_nothing() -> None:
    told = _run("--help", KR_VENV="/nowhere")
    assert told.returncode == 0
    assert told.stdout.startswith("Usage: scripts/quickstart")
    assert "KR_VENV" in told.stdout
    assert not told.stderr
    assert _run("--hlep").returncode == 2
    assert _run("How do I?", "click").returncode == 2


def test_an_environment_is_made_of_the_program_alone_and_its_commands_can_be_pasted(tmp_path: Path) -> None:
    log, python, venv = tmp_path / "log", tmp_path / "python", tmp_path / "its own"
    python.write_text(_PYTHON.format(real=HERE / "bin", log=log))
    python.chmod(0o755)
    told = _run(KR_VENV=str(venv), KR_PYTHON=str(python))
    assert told.returncode == 0, told.stderr
    assert log.read_text().split()[-2:] == ["--editable", "."]
    assert str(venv) in told.stderr
    assert "170 MB" in told.stderr
    shown = told.stdout.splitlines()
    assert len(shown) < 34
    assert max(map(len, shown)) < 160
    steps = [
        "degraded\n",
        "saved\n  revision: 2\n",
        "candidates\n  may answer  ",
        "`@click.option(",
        "worked: 1\n",
        "cache-hit\n  found by  framework+wording\n",
        "spared  tokens ",
    ]
    at = [told.stdout.index(step) for step in steps]
    assert at == sorted(at)
    found, read = (int(text) for text in re.findall(r"\((?:all that .*): (\d+) tokens\)", told.stdout))
    assert read < 400 < found
    [spared] = re.findall(r"spared  tokens (\d+)", told.stdout)
    assert found - read < int(spared) < 2 * found
    assert f"\n  {venv}/bin/kr init\n" in told.stdout


def test_a_kr_that_fails_says_so_itself() -> None:
    told = _run(KR_VENV=str(HERE), KR_TIMEOUT_SECONDS="soon")
    assert told.returncode != 0
    assert "timeout_seconds" in told.stderr
    assert "Traceback" not in told.stderr
