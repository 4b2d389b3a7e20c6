"""What forbids an answer however alike the needs are: another identifier, the opposite act (SPEC 3.2)."""

import pytest

from kr.matching.compare import act_of
from kr.matching.decide import CONTRADICTED, Considered, decide
from kr.values import MatchRules
from tests.support.candidates import candidate, query

MEMO = """useMemo caches the result of an expensive calculation between renders; it keeps a stable reference for memoised
children. For functions there is useCallback: useCallback(fn, deps) is useMemo(() => fn, deps)."""


def consider(
    asked: str, entry_topic: str, entry_question: str, topic: str = "", report: str = MEMO
) -> Considered:
    known = candidate(entry_topic, "performance", question=entry_question, report=report)
    return decide(query(topic or asked, "performance", question=asked), [known], MatchRules()).considered[0]


class TestNames:
    @pytest.mark.parametrize(
        "asked",
        [
            "How do I keep an expensive calculation from running on every render with useCallback?",
            "How do I cache between renders with useCallback?",
            "useCallback: caching between renders for memoised children",
        ],
    )
    def test_a_sibling_of_what_is_asked_never_answers_though_its_report_mentions_both(
        self, asked: str
    ) -> None:
        entry = (
            "memoise an expensive calculation with useMemo",
            "How do I cache a calculation between renders?",
        )
        found = consider(asked, *entry)
        assert found.reason == "usecallback is asked for, and this is about usememo"
        assert found.likelihood == CONTRADICTED
        assert consider(asked.replace("useCallback", "useMemo"), *entry).reason is None

    def test_a_wording_that_was_kept_with_the_entry_is_known(self) -> None:
        wording = ("caching callbacks", (), "How do I cache a callback with useCallback?")
        known = candidate("caching with useMemo", report=MEMO, wordings=[wording])
        asked = query("caching with useCallback", question="How do I cache between renders with useCallback?")
        assert "is asked for" not in (decide(asked, [known], MatchRules()).considered[0].reason or "")

    @pytest.mark.parametrize(
        ("asked", "topic", "question"),
        [
            (
                "read a CSV in chunks with pd.read_csv",
                "read_csv in chunks",
                "How do I read a large CSV with read_csv?",
            ),
            ("useMemo and useCallback", "useCallback and useMemo", "When do I take which?"),
            ("use memo for an expensive calculation", "useMemo for an expensive calculation", "How?"),
            (
                "process.env is undefined",
                "process.env.MY_VAR is undefined",
                "Why is process.env.MY_VAR undefined?",
            ),
        ],
    )
    def test_one_name_in_two_forms_is_no_sibling(self, asked: str, topic: str, question: str) -> None:
        assert "is asked for" not in (consider(asked, topic, question).reason or "")


class TestActs:
    @pytest.mark.parametrize(
        ("asked", "known"),
        [
            ("How do I disable response caching?", "How do I enable response caching?"),
            ("How can I turn off response caching for one route?", "How do I configure response caching?"),
            ("How to remove a column from a table?", "How do I add a column to a table?"),
            ("怎么关闭查询缓存?", "怎么开启查询缓存?"),
            ("如何停用响应缓存？", "如何启用响应缓存？"),
            ("怎么禁用响应缓存?", "How do I enable response caching?"),
        ],
    )
    def test_the_opposite_told_in_the_question_alone_never_answers(self, asked: str, known: str) -> None:
        for one, other in ((asked, known), (known, asked)):
            found = consider(
                one, "response caching and columns 查询缓存", other, "caching of responses, columns, 查询缓存"
            )
            assert found.reason, (one, other)
            assert found.likelihood <= CONTRADICTED

    @pytest.mark.parametrize(
        ("asked", "known"),
        [
            ("How do I disable response caching?", "How can response caching be turned off?"),
            ("How do I disable response caching?", "How do I turn response caching off?"),
            ("How do I fix N+1 queries?", "How do I stop a list from firing one query per row?"),
            ("怎么关闭查询缓存?", "如何禁用查询缓存？"),
            ("How do I add a column without a lock?", "How do I add a column to a large table?"),
        ],
    )
    def test_one_act_in_other_words_is_no_opposite(self, asked: str, known: str) -> None:
        for one, other in ((asked, known), (known, asked)):
            found = consider(one, "response caching and columns", other, "caching of responses, columns")
            assert "what is to be done" not in (found.reason or "")

    @pytest.mark.parametrize(
        ("question", "act"),
        [
            ("How do I disable it? Thanks", "disable it"),
            ("Since 2.0 it fails. How can we turn it off, please?", "turn it off"),
            ("how to log in", "log in"),
            ("为什么慢，怎么关闭查询缓存？谢谢", "关闭查询缓存"),
            ("Why does it fail?", ""),
            ("", ""),
        ],
    )
    def test_what_is_to_be_done(self, question: str, act: str) -> None:
        assert act_of(question) == act
