import pytest
from hypothesis import given
from hypothesis import strategies as st
from kr.reports.choosing import choose
from kr.reports.passages import read_answer
from kr.reports.summary import MOST_LINES, Summary, caveats, summarize
from kr.reports.terms import question_terms

from kr.values import Answer, Passage


def _summarize(question: str, *texts: str, source: str = "context7") -> Summary:
    answer = Answer(source=source, passages=tuple(Passage(text=text) for text in texts))
    terms = question_terms("click", question)
    best = choose(read_answer(answer).units, terms).taken[0]
    return summarize([(best.unit, best.unit.blocks)], terms)[0]


def _code(question: str, text: str) -> str | None:
    code = _summarize(question, text).code
    return code[-1].text if code else None


def test_the_summary_is_the_best_passages_own_answer() -> None:
    found = _summarize(
        "How do I make an option repeatable?",
        "# Options\n\nAn option may be a flag. Every option has a name.",
        "# Repeatable options\n\nTo make an option repeatable, pass `multiple=True`. Its value is a tuple.\n\n"
        '```python\n@click.command()\n@click.option("--name", multiple=True)\ndef run(name):\n    print(name)\n```\n',
    )
    assert found.unit.heading == "Repeatable options"
    assert found.sentences[0] == "To make an option repeatable, pass `multiple=True`."
    assert found.code[0].text.startswith("@click.command()\n@click.option(")
    assert found.code[0].language == "python"


@pytest.mark.parametrize(
    ("example", "told"),
    [
        ("pool = Pool(\n    size=5,\n)", "pool = Pool(size=5)"),
        ("pool({\n  // five\n  size: 5,\n  wait() { go(); },\n});", "pool({ size: 5, wait() { go(); }, });"),
        (
            "pool({\n  size() {\n    a()\n    b()\n  },\n})",
            "pool({ size() {…}, })",
        ),  # a line's end ends the statement
        ("pool(size=5,  # five\n  x=1)", "pool(size=5,  # five\n  x=1)"),
        (
            "await pool(url, {\n  size: function ({ now }) {\n    /*{\n      now: 1\n    }*/\n  },\n\n  wait: 0, // not at all\n  more: 1\n});",
            "await pool(url, { size: function ({ now }) { }, wait: 0, more: 1 });",
        ),
    ],
)
def test_a_bracketed_statement_stands_on_one_line(example: str, told: str | None) -> None:
    text = f"# Pool\n\nThe pool has a `size`.\n\n```py\n{example}\n```\n"
    assert _code("How do I set the size of the pool?", text) == told


@pytest.mark.parametrize(
    ("example", "told"),
    [
        ("pool.extra(\n    size=(\n        five,\n    ),\n)", "pool.extra(size=(five,))"),
        ("pool.extra(\n    size=[\n        1,\n        2,\n    ],\n)", "pool.extra(size=[1, 2])"),
        ("gboolean\npool_size (Pool *pool);", "gboolean\npool_size (Pool *pool);"),
        (
            "class Pools(Base):\n    @sized([\n        (1, 2),\n    ])\n    def size_of(self, pool):\n        pass\n\n    x = 1\n    y = 2\n",
            None,  # it would be told without what decorates it
        ),
        ("if (pool.size == 5)\n{\n    grow();\n}", "if (pool.size == 5)\n{\n    grow();\n}"),
        ("if (pool.size > 5) {\n  // Too many.\n}", "if (pool.size > 5) {\n  // Too many.\n}"),
        ("if (pool.size > 5) {\n  // Too many.\n} else if (pool) {\n  // Some.\n}", None),
    ],
)
def test_code_that_is_brought_to_a_line_says_what_it_said(example: str, told: str | None) -> None:
    """Of Django's, GLib's, GLFW's and multer's pages; the last is five lines, and nothing without its comments."""
    text = f"# Pool\n\nThe pool has a `size`.\n\n```\n{example}\n```\n"
    assert _code("How do I set the size of the pool?", text) == told


def test_a_long_statement_stands_elided_among_its_neighbours_and_keeps_what_is_asked() -> None:
    # Without the line after a comment of one mark alone it would say the opposite.
    fetch = (
        f'fetcher\n  .load("{"x" * 60}", {{\n    stop: stopper.mark,\n    more: ["{"y" * 90}"],\n  }})\n  .then((found) => {{\n    //\n    // told\n'
        "    show(found);\n  });"
    )
    text = f"# Stopper\n\nA request is stopped by a `Stopper`.\n\n```js\nconst stopper = new Stopper();\n\n{fetch}\n```\n"
    assert _code("How do I stop a running request?", text) == (
        f'const stopper = new Stopper();\nfetcher.load("{"x" * 60}", {{ stop: stopper.mark, more: […], }}).then((found) => {{ show(found); }});'
    )


@pytest.mark.parametrize(
    "further", ["See the full documentation of it.", "For more on pools, see the guide."]
)
def test_a_sentence_that_sends_elsewhere_is_not_told(further: str) -> None:
    found = _summarize("How large is a pool?", f"# Pool\n\nA pool has a size of its own. {further}")
    assert found.sentences == ("A pool has a size of its own.",)


def test_a_call_is_told_with_the_options_that_are_asked_for() -> None:
    options = "interface WatchOptions {\n  deep?: boolean;\n  once?: boolean;\n}"
    called = "declare function watch(source: Source, options?: WatchOptions): Handle"
    text = f"# `watch`\n\n```typescript\n{called}\n\n{options}\n```\n\nWatches a source."
    found = _summarize("How do I watch a deep object?", text, source="local_docs")
    assert [code.text for code in found.code] == [
        called,
        "interface WatchOptions { deep?: boolean; once?: boolean; }",
    ]


def test_of_a_long_declaration_the_type_parameters_go_and_of_its_overloads_one_is_told() -> None:
    parameters = ", ".join(f"T{n} extends Thing<{n}> = Thing<{n}>" for n in range(8))
    text = f"# `watch`\n\n```typescript\ndeclare function watch<{parameters}>(source: T1): Handle\n```\n\nWatches a source."
    assert _code("How do I watch a source?", text) == "declare function watch(source: T1): Handle"
    method = "  watch<A>(\n    source: A,\n    more: string[]\n  ): Handle;\n"
    text = (
        f"# `Watcher.watch`\n\n```typescript\ninterface Watcher {{\n{6 * method}}}\n```\n\nWatches a source."
    )
    assert _code("How do I watch a source?", text) == (
        "interface Watcher { watch<A>( source: A, more: string[] ): Handle }"
    )


def test_the_statement_of_a_long_example_closes_its_brackets() -> None:
    lines = [
        "from pool import Pool",
        "",
        "# the size of the pool",
        "x = 1",
        "pool = make(",
        "  size=5)",
        "y = 2",
    ]
    text = "# Pool\n\nThe pool has a `size`.\n\n```py\n" + "\n".join(lines) + "\n```\n"
    assert _code("How do I set the size of the pool?", text) == "pool = make(size=5)"


def test_a_function_is_not_told_without_its_body() -> None:
    body = "\n".join(f"  step({n})\n  // The {n}th\n  next(file, {n})" for n in range(9))
    text = f"# Filter\n\nA `filter` skips files.\n\n```javascript\nfunction filter (req, file) {{\n{body}\n}}\n```"
    assert "{…}" not in (_code("How do I filter a file?", text) or "")


def test_an_import_a_comment_or_another_things_code_is_no_answer() -> None:
    text = "# Pool\n\nThe pool has a size.\n\n```py\nfrom pool import Pool\n# size\nx = 1\ny = 2\n```\n"
    assert _code("How do I set the size of the pool?", text) is None


def test_a_sentence_that_points_back_brings_what_it_points_at() -> None:
    text = "The cache is kept in memory. It evicts the oldest blobs of each tenant. Blobs are files."
    assert _summarize("Which blobs of a tenant does it evict?", text).sentences[:2] == (
        "The cache is kept in memory.",
        "It evicts the oldest blobs of each tenant.",
    )


@pytest.mark.parametrize(
    "leaning",
    [
        "In the above example the pool size is five.",
        "As shown above, the pool size is five.",
        "The previous example sets the pool size.",
        "In this example, the pool size is set.",
    ],
)
def test_no_sentence_leans_on_an_example_that_is_left_out(leaning: str) -> None:
    found = _summarize("How is the pool size set?", f"The pool size is an argument. {leaning} Others follow.")
    assert found.sentences[0] == "The pool size is an argument."
    assert leaning not in found.sentences


def test_what_is_deprecated_or_set_aside_is_not_told() -> None:
    text = (
        "# Pages\n\nOffset pagination skips the rows of a page. The `page()` helper with a cursor is deprecated. "
        "Pass `cursor` to read a page of rows after it."
    )
    found = _summarize("How do I read a page of rows with a cursor instead of offset?", text)
    assert found.sentences == ("Pass `cursor` to read a page of rows after it.",)


def test_fragments_links_and_questions_do_not_lead() -> None:
    text = (
        "What is an idle connection?\n\n"
        "- [Ten idle connections that you should close](https://a.example/idle-connections)\n\n"
        "The server closes a connection that is idle for a minute."
    )
    assert _summarize("Why are idle connections closed?", text).sentences[0] == (
        "The server closes a connection that is idle for a minute."
    )


def test_the_same_is_told_once() -> None:
    text = "The pool has a size limit. The pool has a size limit of five."
    assert len(_summarize("How is the pool size limited?", text).sentences) == 1


def test_half_a_code_span_hides_nothing() -> None:
    found = _summarize("alpha", "See `alpha stays here. <img src=x> alpha`. Alpha is <b>bold</b> here.")
    assert all(
        "<img" not in text.replace("`alpha stays here. <img src=x> alpha`", "") for text in found.sentences
    )
    assert not any("<b>" in text for text in found.sentences)


_PIECES = st.lists(
    st.sampled_from(
        [
            "alpha ",
            "Alpha beta. ",
            "This is gamma. ",
            "`code` ",
            "\n\n",
            "- `alpha`: beta\n",
            "# Heading\n\n",
            "```\nalpha(\n  1,\n)\nbeta\n```\n\n",
            "`",
            "[link](https://a.example/) ",
            "| a |\n|---|\n| b |\n\n",
            "漢字。",
        ]
    ),
    min_size=1,
    max_size=25,
).map("".join)


@given(st.lists(_PIECES, min_size=1, max_size=3), st.sampled_from(["alpha", "alpha beta gamma", "x", "漢字"]))
def test_a_summary_is_taken_from_the_text_and_short(texts: list[str], question: str) -> None:
    answer = Answer(source="web_search", passages=tuple(Passage(text=text) for text in texts))
    terms = question_terms("click", question)
    for row in choose(read_answer(answer).units, terms).taken:
        found = summarize([(row.unit, row.unit.blocks)], terms)[0]
        lines = [line for code in found.code for line in code.text.split("\n")]
        assert len(found.sentences) + len(lines) <= MOST_LINES
        said = "".join("".join(block.text.split()) for block in row.unit.blocks)
        assert all(
            "".join(line.split()).replace(")", "") in said.replace(",)", "").replace(")", "")
            for line in lines
        )
        assert not any("\n" in sentence for sentence in found.sentences)


def test_a_heading_of_one_word_names_the_declaration_to_show() -> None:
    text = (
        "# mount\n\n```typescript\nexport type MountOptions = { target: Element; anchor: Node; }\n\n"
        "export function mount(node: Node, options: MountOptions): Exports\n```\n\nMounts below a `target` beside an `anchor`."
    )
    assert (_code("How do I mount it at a target or anchor?", text) or "").startswith(
        "export function mount("
    )


def test_a_sentence_in_a_fence_is_no_code() -> None:
    text = "# run\n\nRun a command.\n\n```\nThis command tends to be `False` when running a `command` elsewhere.\n```"
    assert _code("How do I run a command?", text) is None


def _caveats(question: str, *texts: str, source: str = "web_search") -> list[str]:
    passages = tuple(Passage(text=text, url=f"https://a.example/{at}") for at, text in enumerate(texts))
    terms = question_terms("click", question)
    rows = choose(read_answer(Answer(source=source, passages=passages)).units, terms).taken
    return [quotation.text for quotation in caveats(rows, terms)]


_QUESTION = "How do I make an option repeatable?"
_REPEATABLE = "# Repeatable options\n\nTo make an option repeatable, pass the argument for many values.\n\n"


def test_caveats_speak_of_versions_and_warnings() -> None:
    text = (
        "# Alpha\n\nAll is well. The option `alpha` is deprecated since v3. 注意：alpha 选项已弃用。 "
        "Warning: alpha blocks. Beta is removed. Go on."
    )
    assert set(_caveats("alpha", text)) == {
        "The option `alpha` is deprecated since v3.",
        "注意：alpha 选项已弃用。",
        "Warning: alpha blocks.",
    }


@pytest.mark.parametrize(
    "warning",
    [
        '!!! warning "Memory"\n    Big options use much memory.',
        "**Warning**: sort() mutates the given option.",
        "**Note:** Safari below 14 isn't among the browsers.",
        ":::caution Heights\nThey must be the same.\n:::",
        "- **Warning:** The shell expands nothing.",
    ],
)
def test_a_warning_that_is_set_apart_is_a_caveat(warning: str) -> None:
    assert len(_caveats(_QUESTION, f"{_REPEATABLE}{warning}\n")) == 1


def test_at_most_four_and_what_was_told_is_not_told_again() -> None:
    warnings = "".join(f"**Note:** An option number {n} has another name here.\n\n" for n in range(9))
    text = f"{_REPEATABLE}{warnings}"
    terms = question_terms("click", _QUESTION)
    rows = choose(read_answer(Answer(source="web_search", passages=(Passage(text=text),))).units, terms).taken
    found = [quotation.text for quotation in caveats(rows, terms)]
    assert len(found) == 4
    assert not set(found) & {quotation.text for quotation in caveats(rows, terms, found)}


def test_a_word_of_warning_that_is_asked_for_is_none() -> None:
    text = "# Deprecated options\n\nThe option `old` is deprecated."
    assert _caveats("Which options are deprecated?", text) == []


def test_the_parameter_that_answers_is_told_with_the_call() -> None:
    text = (
        "# `Schema.load`\n\n```python\ndef load(\n    data,\n    *,\n    many: bool = False,\n    unknown: str | None = None,\n)\n```\n\n"
        "Deserialize a structure to an object.\n\n- `data`: The data to deserialize.\n- `many`: Whether it is a collection.\n"
        "- `unknown`: Whether to exclude fields. Unknown fields are an error by default."
    )
    found = _summarize("How do I exclude unknown fields?", text)
    assert (
        found.sentences[-1] == "`unknown`: Whether to exclude fields. Unknown fields are an error by default."
    )
    assert [code.text for code in found.code] == [
        "def load(data, *, many: bool = False, unknown: str | None = None)"
    ]


def test_of_a_long_declaration_what_is_asked_for_is_told_and_the_rest_by_name_and_default() -> None:
    others = "".join(f"    parameter_of_number_{n}: str | None = None,\n" for n in range(6))
    text = f"# `Schema.load`\n\n```python\ndef load(\n{others}    unknown: str | None = None,\n)\n```\n\nDeserialize a structure."
    names = ", ".join(f"parameter_of_number_{n}=None" for n in range(6))
    assert _code("How do I exclude unknown fields?", text) == f"def load({names}, unknown: str | None = None)"
    longer = text.replace("None", "'a default of its own'").replace(
        "= 'a default of its own',\n)", "= None,\n)"
    )
    assert "parameter_of_number_0=…, " in (_code("How do I exclude unknown fields?", longer) or "")
    many = text.replace(others, others * 3)
    assert _code("How do I exclude unknown fields?", many) == "def load(..., unknown: str | None = None)"
    only_named = text.replace("    unknown", "    *,\n    unknown")
    assert "5=None, *, unknown: str" in (_code("How do I exclude unknown fields?", only_named) or "")
    members = "".join(f"  optionOfNumber{n}?: {{\n    id?: string;\n  }};\n\n" for n in range(6))
    typed = f"# `Limits`\n\n```typescript\ninterface Limits {{\n{members}  fileSize?: number;\n}}\n```\n\nSizes of a request."
    told = "; ".join(f"optionOfNumber{n}?: …" for n in range(6))
    assert _code("How large may a fileSize be?", typed) == f"interface Limits {{ {told}; fileSize?: number }}"


@pytest.mark.parametrize(
    "wrong",
    [
        "The parentheses matter. Note that a cache without them is wrong:\n\n```python\n@cache.memoize\ndef expire(): ...\n```",
        "Without a call:\n\n```python\n>>> @cache.memoize\n... def expire():\n...     pass\nTraceback (most recent call last):\n    ...\nTypeError: no\n```",
        "Two ways:\n\n```python\n# Bad\n@cache.memoize\ndef expire(): ...\n```",
        "Never without a call:\n\n```python\n@cache.memoize\ndef expire(): ...\n```",
    ],
)
def test_what_a_source_shows_to_be_wrong_is_no_answer(wrong: str) -> None:
    text = f"# Memoize\n\nResults of a function expire when `memoize` is told so.\n\n{wrong}"
    assert _code("How do I let results of memoize expire?", text) is None
    right = f"{text}\n\nSo it is right:\n\n```python\n@cache.memoize(expire=60)\ndef slow(): ...\n```"
    assert (_code("How do I let results of memoize expire?", right) or "").startswith("@cache.memoize(expire")


def test_what_a_program_printed_is_no_code() -> None:
    text = "# Lock\n\nA lock has a timeout.\n\n```\ntime: 0, the lock has a timeout of 5 seconds\n```\n"
    assert _code("How do I set the timeout of a lock?", text) is None


def test_of_a_session_what_was_typed_is_told() -> None:
    lines = [
        "class Task:",
        "    name = 'tweet'",
        "    def run(self):",
        "        try:",
        "            post()",
        "        except Fail as exc:",
        "            raise self.retry(countdown=300)",
    ]
    session = ">>> " + "\n... ".join(lines) + "\nTraceback: a retry with countdown(300)"
    text = f"# Retry\n\nA task is retried with `retry`.\n\n```pycon\n{session}\n```\n"
    assert _code("How do I retry with a countdown?", text) == "\n".join(line[8:] for line in lines[3:])


def test_what_follows_a_block_is_not_told_as_a_part_of_it() -> None:
    lines = ["try:", "    pool = Pool(size=1,", "        b=2)", "    x = 1", "    y = 1", "except Full as pool_error:", "    print(pool_error)", "    '''", "    1 error of the size of the pool", "    '''"]  # fmt: skip
    text = "# Pool\n\nThe pool has a `size`.\n\n```py\n" + "\n".join(lines) + "\n```\n"
    assert _code("How do I set the size of the pool?", text) == "try:\n    pool = Pool(size=1, b=2)"


def test_of_a_chain_of_calls_one_link_is_told_with_what_it_hangs_on() -> None:
    links = "\n".join(f'  .option("{name}")' for name in ("alpha", "beta", "gamma"))
    text = f'# Options\n\nAn option is added with `option` or `choices`.\n\n```js\nprogram\n{links}\n  .choices("small", "big")\n```\n'
    assert _code("How do I limit the choices?", text) == 'program\n  .choices("small", "big")'


def test_a_member_is_not_torn_out_of_its_class() -> None:
    lines = [
        "class C:",
        "    x = field()",
        "    y = field()",
        "    @y.default",
        "    def _default(self):",
        "        return {}",
    ]
    text = "# Default\n\nA `field` has a default.\n\n```py\n" + "\n".join(lines) + "\n```\n"
    assert _code("What is the default of a field?", text) in {
        "class C:\n    x = field()",
        "class C:\n    y = field()",
    }


def test_a_passage_of_which_nothing_can_be_told_does_not_lead() -> None:
    texts = ("# Pool\n\nSee the example of a pool above.", "# Size of a pool\n\nA pool has five connections.")
    units = read_answer(Answer(source="context7", passages=tuple(Passage(text=text) for text in texts))).units
    found = summarize([(unit, unit.blocks) for unit in units], question_terms("x", "How large is a pool?"))
    assert [one.sentences for one in found] == [("A pool has five connections.",)]


def test_what_only_announces_an_example_that_is_not_told_does_not_lead() -> None:
    texts = (
        "# Examples\n\nSave all incoming files:\n\n```js\na(b);\n```",
        "# API\n\nEach incoming file is saved.",
    )
    units = read_answer(Answer(source="context7", passages=tuple(Passage(text=text) for text in texts))).units
    terms = question_terms("busboy", "How do I save incoming files?")
    found = summarize([(unit, unit.blocks) for unit in units], terms)
    assert [one.sentences for one in found] == [("Each incoming file is saved.",)]


def test_another_passage_that_answers_nearly_as_well_is_told_beside_the_first() -> None:
    answer = Answer(
        source="local_docs",
        passages=(
            Passage(text="Read a file of known host keys.", title="ssh.Keys.load", url="ssh 1.0, keys.py: load"),
            Passage(text="Set the policy for a host without a known key.", title="ssh.Client.set_policy", url="ssh 1.0, client.py: set_policy"),
            Passage(text="Close the client and its sockets.", title="ssh.Client.close", url="ssh 1.0, client.py: close"),
        ),
    )  # fmt: skip
    terms = question_terms("ssh", "How do I connect to a host whose key is not known?")
    first, *others = summarize([(unit, unit.blocks) for unit in read_answer(answer).units], terms)
    assert first.sentences == ("Read a file of known host keys.",)
    assert [other.sentences for other in others] == [("Set the policy for a host without a known key.",)]


def test_a_declaration_of_many_lines_keeps_its_parts_together() -> None:
    """Of playwright's and jose's types, and a class of chevrotain."""
    question = "What does the pool hold?"
    page = "export interface Pool {\n  on(event: 'open', listener: (pool: Pool) => void): this;\n  on(event: 'close', listener: (pool: Pool) => void): this;\n  on(event: 'error', listener: (pool: Pool, error: Error) => void): this;\n}"
    assert _code(question, f"# Pool\n\n```typescript\n{page}\n```") == "export interface Pool { on(…) }"
    both = "export interface Pool {\n  held: Held &\n    Other;\n  size: number;\n}"
    told = _code(question, f"# Pool\n\n```typescript\n{both}\n```")
    assert told is not None
    assert "; Other" not in told
    child = "export declare class Pool\n  extends Base\n  implements Held {\n  constructor(size: number);\n  hold(one: One): void;\n}"
    assert (_code(question, f"# Pool\n\n```typescript\n{child}\n```") or "").startswith(
        "export declare class Pool extends Base implements Held {"
    )


def test_comments_between_the_members_of_a_type_are_no_members() -> None:
    members = "".join(f"  name{n}: string;\n" for n in range(20))
    declared = f"export abstract class Chart {{\n  /**\n   * Preserve: the ratio.\n   * Defaults: true\n   */\n  ratio: boolean; // kept\n  protected abstract keepRatio(): void;\n{members}}}"
    told = _code(
        "How do I keep the ratio of a chart?",
        f"# Chart\n\nThe chart keeps its ratio.\n\n```ts\n{declared}\n```",
    )
    assert told is not None
    assert "ratio: boolean;" in told
    assert "keepRatio(" in told
    for torn in ("Preserve", "Defaults", "kept;", "abstract:", "protected:"):
        assert torn not in told
