"""Lessons that an engineer would keep: every failure of tests/data/failures.yaml, and what holds for any text."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kr.lessons.columns import columns
from kr.lessons.distill.distill import distill
from kr.lessons.distill.material import Context, lesson_of
from kr.lessons.distill.scrub import relative_path, scrub
from kr.lessons.events import phase_tag
from kr.lessons.line import Lesson, format_line, parse_line
from kr.lessons.returned import read_return

FAILURES = yaml.load(
    Path(__file__).parents[1].joinpath("data/failures.yaml").read_text(encoding="utf-8"),
    Loader=yaml.BaseLoader,
)
_TRACE = re.compile(r"Traceback|^\s*at |\bat \w+[.(]|File \"|Caused by|goroutine|\.\.\. \d+ more|-->|\^\^")
_TIMESTAMP = re.compile(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d")
_MACHINE_PATH = re.compile(
    r"(?:^|[\s(\"'`:])(?:/(?:home|Users|root|tmp|var|usr|opt|srv|builds|app|workspace)/|[A-Z]:\\)"
)


def told(case: dict[str, Any]) -> Lesson | None:
    context = Context(framework=case.get("framework", ""))
    phase = phase_tag(case["event"], case["phase"])
    return lesson_of(case["event"], phase, read_return(case["return"]), context, date="2026-11-03")


def test_there_are_enough_failures() -> None:
    assert len(FAILURES) >= 50
    assert len({case["id"] for case in FAILURES}) == len(FAILURES)


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case["id"])
def test_the_lesson_of_a_failure(case: dict[str, Any]) -> None:
    lesson = told(case)
    assert lesson is not None
    summary = lesson.summary.casefold()
    for text in case.get("says", []):
        assert text.casefold() in summary
    if "any" in case:
        assert any(text.casefold() in summary for text in case["any"]), summary
    for text in case.get("never", []):
        assert text.casefold() not in summary
    assert columns(lesson.summary) <= 160
    for pattern in (_TRACE, _TIMESTAMP, _MACHINE_PATH):
        assert not pattern.search(lesson.summary), lesson.summary
    assert parse_line(format_line(lesson)) == lesson


@pytest.mark.parametrize(
    ("complaint", "remedy", "expected"),
    [
        (
            "页面显示 undefined",
            "defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段",
            "defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段",
        ),
        (
            "OrderDao.find builds SQL by hand",
            "Bind the values",
            "Bind the values (OrderDao.find builds SQL by hand)",
        ),
        ("UserMapper 返回 null", "先判空", "先判空（UserMapper 返回 null）"),
        ("JSONB 字段缺少 @TableField 注解", "", "JSONB 字段需要 @TableField 注解"),
        ("OrderService.pay 没有处理超时", "", "OrderService.pay 需要处理超时"),
        ("Missing index on orders.user_id", "", "Add index on orders.user_id"),
        ("CsvReader.close() is never called", "", "CsvReader.close() must be called"),
        ("fetchUser() does not handle HTTP 404", "", "fetchUser() must handle HTTP 404"),
        ("useSocket forgets to unsubscribe", "", "useSocket must unsubscribe"),
        (
            "The the PageHelper helper helper must be called first",
            "",
            "The PageHelper helper must be called first",
        ),
        ("MyBatis-Plus List 查询不支持分页参数", "", "MyBatis-Plus List 查询不支持分页参数"),
        (
            "The retry loop in fetchOrders hammers the API",
            "",
            "The retry loop in fetchOrders hammers the API",
        ),
        ("循环内调用 mapper.selectById", "", "避免在循环内调用 mapper.selectById"),
        ("没有对 userInput 做 XSS 过滤", "", "需要对 userInput 做 XSS 过滤"),
        ("x must be positive in Foo.bar()", "", "x must be positive in Foo.bar()"),
        (
            "Missing input validation",
            "Validated with zod in createUser()",
            "Validate with zod in createUser()",
        ),
        (
            "UserMapper.xml 的 SQL 拼接存在注入风险：${name}",
            "",
            "使用 #{name} 代替 ${name} 绑定参数，避免 SQL 注入",
        ),
        ("v-for 没有绑定 key", "", "v-for 需要绑定 key"),
        (
            "Loop opens a transaction; batch the inserts with saveAll()",
            "",
            "Loop opens a transaction; batch the inserts with saveAll()",
        ),
        (
            r"Traceback (most recent call last):\n  File \"/a/b.py\", line 3\nKeyError: 'URL'\n",
            "",
            "Provide the key URL, or read it with .get()",
        ),
        (
            "FAILED tests/test_api.py::test_login - assert 401 == 200",
            "",
            "Satisfy test_login: expected 200, got 401",
        ),
        (
            '{"errors":[{"resource":"Issue","field":"title","code":"missing_field"}]}',
            "",
            "title: missing field",
        ),
    ],
)
def test_wording(complaint: str, remedy: str, expected: str) -> None:
    assert distill(complaint, remedy) == expected


@pytest.mark.parametrize(
    "empty",
    [
        "",
        "   ",
        "Error",
        "Agent failed",
        "Unknown error: see logs",
        "exit code 1",
        "执行失败",
        "任务执行失败，请查看日志。",
        "\u200b",
        "...",
    ],
)
def test_nothing_is_made_of_nothing(empty: str) -> None:
    assert distill(empty) is None


def test_the_framework_is_named_once() -> None:
    assert (
        distill("row-height must be set", "", "vue-easytable 2.x")
        == "vue-easytable 2.x: row-height must be set"
    )
    assert (
        distill("vue-easytable row-height must be set", "", "vue-easytable")
        == "vue-easytable row-height must be set"
    )
    assert (
        distill("VueEasytable row-height must be set", "", "vue easytable")
        == "VueEasytable row-height must be set"
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/ci/b/1/src/api/a.ts:3", "src/api/a.ts:3"),
        ("/Users/x/shop/node_modules/vue/dist/vue.js", "vue/dist/vue.js"),
        ("/usr/lib/python3/site-packages/pkg/mod.py", "pkg/mod.py"),
        ("C:\\Users\\x\\shop\\src\\a.ts", "src/a.ts"),
        ("file:///home/x/notes.md", "notes.md"),
        ("./src/a.ts:1", "src/a.ts:1"),
        ("src\\a.ts", "src/a.ts"),
        ("/work/project/lib/a.rb", "deep/lib/a.rb"),
    ],
)
def test_paths_lose_the_machine(path: str, expected: str) -> None:
    root = "/elsewhere"
    if expected.startswith("deep"):
        root, path = "/work/project", "/work/project/deep/lib/a.rb"
    assert relative_path(path, root) == expected


@pytest.mark.parametrize(
    "kept",
    [
        "GET /users/42 returned 404",
        "POST /api/v1/orders needs a body",
        "redirect to /dev/null",
        "see https://example.org/home/x/docs.html",
        "use a/b and c/d",
        "the route /tmp-files stays",
        "/project/list renders the table",
        "MCP 2024-11-05 is the protocol version",
        "timeout 5000ms, port 8080, TS2345",
        "github.com/acme/kit@v1.8.0 and react@18.2.0 and @types/node",
        "git@github.com:acme/web.git",
        "you@example.com",
        "my-release-12345678 waits 30s",
    ],
)
def test_names_that_are_no_noise_stay(kept: str) -> None:
    assert scrub(kept) == kept


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
        ("key sk-proj-abcdefghijklmnop1234", "abcdefghijklmnop"),
        ("ghp_abcdefghijklmnopqrst1234", "abcdefghijklmnop"),
        ("postgres://app:s3cretpw@db/x", "s3cretpw"),
        ("password=hunter2000 was refused", "hunter2000"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl", "eyJzdWIi"),
        ("at 2026-11-03T08:00:00.123+08:00 it broke", "08:00"),
        ("Tue Nov  3 08:00:00 2026 it broke".replace("  ", " "), "08:00"),
        ("object Foo@1a2b3c4d leaked", "1a2b3c4d"),
        ("request id: req-12345678 failed", "12345678"),
        ('dup key: { email: "jane@acme.io" }', "jane@acme.io"),
        ("User: arn:aws:iam::123456789012:user/ci", "123456789012"),
        ("pod api-7d9f8b6c5-x2x9z restarts", "x2x9z"),
        ("Process 4242 waits for ShareLock", "4242"),
        ("--- FAIL: TestSum (0.02s)", "0.02"),
        ("image nginx@sha256:0123456789abcdef0123", "0123456789ab"),
    ],
)
def test_noise_and_secrets_go(text: str, gone: str) -> None:
    assert gone not in scrub(text)


_PIECES = st.sampled_from(
    ["Traceback (most recent call last):\n", '  File "/home/a/b.py", line 3, in f\n', "TypeError: x", "\n", "    at a.b(C.java:3)\n",
     "Caused by: java.lang.X: ", '{"error": {"message": "', '"}}', "Fix: ", "建议：", "缺少", "Ref: a", "```", "1. ", "**", "\x1b[31m", "/tmp/x/y.z",
     "2026-01-01T00:00:00Z", " -- ", "[LESSONS]", "Missing ", "，", "。", "E   assert 1 == 2\n", "error TS2339: "]
)  # fmt: skip


@settings(max_examples=300)
@given(
    st.lists(_PIECES | st.text(st.characters(codec=None), max_size=60), max_size=12).map("".join),
    st.text(max_size=60),
    st.text(max_size=30),
)
def test_any_text_gives_one_short_line_or_none(complaint: str, remedy: str, framework: str) -> None:
    summary = distill(complaint, remedy, framework)
    if summary is None:
        return
    assert summary.strip()
    assert columns(summary) <= 160
    lesson = Lesson(date="2026-01-01", tags=("code-review",), summary=summary)
    assert parse_line(format_line(lesson)) == lesson


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ("Fixed the 500 in OrderApi by wrapping save() and adding a retry", "Wrap save() and add a retry"),
        ("Added server.proxy to vite.config.ts", "Add server.proxy to vite.config.ts"),
        ("Auto-fixed: installed libpq-dev and set PGHOST in Dockerfile", "Install libpq-dev and set PGHOST in Dockerfile"),
        ("Type error in Cart.tsx fixed: cast event.target to HTMLInputElement", "Cast event.target to HTMLInputElement"),
        ("The build failed. We re-added core-js to package.json", "Re-add core-js to package.json"),
        ("已修复：在 pom.xml 中升级了 mybatis-plus", "在 pom.xml 中升级 mybatis-plus"),
        ("通过添加 @Lazy 注解解决了循环依赖", "添加 @Lazy 注解"),
    ],
)  # fmt: skip
def test_what_was_done_is_what_to_do(report: str, expected: str) -> None:
    assert distill(report, is_report=True) == expected


def test_what_a_reviewer_says_was_done_is_never_asked_for() -> None:
    remark = "Removed the null check in PriceCalculator.apply(), which crashes for anonymous carts"
    assert distill(remark) == remark


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        ("Set timeout=30 on httpx.Client", "Set timeout=30 on httpx.Client"),
        ("httpx.ConnectTimeout: set timeout=30 on httpx.Client", "ConnectTimeout: set timeout=30 on httpx.Client"),
        ("Use RetryPolicy: 503 answers are temporary", "Use RetryPolicy: 503 answers are temporary"),
        ("Please use TreeMap in OrderIndex", "Use TreeMap in OrderIndex"),
        ("Could we catch requests.HTTPError only?", "Catch requests.HTTPError only"),
        ("How about iterating with .iterator(chunk_size=2000)?", "Iterate with .iterator(chunk_size=2000)"),
        ("You may need to add 'api.local' to ALLOWED_HOSTS", "Add 'api.local' to ALLOWED_HOSTS"),
        ("Why is this so slow? Use select_related('customer')", "Use select_related('customer')"),
        ("麻烦看一下，是不是可以换成 el-table-v2？", "换成 el-table-v2"),
        ("No operator matches the names of pg_type", "No operator matches the names of pg_type"),
        ("You can not use <Form> here", "You can not use <Form> here"),
    ],
)  # fmt: skip
def test_who_gives_an_instruction_keeps_it(complaint: str, expected: str) -> None:
    assert distill(complaint) == expected


@pytest.mark.parametrize(
    ("remark", "expected"),
    [
        ("Should we use Redis here? I doubt it", "Should we use Redis here?"),
        ("Can we remove the lock? No, OrderLock must stay", "No, OrderLock must stay"),
        ("是否可以删除 FooBar？不可以，Baz 依赖它", "不可以，Baz 依赖它"),
        ("能不能不要用 ${}？", "能不能不要用 ${}？"),
        ("不是没有处理 OrderError", "不是没有处理 OrderError"),
        ("OrderCache is not cleared by design", "OrderCache is not cleared by design"),
        ("Foo.bar must not be used instead of Foo.baz", "Foo.bar must not be used instead of Foo.baz"),
        ("Please, never pass user input to `exec()`", "Never pass user input to `exec()`"),
    ],
)
def test_no_meaning_is_turned_round(remark: str, expected: str) -> None:
    assert distill(remark) == expected


@pytest.mark.parametrize(
    ("complaint", "never"),
    [
        ("getUser retries on 503", "upstream"),
        ("the list shows 401 rows in OrderTable", "credentials"),
        ('failed to compute cache key: "/app.lock": not found', "PATH"),
        ("invalid argument: field mask path is not valid", "Remove or rename"),
        ("Unable to resolve service for the type in Startup.cs", "Install"),
        ("Request method 'PATCH' is new in HttpClient 5", "Call"),
    ],
)
def test_no_rule_takes_a_word_for_a_name(complaint: str, never: str) -> None:
    assert never not in (distill(complaint) or "")


def _ref(complaint: str, **known: Any) -> str | None:
    returned = read_return(
        {"status": "failure", "errors": [complaint], "results": {"artifacts": known.pop("artifacts", [])}}
    )
    lesson = lesson_of(
        "general_agent_failure", "dev-execution", returned, Context(**known), date="2026-11-03"
    )
    assert lesson is not None
    return lesson.ref


def test_the_reference_is_a_source_rather_than_a_product() -> None:
    assert (
        _ref("httpx.Client needs timeout=30", artifacts=["dist/log.txt", "src/http/client.py"])
        == "src/http/client.py"
    )
    told = "src/http/client.py: httpx.Client needs timeout=30"
    assert _ref(told, artifacts=["src/a.py", "src/http/client.py"]) == "src/http/client.py"
    assert (
        _ref(told, code_paths=("src/other/client.py",), artifacts=["src/http/client.py"])
        == "src/http/client.py"
    )
    assert _ref("httpx.Client needs timeout=30", artifacts=["build/out.log"]) == "build/out.log"


def test_the_reference_may_be_told_by_the_failure_alone() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/srv/shop/app/main.py", line 3, in f\n    g()\n'
        "  File \"/srv/shop/.venv/lib/python3.12/site-packages/x/y.py\", line 9, in g\nKeyError: 'URL'"
    )
    assert _ref(trace) == "app/main.py:3"
    assert _ref("src/x.ts(3,24): error TS2322: Type 'a' is not assignable to type 'b'.") == "src/x.ts:3"
    assert _ref("KeyError: 'URL' in /usr/lib/python3/json/decoder.py:12") is None


@pytest.mark.parametrize(
    "text",
    ["/a/b " * 60_000, "\n" * 300_000, " " * 300_000, "Action:\n\n" * 40_000, "hint: x\n" * 40_000, "a@b." * 70_000, "x.py:1:1: a b\n" * 20_000,
     "please " * 40_000, "Fixed x by adding y and added z; " * 9_000, "是不是可以" * 60_000, "fix: " * 60_000, ": (" * 90_000, "E   assert 1 == 2\n" * 15_000],
    ids=range(13),
)  # fmt: skip
def test_any_length_costs_little(text: str) -> None:
    began = time.process_time()
    distill(text, text, text)
    distill(text, is_report=True)
    returned = read_return(
        {"status": "failure", "summary": text, "errors": [text] * 60, "results": {"issues": [text] * 60}}
    )
    lesson_of(
        "general_agent_failure", "x", returned, Context(framework=text, additional=text), date="2026-11-03"
    )
    assert time.process_time() - began < 8


def test_a_long_text_costs_little() -> None:
    for text in (
        "a" * 20_000,
        "/a" * 10_000,
        "Error: " * 3_000,
        "{" * 20_000,
        "\n".join(["x: y"] * 5_000),
        "缺少" * 5_000,
    ):
        began = time.process_time()
        distill(text, text, text[:200])
        assert time.process_time() - began < 1.0
