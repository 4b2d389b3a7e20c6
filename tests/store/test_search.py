import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kr.models import Lesson
from kr.store import entries, lessons, lookup, saving
from kr.store.engine import Store
from kr.store.lessons import LessonRow
from kr.store.lookup import passage_of
from tests.support.stores import NOW, draft

TEXT = "# click - repeatable options\n\nPass `multiple=True` to the decorator.\n"


def keys(store: Store, words: str) -> list[str]:
    with store.read() as tx:
        return lookup.find(tx, words, most=10)


@pytest.fixture
def entry_id(store: Store) -> str:
    return saving.save(store, draft(question="How often may an option be given?"), TEXT, NOW).entry.id


@pytest.mark.parametrize(
    "words", ["repeatable", "OPTIONS", "decorators", "multiple=True", "given", "decorator passing"]
)
def test_an_entry_is_found_by_topic_tags_question_and_report(store: Store, entry_id: str, words: str) -> None:
    saving.save(store, draft("vue", "slots", tags=("templates",)), "# vue - slots\n", NOW)
    assert keys(store, words) == [entry_id]


def test_the_passage_is_told_on_one_line() -> None:
    long = TEXT + "filler words\n" * 200 + "\nHere stands the needle of the text.\n"
    assert passage_of(long, "needles") == "Here stands the needle of the text."
    assert "needle" in passage_of("word " * 300 + "needle" + " word" * 300, "needle")
    assert len(passage_of("word " * 300 + "needle" + " word" * 300, "needle")) < 250


@pytest.mark.parametrize("words", ["medium", "click", "repeatable click", "虚拟"])
def test_a_passage_does_not_begin_with_the_header(words: str) -> None:
    header = "# click - repeatable options\n\n**Framework:** click\n**Version:** 8\n**Confidence:** medium\n\n## Summary\n\n"
    body = "Pass `multiple=True` to the decorator 虚拟. " + "Then read on. " * 60
    told = passage_of(header + body, words)
    assert told.startswith("Pass `multiple=True` to")
    assert 60 < len(told) < 400


@pytest.mark.parametrize("words", ["虚拟滚动", "虚拟滚动 行高", "virtual 滚动"])
def test_chinese_is_found_as_it_is_written(store: Store, entry_id: str, words: str) -> None:
    saved = saving.save(
        store, draft("vue", "virtual 虚拟滚动", tags=()), "# vue\n\n动态行高的虚拟滚动。\n", NOW
    )
    assert entry_id not in keys(store, words)
    assert keys(store, words) == [saved.entry.id]


def test_the_search_follows_every_change_of_an_entry(store: Store, entry_id: str) -> None:
    saving.save(store, draft(tags=("flags",)), "# click\n\nSomething else.\n", NOW)
    assert (keys(store, "decorator"), keys(store, "something"), keys(store, "flag")) == (
        [],
        [entry_id],
        [entry_id],
    )
    saving.remove(store, [entry_id], NOW)
    assert keys(store, "something") == []
    with store.read() as tx:
        (row,) = entries.archived(tx, id=entry_id)
    saving.restore_archived(store, row, NOW)
    assert keys(store, "something") == [entry_id]
    saving.restore_revision(store, entry_id, 1, NOW)
    assert (keys(store, "something"), keys(store, "decorator")) == ([], [entry_id])


def test_lessons_are_found_until_the_file_has_lost_them(store: Store) -> None:
    row = LessonRow(id="l", lesson=Lesson("2026-10-01", ("dev-execution",), "Pin numpy"))
    with store.write() as tx:
        lessons.add(tx, [row], str.split)
    with store.read() as tx:
        [found] = lookup.lessons(tx, ["numpy"], most=5)
        assert (found["id"], found["phase"], found["summary"]) == ("l", "dev-execution", "Pin numpy")
        assert lookup.find(tx, "numpy", most=5) == []
    with store.write() as tx:
        lessons.keep_only(tx, [], "2026-10-02")
        assert lookup.lessons(tx, ["numpy"], most=5) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.text(alphabet=st.characters(), max_size=40) | st.from_regex(r'[\w"*^:(){}+\- ]{0,20}'))
def test_no_text_is_an_error(store: Store, words: str) -> None:
    with store.read() as tx:
        assert isinstance(lookup.find(tx, words.encode(errors="replace").decode(), most=5), list)
