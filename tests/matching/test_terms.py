import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.matching.terms import MOST_CHARACTERS, Term, keys_of, root, terms
from kr.matching.words import simplified


def texts(text: str) -> list[str]:
    return [term.text for term in terms(text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("organise", "organize"),
        ("serialisation", "serialization"),
        ("colour", "color"),
        ("behaviour", "behavior"),
        ("configs", "configuration"),
        ("env", "environment"),
        ("db", "database"),
        ("k8s", "kubernetes"),
        ("postgres", "postgresql"),
        ("queries", "query"),
        ("indices", "index"),
        ("deactivating", "disable"),
        ("folders", "directory"),
        ("retries", "retrying"),
        ("ＦＡＳＴ", "fast"),
        ("依赖注入", "dependency injection"),
        ("依賴注入", "dependency injection"),
    ],
)
def test_forms_and_spellings_of_one_word_are_one_term(one: str, other: str) -> None:
    assert texts(one) == texts(other) != []


@pytest.mark.parametrize(
    ("one", "other"),
    [("customer", "custom"), ("enable", "disable"), ("import", "export")],
)
def test_other_words_stay_others(one: str, other: str) -> None:
    assert texts(one) != texts(other)


@pytest.mark.parametrize(
    ("compound", "whole", "parts"),
    [
        ("useMemo", "usememo", "memo"),
        ("max_overflow", "maxoverflow", "max overflow"),
        ("row-height", "rowheight", "row height"),
        ("import.meta", "importmeta", "import meta"),
        ("RoleBinding", "rolebinding", "role binding"),
    ],
)
def test_a_compound_stands_as_one_word_and_by_its_parts(compound: str, whole: str, parts: str) -> None:
    first, *rest = terms(compound)
    assert first == Term(whole, is_whole=True, is_name=compound != "row-height")
    assert set(texts(parts)) <= {term.text for term in rest}
    assert not any(term.is_whole for term in rest)


def test_terms_keep_order_and_count_and_leave_out_function_words_and_lone_digits() -> None:
    assert texts("the queue, 3 queues and a worker of the queue") == [
        root("queue"), root("queue"), root("worker"), root("queue"),
    ]  # fmt: skip
    assert texts("v18 404") == ["v18", "404"]
    assert texts("") == texts("?! -- ...") == []


def test_chinese_prose_gives_the_terms_that_the_table_knows_and_names_as_they_are() -> None:
    assert texts("如何在 FastAPI 中使用依赖注入") == [*texts("FastAPI"), *texts("dependency injection")]
    assert texts("天气很好") == []


@given(st.text(max_size=80), st.text(max_size=80))
def test_what_stands_apart_counts_apart(one: str, other: str) -> None:
    assert terms(f"{one} , {other}") == terms(one) + terms(other)


@given(st.text(max_size=120))
def test_terms_are_words_without_case_or_space(text: str) -> None:
    for term in texts(text):
        assert term
        assert not any(char.isspace() for char in term)


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_case_says_nothing_where_it_parts_no_words(text: str) -> None:
    lower = text.lower()
    assert terms(lower.upper().lower()) == terms(lower)
    assert set(texts(lower)) <= set(texts(lower.replace("_", " "))) | {
        t.text for t in terms(lower) if t.is_whole
    }


def test_what_stands_behind_the_limit_is_not_looked_at() -> None:
    text = "word " * (MOST_CHARACTERS // 5 + 1)
    assert "hidden" not in texts(text + "hidden")
    assert len(terms(text)) <= MOST_CHARACTERS // 5 + 1


HOSTILE = [
    "w{} ",
    "a-",
    "aB",
    "虚拟",
    "依赖注入",
    "@",
    "_",
    "1.",
    "a.",
    "ａ",
    "e\u0301",
    "ABC ",
    "a'",
    "--a",
    "x+",
    "+#",
    "is",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_report_costs_little(unit: str) -> None:
    text = "".join(itertools.islice(map(unit.format, itertools.count()), MOST_CHARACTERS // len(unit)))
    started = time.process_time()
    terms(text)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("traditional", "simple"),
    [
        ("資料庫連線逾時", "数据库连接超时"),
        ("釋放檔案鎖", "释放文件锁"),  # 釋 and 鎖 are no rare characters
        ("覆寫範本的預設值", "覆写模板的默认值"),
        ("how to 快取 a 檔案", "how to 缓存 a 文件"),
    ],
)
def test_chinese_is_compared_in_one_script(traditional: str, simple: str) -> None:
    assert simplified(traditional) == simple
    assert terms(traditional) == terms(simple)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)))
def test_what_is_simplified_stays_as_it_is(text: str) -> None:
    assert simplified(simplified(text)) == simplified(text)


def test_what_stands_beside_a_name_is_no_part_of_what_a_report_answers() -> None:
    beside = (
        "> Other members of `Queue`:\n>\n> - `close()`: Closes the gate.\n> - `purge(at)`: Purges rows.\n"
    )
    report = (
        f"# queue - retry\n\n**Framework:** queue\n\n## Details\n\n> Retries a job.\n>\n{beside}\nThe end.\n"
    )
    need = ("retry", (), None)
    assert keys_of(need, (), report) == keys_of(need, (), report.replace(beside, ""))
