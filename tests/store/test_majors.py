"""Two major versions of one topic, side by side (rule 3.3): none takes the place of another's report."""

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from kr.models import Entry
from kr.store import entries, saving
from kr.store.engine import Store
from kr.times import major_key, same_major
from tests.support.stores import NOW, draft

LATER = NOW + timedelta(hours=1)


def save(store: Store, version: str, text: str = "", **changes: str) -> Entry:
    made = draft(framework_version=version, **changes)
    return saving.save(store, made, text or f"# for {version}\n", NOW).entry


def texts(store: Store) -> dict[str, str | None]:
    with store.read() as tx:
        live = entries.all(tx)
    return {entry.id: saving.read_report(store, entry) for entry in live}


def test_another_major_is_an_entry_of_its_own(store: Store, base: Path) -> None:
    first, second = save(store, "2.7"), save(store, "^3.5")
    assert (first.id, first.path) == ("click-repeatable-options", "frameworks/click/repeatable-options.md")
    assert (second.id, second.path) == (
        "click-repeatable-options-v3",
        "frameworks/click/repeatable-options-v3.md",
    )
    assert save(store, "2.9", "# two\n").id == first.id
    assert save(store, "v3", "# three\n").path == second.path
    assert texts(store) == {first.id: "# two\n", second.id: "# three\n"}
    assert (base / second.path).read_text() == "# three\n"


def test_a_name_that_another_topic_has_is_left_to_it(store: Store) -> None:
    other = save(store, "3", topic="repeatable options v3")
    save(store, "2")
    entry = save(store, "3")
    assert entry.id not in {other.id, "click-repeatable-options"}
    assert entry.id.endswith("-v3")
    assert len(texts(store)) == 3


def test_an_unknown_version_renews_what_was_used_last(store: Store) -> None:
    save(store, "2")
    last = save(store, "3")
    assert save(store, "unknown", "# new\n").id == last.id
    assert len(texts(store)) == 2


VERSIONS = st.sampled_from(["1", "2.7", "^2", "v3", ">=3,<4", "latest", "next", "unknown"])


@settings(max_examples=15, deadline=None)
@given(versions=st.lists(VERSIONS, min_size=1, max_size=8))
def test_no_report_is_lost_to_another_major(versions: list[str]) -> None:
    with TemporaryDirectory() as folder, Store(None, Path(folder)) as store:
        written: dict[str, tuple[str, str]] = {}
        for number, version in enumerate(versions):
            entry = save(store, version, f"# {number}\n")
            renewed = written.get(entry.id)
            assert renewed is None or same_major(renewed[0], version)
            written[entry.id] = (version, f"# {number}\n")
            # Nobody whose version is known is told a text of another version that is known.
            with store.read() as tx:
                found = entries.of_major(entries.of_pair(tx, "click", "repeatable options"), version)
            assert found == entry
        assert texts(store) == {entry_id: text for entry_id, (_, text) in written.items()}
        known = [major_key(version) for version, _ in written.values() if version != "unknown"]
        assert len(known) == len(set(known))
