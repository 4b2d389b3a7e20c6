import json
import sys
import time
from pathlib import Path

import pytest

from kr.errors import SourceFailure
from kr.sources.base import Ask, Source
from kr.sources.local_docs import MAX_PASSAGES, MAX_TEXT, LocalDocs
from kr.values import Answer, Passage, Query

ACTIVE = {"VIRTUAL_ENV": sys.prefix}


def ask(framework: str, question: str) -> Ask:
    query = Query(
        framework=framework, framework_version="unknown", topic=question, tags=("x",), question=question
    )
    return Ask(query=query)


def answer(framework: str, question: str, project: Path, *, timeout: float = 20.0) -> Answer:
    source: Source = LocalDocs((project,), ACTIVE)
    return source.ask(ask(framework, question), timeout=timeout)


def test_it_costs_nothing_and_is_no_mcp_source(tmp_path: Path) -> None:
    source = LocalDocs((tmp_path,), {})
    assert (source.name, source.is_charged) == ("local_docs", False)


REAL = (
    ("click", "How do I make an option repeatable?", "`multiple`: if this is set to `True`", 1),
    ("sqlalchemy", "What is pool_pre_ping?", "- `pool_pre_ping`: boolean, if True", 1),
    ("httpx", "How do I set timeouts?", "No timeout on acquiring connection", 1),
    ("pyyaml", "Why should I use safe_load?", "safe for untrusted input", 1),
    ("pydantic", "How do I use a model_validator?", "@model_validator(mode='after')", 1),
    ("sqlalchemy", "How to define a many-to-many relationship?", "sqlalchemy.orm.relationship", 1),
    ("rapidfuzz", "Find the best match in a list of choices", "extractOne", 3),
    ("hypothesis", "How do I write composite strategies?", "@st.composite", 1),
)
"""Framework, question, what an answer holds, and among how many passages. All are packages that kr's own tests need."""


@pytest.mark.effort(len(REAL), least=3)
def test_real_packages(tmp_path: Path, effort: int) -> None:
    for framework, question, expected, within in REAL[:effort]:
        found = answer(framework, question, tmp_path)
        shown = "\n".join(f"{p.title}\n{p.text}" for p in found.passages[:within])
        assert expected in shown, question
        assert (found.source, bool(found.version)) == ("local_docs", True)
        assert found.url is None or found.url.startswith("https://")
        assert 0 < len(found.passages) <= MAX_PASSAGES
        assert sum(len(p.text.encode()) for p in found.passages) <= MAX_TEXT


def test_where_a_passage_stands_is_told_without_a_place_of_the_machine(tmp_path: Path) -> None:
    from importlib.metadata import version

    found = answer("click", "How do I make an option repeatable?", tmp_path)
    assert found.version == version("click")
    assert found.repository == "pallets/click"
    first = next(passage for passage in found.passages if passage.title == "click.Option")
    assert first.url == f"click {found.version}, click/core.py"
    everything = repr(found)
    for place in (sys.prefix, str(tmp_path), str(Path.home())):
        assert place not in everything


def node(root: Path, name: str, files: dict[str, str], **fields: object) -> None:
    package = root / "node_modules" / name
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": "2.27.1", **fields}))
    for file, text in files.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(text)


README = """# vue-easytable

Intro.

## Virtual scroll

Set `virtualScrollOption` to show large tables:

```js
virtualScrollOption: { enable: true }
```

## Licence

MIT
"""


def test_a_node_package(tmp_path: Path) -> None:
    node(
        tmp_path, "vue-easytable", {"README.md": README, "docs/filter.md": "# Filter\n\nUse `filterCustom`."}
    )
    found = answer("vue-easytable", "How do I enable virtual scrolling?", tmp_path)
    assert found.version == "2.27.1"
    assert found.url is None
    assert [p.title for p in found.passages] == ["vue-easytable > Virtual scroll"]
    assert "```js\nvirtualScrollOption: { enable: true }\n```" in found.passages[0].text
    assert found.passages[0].url == "vue-easytable 2.27.1, README.md"
    docs = answer("vue-easytable", "filterCustom", tmp_path).passages
    # What answers has no example, so that the package's own comes along.
    assert [p.url for p in docs] == [
        "vue-easytable 2.27.1, docs/filter.md",
        "vue-easytable 2.27.1, README.md",
    ]


def test_chinese_questions(tmp_path: Path) -> None:
    node(
        tmp_path,
        "table",
        {"README.md": "# 表格\n\n## 虚拟滚动\n\n大数据量时开启虚拟滚动。\n\n## 安装\n\nnpm install\n"},
    )
    found = answer("table", "如何配置虚拟滚动", tmp_path)
    assert found.passages[0].title == "表格 > 虚拟滚动"


def test_restructured_text_files_are_converted(tmp_path: Path) -> None:
    node(
        tmp_path,
        "thing",
        {
            "docs/guide.rst": "Guide\n=====\n\nUse :func:`frobnicate`.\n\n.. code-block:: js\n\n   frobnicate()\n"
        },
    )
    passage = answer("thing", "how to frobnicate", tmp_path).passages[0]
    assert passage.text == "Use `frobnicate`.\n\n```js\nfrobnicate()\n```"


@pytest.mark.parametrize(
    ("framework", "question", "reason"),
    [
        ("no-such-package", "anything", "no package of this name is installed"),
        ("../../etc", "passwd", "no package of this name is installed"),
        ("click", "kubernetes ingress", "ships no documentation about the question"),
    ],
)
def test_nothing_to_say_is_no_fault(tmp_path: Path, framework: str, question: str, reason: str) -> None:
    with pytest.raises(SourceFailure, match=reason) as caught:
        answer(framework, question, tmp_path)
    assert not caught.value.is_fault
    assert str(tmp_path) not in caught.value.reason


def test_much_text_is_bounded(tmp_path: Path) -> None:
    files = {f"docs/page{i}.md": f"# Page {i}\n\n" + "The widget spins. " * 2_000 for i in range(100)}
    node(tmp_path, "huge", files)
    started = time.monotonic()
    found = answer("huge", "How does the widget spin?", tmp_path)
    assert time.monotonic() - started < 60
    assert sum(len(p.text.encode()) for p in found.passages) <= MAX_TEXT


def test_too_little_time_is_told(tmp_path: Path) -> None:
    node(
        tmp_path, "huge", {f"docs/page{i}.md": "# Page\n\n" + "The widget spins. " * 5_000 for i in range(40)}
    )
    started = time.monotonic()
    with pytest.raises(SourceFailure):
        answer("huge", "How does the widget spin?", tmp_path, timeout=0.001)
    assert time.monotonic() - started < 20


def python(root: Path, name: str, files: dict[str, str]) -> None:
    site = root / ".venv" / "lib" / "python3.11" / "site-packages"
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\nNothing.")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files if file.startswith(name)))


def passages(root: Path, framework: str, question: str) -> tuple[Passage, ...]:
    return LocalDocs((root,), {}).ask(ask(framework, question), timeout=20).passages


def test_re_exports_are_followed_into_the_package_that_documents_them(tmp_path: Path) -> None:
    node(tmp_path, "vue", {"dist/vue.d.ts": 'export * from "@vue/core";\n'}, types="dist/vue.d.ts")
    declared = """
export interface WatchOptions { deep?: boolean; immediate?: boolean; }
/** Runs a callback when a source changes. */
export declare function watch(source: object, callback: () => void, options?: WatchOptions): void;
"""
    node(tmp_path, "@vue/core", {"index.d.ts": declared})
    first = passages(tmp_path, "vue", "How do I watch a source?")[0]
    assert first.title == "watch"
    assert first.url == "@vue/core 2.27.1, index.d.ts"
    assert first.text == (
        "```typescript\nexport declare function watch(source: object, callback: () => void, options?: WatchOptions): void\n\n"
        "export interface WatchOptions {\n  deep?: boolean;\n  immediate?: boolean;\n}\n```\n\n"
        "Runs a callback when a source changes."
    )


def test_a_name_comes_with_what_stands_beside_it_in_its_class_and_module(tmp_path: Path) -> None:
    source = """
class ScaleError(Exception):
    'Raised when a needle cannot scale.'

class Needle:
    'Sews what is given to it.'
    def thread(self, yarn, *, twice=False):
        'Put yarn through the eye of the :class:`Needle`. It is pulled tight.'
    def sew(self, cloth):
        'Sew along the edge of a cloth with needle and yarn.'
    def rest(self):
        'Lay it down.'

def wind(yarn): 'Wind yarn on a spool.'
def cut(yarn): 'Cut.'
def knot(yarn): 'Tie the end.'
"""
    python(tmp_path, "sewing", {"sewing/__init__.py": source})
    found = {p.title: p.text for p in passages(tmp_path, "sewing", "How do I sew the edge of a cloth?")}
    beside = (
        "Other members of `Needle`:\n\n- `thread(yarn, *, twice=False)`: Put yarn through the eye of the `Needle`.\n"
        "- `rest()`: Lay it down."
    )
    first = next(iter(found))
    assert first == "sewing.Needle.sew"
    assert beside not in found[first]  # two are no list
    more = source.replace("def rest(self)", "def oil(self): 'Drip.'\n    def rest(self)")
    (tmp_path / ".venv/lib/python3.11/site-packages/sewing/__init__.py").write_text(more)
    found = {p.title: p.text for p in passages(tmp_path, "sewing", "How do I sew the edge of a cloth?")}
    assert found[first].endswith(beside.replace("- `rest", "- `oil()`: Drip.\n- `rest"))
    found = {p.title: p.text for p in passages(tmp_path, "sewing", "How do I wind yarn on a spool?")}
    assert next(iter(found)) == "sewing.wind"
    assert "Other members of `sewing`:" in found["sewing.wind"]
    assert "- `knot(yarn)`: Tie the end." in found["sewing.wind"]
    assert "ScaleError" not in found["sewing.wind"]
    assert sum("embers of `Needle`" in text for text in found.values()) <= 1


def test_the_functions_of_a_node_package_come_together(tmp_path: Path) -> None:
    declared = """
/** What `sign` takes. */
export interface SignOptions { alg?: string }
/** Signs a token with a key. */
export declare function sign(token: string, key: Key): string;
/** Verifies a token with a key. And more. */
export declare function verify(token: string, key: Key): boolean;
/** Makes a key. */
export declare function makeKey(bits: number): Key;
/** Reads a key of text. */
export declare function readKey(text: string): Key;
"""
    node(tmp_path, "tokens", {"index.d.ts": declared})
    first = passages(tmp_path, "tokens", "How do I sign a token?")[0]
    assert first.title == "sign"
    assert first.text.endswith(
        "Other members of `tokens`:\n\n- `verify(token: string, key: Key)`: Verifies a token with a key.\n"
        "- `makeKey(bits: number)`: Makes a key.\n- `readKey(text: string)`: Reads a key of text."
    )


def test_types_that_are_a_package_of_their_own(tmp_path: Path) -> None:
    node(tmp_path, "react", {"index.js": "/** Memoizes inside. */\nfunction memo() {}\n"})
    declared = """
export = React;
declare namespace React {
  /** Computes a memoized value, again when `deps` change. */
  function useMemo<T>(factory: () => T, deps: unknown[]): T;
}
"""
    node(tmp_path, "@types/react", {"index.d.ts": declared, "README.md": "# memoized value of deps"})
    found = passages(tmp_path, "react", "How do I memoize a value?")
    assert [p.url for p in found] == ["@types/react 2.27.1, index.d.ts"]


def test_what_a_script_hands_on_is_told_by_the_package_it_comes_from(tmp_path: Path) -> None:
    node(tmp_path, "express", {"index.js": "exports.json = require('body-parser')\n"})
    readme = "# body-parser\n\n## Limit\n\nThe `limit` of a JSON body is `100kb`.\n"
    node(tmp_path, "body-parser", {"README.md": readme})
    (found,) = passages(tmp_path, "express", "How do I limit a JSON body?")
    assert found.url == "body-parser 2.27.1, README.md"


def test_a_source_over_half_a_megabyte_is_read_under_its_public_name(tmp_path: Path) -> None:
    filler = "".join(f"def helper_{n}():\n    'Helps. {'x' * 200}'\n" for n in range(3_000))
    frame = f"class Frame(Base):\n    def merge(self, right, how='left'):\n        'Merge rows with a join.'\n{filler}"
    assert len(frame) > 600_000
    python(
        tmp_path,
        "frames",
        {
            "frames/__init__.py": "from frames._core.frame import Frame\n",
            "frames/_core/frame.py": frame,
            "frames/_core/base.py": "class Base:\n    def join(self, other):\n        'Join the columns of another.'\n",
        },
    )
    found = passages(tmp_path, "frames", "How do I merge rows with a join of columns?")
    assert {p.title for p in found[:2]} == {"frames.Frame.merge", "frames.Frame.join"}
    assert all("_core" not in f"{p.title}{p.text}" for p in found)


def test_names_of_another_distribution_that_a_package_hands_on(tmp_path: Path) -> None:
    requests = "class Request:\n    'An incoming request with cookies.'\n\n\ndef cookies_apart():\n    'Cookies of a request.'\n"
    python(
        tmp_path,
        "fast",
        {"fast/__init__.py": "from star.requests import Request as Request\n", "star/requests.py": requests},
    )
    found = passages(tmp_path, "fast", "How do I read cookies of a request?")
    assert [p.title for p in found] == ["fast.Request"]


def test_the_far_side_of_a_connection_comes_later(tmp_path: Path) -> None:
    channel = (
        "class ChannelServer:\n    def put(self, local):\n        'Upload a local parcel as the server.'\n"
        "class Channel:\n    'Moves things.'\n    def put(self, local):\n        'Upload a local parcel to the other end.'\n"
    )
    files = {"wire/__init__.py": "from .channel import Channel, ChannelServer\n", "wire/channel.py": channel}
    python(tmp_path, "wire", files)
    first, *others = passages(tmp_path, "wire", "How do I upload a local parcel over a channel?")
    assert first.title == "wire.Channel.put"
    assert "wire.ChannelServer.put" in {passage.title for passage in others}


@pytest.mark.parametrize("symbol", ["`Optional`", "checks.Optional", "forms.checks.Optional()"])
def test_the_symbol_that_a_question_names_leads(tmp_path: Path, symbol: str) -> None:
    checks = (
        "class Email:\n    'Validates an email address of an empty or full field, after Length has run.'\n"
        "class Length:\n    'Validates the length of a field that is empty or not.'\n"
        "class Optional:\n    'Allows empty input and stops the chain of validation, so that nothing else is looked at.'\n"
    )
    python(tmp_path, "forms", {"forms/__init__.py": "", "forms/checks.py": checks})
    question = f"{symbol}: an empty field should not run into Length or Email afterwards"
    assert passages(tmp_path, "forms", question)[0].title == "forms.checks.Optional"
    assert (
        passages(tmp_path, "forms", question.replace(symbol, "An option"))[0].title != "forms.checks.Optional"
    )


def test_a_name_that_has_the_words_of_the_question_leads_without_a_docstring(tmp_path: Path) -> None:
    told = '    """The response class: one that may stream. The response of a stream is kept."""\n'
    own = f"def get(response: type) -> None:\n{told}"
    made = "    def __init__(self, content: bytes, status: int = 200) -> None:\n        ...\n"
    replies = f"class StreamingResponse:\n{made}"
    handed_on = "from star.replies import StreamingResponse as StreamingResponse  # noqa\n"
    python(tmp_path, "star", {"star/__init__.py": "", "star/replies.py": replies})
    python(
        tmp_path,
        "web",
        {"web/__init__.py": "from .app import get\n", "web/app.py": own, "web/replies.py": handed_on},
    )
    found = passages(tmp_path, "web", "How do I stream a response?")
    assert found[0].title == "web.replies.StreamingResponse"
    assert "content: bytes" in found[0].text


def test_templates_and_help_strings_count(tmp_path: Path) -> None:
    python(
        tmp_path,
        "tool",
        {
            "tool/cli.py": "@click.option('--rotate', help='Rotate the journal daily.')\ndef main(rotate): ...\n",
            "tool/templates/tool.ini": "# where the journal stands\njournal = here\n",
        },
    )
    first = passages(tmp_path, "tool", "How do I rotate the journal?")[0]
    assert (first.title, first.text) == ("tool.cli.main.options", "- `--rotate`: Rotate the journal daily.")
    found = {p.title: p.text for p in passages(tmp_path, "tool", "Where does the journal stand?")}
    assert found["template tool.ini"] == "```ini\n# where the journal stands\njournal = here\n```"


def test_packages_are_sought_here_first_then_where_the_configuration_lies(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place, text in ((here, "Here"), (there, "There")):
        node(place, "thing", {"README.md": f"# Thing\n\n{text} the widget spins."})
    node(there, "other", {"README.md": "# Other\n\nThe widget spins."})
    inside = here / "src" / "deep"
    inside.mkdir(parents=True)
    source = LocalDocs((inside, there), {})
    assert "Here" in source.ask(ask("thing", "spin the widget"), timeout=20).passages[0].text
    assert source.ask(ask("other", "spin the widget"), timeout=20).passages
    with pytest.raises(SourceFailure) as caught:
        source.ask(ask("absent", "spin the widget"), timeout=20)
    assert caught.value.reason == (
        "no package of this name is installed; looked in node_modules of the working directory, of the configuration's"
        " folder and of the folders above; the python on PATH"
    )


def test_hostile_sources_do_no_harm(tmp_path: Path) -> None:
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    package = site / "evil"
    package.mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("")
    sources = {
        "__init__.py": 'import os\nos._exit(9)\n\ndef widget():\n    """The widget spins."""\n',
        "deep.py": "widget = " + "(" * 3_000 + ")" * 3_000,
        "nul.py": "widget\x00",
        "odd.py": 'def f():\n    """widget \\d"""\n',
        "rst.py": 'def g():\n    """widget\n\n    .. include:: /etc/passwd\n    """\n',
    }
    for name, text in sources.items():
        (package / name).write_text(text)
    info = site / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n\nNothing.")
    (info / "RECORD").write_text("".join(f"evil/{name},,\n" for name in sources))
    source = LocalDocs((tmp_path,), {})
    found = source.ask(ask("evil", "How does the widget spin?"), timeout=20)
    assert found.passages[0].title == "evil.widget"
    assert "root:" not in repr(found)


def test_a_declaration_may_be_named_by_the_source_that_it_was_made_of(tmp_path: Path) -> None:
    files = {
        "index.d.ts": 'export * from "./parse.ts";\n',
        "parse.d.ts": "/** Returns the date parsed from a text. */\nexport declare function parse(text: string): Date;\n",
        "lib/inner.d.ts": "/** Parses a date from a text, inside. */\nexport declare function inner(): void;\n",
    }
    node(tmp_path, "dates", files, types="index.d.ts")
    assert [p.title for p in passages(tmp_path, "dates", "How is a date parsed from a text?")] == ["parse"]


def test_declarations_that_users_import_by_path_are_told_with_it(tmp_path: Path) -> None:
    plugin = "declare module 'times' {\n  interface Times {\n    tz(timezone?: string): Times;\n  }\n}\n"
    files = {
        "index.d.ts": "export declare function now(): Times;\nexport interface Times {}\n",
        "plugin/zones.d.ts": plugin,
        "esm/zones.d.ts": plugin,
    }
    node(tmp_path / "open", "times", files, types="index.d.ts")
    node(tmp_path / "shut", "times", files, types="index.d.ts", exports={".": "./index.js"})
    (found,) = [p for p in passages(tmp_path / "open", "times", "tz of a timezone") if "tz(" in p.text]
    assert "Comes with `times/plugin/zones`." in found.text
    assert found.url == "times 2.27.1, plugin/zones.d.ts"
    with pytest.raises(SourceFailure):
        passages(tmp_path / "shut", "times", "tz of a timezone")


def test_what_a_package_keeps_of_an_older_major_version_beside_its_own_is_not_told(tmp_path: Path) -> None:
    files = {
        "index.d.ts": 'export * from "./v2/parse";\n',
        "v1/parse.d.ts": "/** Parses a date from a text, as one did. */\nexport declare function parseOld(text: string): Date;\n",
        "v2/parse.d.ts": "/** Parses a date from a text. */\nexport declare function parse(text: string): Date;\n",
        "v3/parse.d.ts": "/** Parses a date from a text, as one will. */\nexport declare function parseNew(text: string): Date;\n",
    }
    paths = {
        ".": {"types": "./index.d.ts"},
        "./v1": {"types": "./v1/parse.d.ts"},
        "./v3": {"types": "./v3/parse.d.ts"},
    }
    node(tmp_path, "dates", files, types="index.d.ts", exports=paths)
    assert [p.title for p in passages(tmp_path, "dates", "How is a date parsed from a text?")] == ["parse"]


def test_kin_that_a_package_gives_as_members_belongs_to_it(tmp_path: Path) -> None:
    node(
        tmp_path,
        "db",
        {"lib/index.js": "this.Pool = factory(require('db-pool'))\nthis.log = require('debug')\n"},
        main="lib/index.js",
    )
    node(tmp_path, "db-pool", {"README.md": "# db-pool\n\nTake a client of the pool for a transaction."})
    node(tmp_path, "debug", {"README.md": "# debug\n\nLog a transaction of the pool."})
    assert [p.title for p in passages(tmp_path, "db", "transaction on a pool")] == ["db-pool"]


def test_the_source_of_a_compiled_module_is_read(tmp_path: Path) -> None:
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    sources = {
        "__init__.py": "",
        "tree.pyx": 'include "walk.pxi"\n\ncdef class _Node:\n    """A node."""\n    def clear(self, bint keep=False):\n'
        '        """Empties the node."""\n',
        "walk.pxi": 'cdef class iterwalk:\n    """Walks over the nodes of a tree."""\n',
        "template/__init__.py": "",
        "template/engine.py": "nodes = 'nodes of a tree'\n",
    }
    for name, text in sources.items():
        (site / "trees" / name).parent.mkdir(parents=True, exist_ok=True)
        (site / "trees" / name).write_text(text)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("")
    info = site / "trees-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trees\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"trees/{name},,\n" for name in sources))
    found = LocalDocs((tmp_path,), {}).ask(ask("trees", "walk the nodes, empties"), timeout=20).passages
    assert {p.title: p.url for p in found} == {
        "trees.tree.iterwalk": "trees 1.0, trees/walk.pxi",
        "_Node": "trees 1.0, trees/tree.pyx",
        "_Node.clear": "trees 1.0, trees/tree.pyx",
    }


def test_single_letters_are_no_question(tmp_path: Path) -> None:
    node(tmp_path, "shapes", {"README.md": "# Shapes\n\nA point has x, y and z."})
    with pytest.raises(SourceFailure, match="no documentation about the question"):
        passages(tmp_path, "shapes", "x y z")
