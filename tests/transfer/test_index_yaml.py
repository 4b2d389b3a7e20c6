import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.models import Entry
from kr.transfer.export_yaml import quoted, render_index

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def entry(**changes: object) -> Entry:
    values: dict[str, object] = {
        "id": "click-options",
        "framework": "click",
        "framework_version": "2.10",
        "topic": "options",
        "tags": ("cli", "yes"),
        "path": "frameworks/click/options.md",
        "created": "2026-01-20T08:00:00.000000Z",
        "last_accessed": "2026-02-05T09:30:00.000000Z",
        "status": "fresh",
        "confidence": "high",
    }
    return Entry(**{**values, **changes})  # type: ignore[arg-type]


@given(TEXT)
def test_any_text_survives_a_quoted_scalar(text: str) -> None:
    assert yaml.safe_load(quoted(text)) == text
    assert len(quoted(text).splitlines()) == 1


@given(st.lists(TEXT, min_size=1, max_size=4), TEXT, TEXT)
def test_any_entry_survives(tags: list[str], topic: str, version: str) -> None:
    (item,) = yaml.safe_load(render_index([entry(tags=tuple(tags), topic=topic, framework_version=version)]))
    assert (item["tags"], item["topic"], item["framework_version"]) == (tags, topic, version)


def test_the_seeds_keys_in_their_order_with_dates_as_text() -> None:
    (item,) = yaml.safe_load(render_index([entry()]))
    assert list(item.items()) == [
        ("id", "click-options"),
        ("framework", "click"),
        ("framework_version", "2.10"),
        ("topic", "options"),
        ("tags", ["cli", "yes"]),
        ("path", "frameworks/click/options.md"),
        ("created", "2026-01-20"),
        ("last_accessed", "2026-02-05"),
        ("status", "fresh"),
    ]
