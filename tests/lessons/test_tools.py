"""What a failed tool tells, and what about."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.distill import tool_of
from kr.lessons.hooks import taught

TIMEOUT = "Command timed out after 2m 0.0s"


@pytest.mark.parametrize(
    ("command", "about"),
    [
        ("npm run build", "npm"),
        ("cd web && CI=1 npm test -- --watch=false", "npm"),
        ("sudo -n true; ./scripts/deploy.sh --now", "deploy.sh"),
        ("timeout 30 .venv/bin/pytest -q tests", "pytest"),
        ("python -m pytest -q", "python"),
        ("python3 - <<'EOF'\nprint(1)\nEOF", "python3"),
        ("node tools/gen.mjs", "node"),
        ("docker compose up -d db", "docker"),
        ("git push origin main", "git"),
        ("mysql -uroot -pS3cret app", "mysql"),
        ("vault login hvs.CAESIJ0TOKEN", "vault"),
        ("curl https://u:p@host/x?token=1", "curl"),
        ("export TOKEN=abc; make", "make"),
    ],
)
def test_a_command_names_what_its_error_does_not(command: str, about: str) -> None:
    assert taught("Bash", {"command": command}, TIMEOUT) == (TIMEOUT, about)


@pytest.mark.parametrize(
    ("command", "tag"),
    [
        ("python3 -m pytest -q", "pytest"),
        ("cd web && npm test", "npm"),
        ("cargo build", "rust"),
        ("npx --yes rollup@4 -c", "rollup"),
        ("cd a && PGPASSWORD=x psql -c y | tee log", "postgres"),
        ("poetry run mypy x", "mypy"),
        ("bundle exec rspec", "rspec"),
        ("/usr/bin/env python3.13 a.py", "python"),
        ("pnpm build", ""),
        ("cat a.txt", ""),
        ("./deploy.sh", ""),
        ("", ""),
    ],
)
def test_a_command_tells_the_tag_that_its_output_does_not(command: str, tag: str) -> None:
    assert tool_of(command) == tag


@pytest.mark.parametrize(
    ("tool", "given", "about"),
    [
        ("WriteReport", {"file_path": "/srv/app/out.csv"}, "out.csv"),
        ("mcp__github__create_issue", {"title": "x"}, "github"),
    ],
)
def test_other_tools_are_named_too(tool: str, given: object, about: str) -> None:
    assert taught(tool, given, "Permission denied") == ("Permission denied", about)


@pytest.mark.parametrize(
    "given", [None, {}, [], "npm", {"command": 3}, {"command": "cd /x && export A=b"}, {"command": '"$X" y'}]
)
@pytest.mark.parametrize(
    "error",
    [TIMEOUT, "Exit code 126\nPermission denied", "Exit code 137\nKilled by signal", "Connection refused"],
)
def test_what_names_nothing_is_no_lesson(given: object, error: str) -> None:
    assert taught("Bash", given, error) is None


@pytest.mark.parametrize(
    "error",
    [
        "cat: /home/u/x.txt: No such file or directory",
        "Exit code 1\nls: cannot access 'src/x': No such file or directory\nls: b: No such file or directory",
        "Exit code 1\nbash: line 3: cd: web: No such file or directory",
        "(eval):cd:1: no such file or directory: web",
        "grep: src: Is a directory",
        "fatal: 'refs/heads/feature/none' - not a valid ref",
        "fatal: Needed a single revision",
        "Exit code 1\nTraceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nNameError: name 'foo' is not defined",
        '  File "<stdin>", line 2\nSyntaxError: invalid syntax',
        "Exit code 1",
        "",
        "usage: app [-h]\napp: error: unrecognized arguments: --fst",
        "Exit code 1\nno such option: --fst\nUse 'coverage help' for help.",
        # stopped by hand, and a test that is written before what it tests
        "Serving HTTP on 0.0.0.0 port 8765 (http://0.0.0.0:8765/) ...\n\nKeyboard interrupt received, exiting.",
        "not ok 1 - total of two items\n  ---\n  location: '/home/dev/shop/cart.test.mjs:5:1'\n  error: 'not implemented'\n  code: 'ERR_TEST_FAILURE'",
        # a linter that only warns, and a compiler's word that is none
        "/home/dev/shop/src/a.js\n  1:1  warning  Unexpected console statement  no-console\n\n✖ 1 problem (0 errors, 1 warning)",
        "a.ts(1,1): error TS1435: Unknown keyword or identifier. Did you mean 'const'?",
        # how a program of GNU tells its usage, and what Node says of code that still works
        "tar: You must specify one of the '-Acdtrux', '--delete' or '--test-label' options\nTry 'tar --help' or 'tar --usage' for more information.",
        "(node:6) [DEP0005] DeprecationWarning: Buffer() is deprecated due to security and usability issues. Please use Buffer.alloc().\n(Use `node --trace-deprecation ...` to show where the warning was created)\nexit 0",
        # a mirror of packages that was away, wherever it stands
        "npm ERR! code ECONNRESET\nnpm ERR! errno ECONNRESET\nnpm ERR! network request to http://127.0.0.1:8199/dayjs failed, reason: read ECONNRESET\nnpm ERR! network This is a problem related to network connectivity.",
    ],
)
def test_an_agents_slip_is_no_lesson(error: str) -> None:
    assert taught("Bash", {"command": "make all"}, error) is None


@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named 'orjson'",
        "zsh: command not found: ripgrep",
        "File \"<string>\", line 1, in <module>\nAttributeError: module 'click' has no attribute 'Opt'",
        "需要安装 libpq",
        # a network that is asked for what should have been there
        "Error: request to https://engines.example.invalid/x/libquery_engine.so.node.gz failed, reason: getaddrinfo EAI_AGAIN engines.example.invalid",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution\njsonschema.exceptions._WrappedReferencingError: Unresolvable: customer.json",
        "(node:6) [DEP0005] DeprecationWarning: Buffer() is deprecated\nTypeError: Buffer is not a constructor",
        "invalid reference format: repository name (Web) must be lowercase\n\nUsage:  docker build [OPTIONS] PATH",
        "unknown shorthand flag: 'd' in -d\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]\n\nRun 'docker --help' for more information",
        # a grammar's complaint about a file of the project, in a language that agents seldom write
        "song.gly:4:7: error: syntax error, unexpected '}'",
    ],
)
def test_what_an_error_names_needs_no_command(error: str) -> None:
    assert taught("Bash", {"command": "make"}, error) == (error, "")


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        ({"description": "Run the new test (should fail)"}, False),
        ({"description": "Verify the test fails before the code is there"}, False),
        ({"command": "pytest -q test_cart.py  # red step"}, False),
        ({"description": "Check why the tests fail"}, True),
        ({"description": "Run tests to see which fail"}, True),
    ],
)
def test_a_call_that_is_meant_to_fail_is_no_lesson(given: dict[str, str], is_kept: bool) -> None:
    error = "E       AssertionError: assert total([]) == 0"
    assert (taught("Bash", given, error) is not None) is is_kept


def test_an_error_behind_a_clean_check_is_kept() -> None:
    told = taught("Bash", {}, "All checks passed!\nTraceback (most recent call last):\nKeyError: 'region'")
    assert told is not None
    assert taught("Bash", {}, "a.py:3: DeprecationWarning: old\n1 passed, 1 warning in 0.40s") is None


def test_what_stands_beside_a_slip_is_kept() -> None:
    told = taught(
        "Bash", {}, "cat: a.txt: No such file or directory\nModuleNotFoundError: No module named 'orjson'"
    )
    assert told is not None
    assert told[0].strip() == "ModuleNotFoundError: No module named 'orjson'"


@pytest.mark.parametrize(
    "part", ["a", "cat: ", "cat", "1 ", "exit code ", "\n", ": no such file", "status status:"]
)
def test_a_long_error_costs_little(part: str) -> None:
    began = time.process_time()
    taught("Bash", {"command": part * 1_000_000}, part * 1_000_000)
    assert time.process_time() - began < 3


@given(st.text(), st.text(), st.text())
def test_anything_is_read(tool: str, command: str, error: str) -> None:
    taught(tool, {"command": command, "file_path": command}, error)
