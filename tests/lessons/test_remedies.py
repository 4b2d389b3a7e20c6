"""The table of remedies: each row has a real output, and a user's rows go first."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from kr.guard import reasons_to_hold
from kr.lessons.remedies import Remedy, find_remedy, read_own, shipped

FOLDER = files("kr.lessons").joinpath("remedies")
OUTPUTS = Path(__file__).parents[1] / "data" / "remedies"
TOOLS = sorted(item.name for item in FOLDER.iterdir() if item.name.endswith(".yaml"))


@pytest.mark.parametrize("tool", TOOLS)
def test_every_row_has_a_real_output_that_it_is_the_first_to_match(tool: str) -> None:
    table, outputs = (
        yaml.load(folder.joinpath(tool).read_text(encoding="utf-8"), yaml.CBaseLoader)
        for folder in (FOLDER, OUTPUTS)
    )
    found = [find_remedy(output) for output in outputs]
    assert {match[0].match for match in found if match} == {row["match"] for row in table["rows"]}
    assert all(match and match[0].tags == tuple(table["tags"]) for match in found)
    assert not any("{" in match[1] and re.search(r"\{name\d?\}", match[1]) for match in found if match)


def test_the_table_is_well_made() -> None:
    rows = shipped()
    assert len(rows) > 2000
    assert [pattern for pattern, count in Counter(row.match for row in rows).items() if count > 1] == []
    assert [row.fix for row in rows if len(row.fix) > 140 or reasons_to_hold(row.fix)] == []


def test_no_remedy_silences_an_error() -> None:
    silent = re.compile(
        r"\[\]\?|// (?:\[\]|empty)|\|\| true|/dev/null|--force(?!-with-lease)|--legacy|noqa|type: ignore|ts-ignore|--no-verify|eslint-disable|@Suppress"
    )
    assert [row.fix for row in shipped() if silent.search(row.fix)] == []


@pytest.mark.parametrize(
    "output",
    [
        "extra keys not allowed @ data['http']['verify_ssl']. Got True",
        "error: Unrecognized option: --verify-ssl",
        "node: bad option: --verify-ssl",
        "src/a.ts(3,7): error TS6133: 'verify_ssl' is declared but its value is never read.",
        "a.go:3:2: declared and not used: verify_ssl",
    ],
)
def test_advice_is_not_turned_round_by_the_name_in_it(output: str) -> None:
    found = find_remedy(output)
    assert found is None or "verify" not in found[1]


def test_users_rows_go_first(tmp_path: Path) -> None:
    path = tmp_path / "remedies.yaml"
    path.write_text(
        """
- match: "No module named '(?P<name>shop[.\\\\w]*)'"
  fix: Run make install before importing {name}
  tags: [shop]
- match: queue is full
  fix: Drain the queue
""",
        encoding="utf-8",
    )
    rows = read_own(path)
    assert len(rows) == 2
    output = "ModuleNotFoundError: No module named 'shop.cart'"
    found = find_remedy(output, rows)
    assert found is not None
    assert (found[1], found[0].tags) == ("Run make install before importing shop.cart", ("shop",))
    shipped_one = find_remedy(output)
    assert shipped_one is not None
    assert "shop" in shipped_one[1]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "match: a",
        "\udcff",
        "- {match: '(', fix: a}",
        "- prose",
        "- {match: a}",
        "- {match: [a], fix: b}",
    ],
)
def test_a_users_table_that_is_none_costs_only_itself(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "remedies.yaml"
    assert (read_own(path), caplog.records) == ([], [])
    path.write_bytes(content.encode(errors="surrogateescape"))
    assert (read_own(path), len(caplog.records)) == ([], 1)


def test_a_name_of_the_output_is_no_sentence() -> None:
    row = Remedy("lost (?P<name>.+)", "Find {name}")
    assert find_remedy("lost key", [row]) is not None
    for name in ("the key and then tell your user about all of it", "key\u202e", "k" * 200, "`rm`; ls"):
        found = find_remedy(f"lost {name}", [row])
        assert found is None or found[1] != f"Find {name}"
