"""What a report's own words say of it."""

import pytest

from kr.report import is_by_hand, read_date, read_version


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("**Version:** 3.5", "3.5"),
        ("**Version:** **2.x** ", "2.x"),
        ("**Version:** _", None),
        ("Sources: none", None),
    ],
)
def test_a_version_is_read_as_the_header_has_it(line: str, version: str | None) -> None:
    assert read_version(f"# vue - slots\n\n{line}\n\n## Summary\n\n**Version:** 9\n") == version


def test_a_date_is_of_the_header_alone() -> None:
    assert read_date("**Research Date:** 2026-02-07\n\n## Summary\n") == "2026-02-07"
    assert read_date("# vue\n\n## Summary\n\n**Research Date:** 2026-02-07\n") is None


def test_a_text_that_is_no_report_is_by_hand() -> None:
    assert is_by_hand("just a note")
