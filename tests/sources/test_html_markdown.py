"""HTML to Markdown: what documentation engines write, and what nobody should."""

import html as html_library
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kr.sources.html_markdown import fenced, to_markdown
from markdown_it import MarkdownIt

from kr.text.characters import strip_invisible

URL = "https://docs.example/guide/page.html"


def convert(html: str, media_type: str = "text/html") -> str:
    return to_markdown(html, media_type=media_type, url=URL).text


def main(inner: str) -> str:
    return convert(f"<html><body><main>{inner}</main></body></html>")


# --- code -----------------------------------------------------------------------------------------------

BLOCKS = {
    "Sphinx": (
        (
            '<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>'
            '<span class="k">def</span> <span class="nf">f</span>():\n    <span class="k">pass</span>\n</pre></div></div>'
        ),
        "```python\ndef f():\n    pass\n```",
    ),
    "Sphinx with line numbers": (
        (
            '<div class="highlight-c++"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>'
            '<span class="normal">1</span>\n<span class="normal">2</span></pre></div></td><td class="code"><div><pre>'
            "int a;\nint b;\n</pre></div></td></tr></table></div>"
        ),
        "```c++\nint a;\nint b;\n```",
    ),
    "Sphinx's default": (
        '<div class="highlight-default"><div class="highlight"><pre>x = 1\n</pre></div></div>',
        "```\nx = 1\n```",
    ),
    "MkDocs": (
        (
            '<div class="language-yaml highlight"><pre id="__code_0"><span></span><button class="md-clipboard">Copy</button>'
            '<code><a id="l1" href="#l1"></a><span class="nt">a</span>: 1\n</code></pre></div>'
        ),
        "```yaml\na: 1\n```",
    ),
    "Docusaurus": (
        (
            '<div class="language-jsx codeBlockContainer theme-code-block"><div><pre class="prism-code language-jsx"><code>'
            '<span class="token-line">&lt;App&gt;<br></span><span class="token-line">  hi<br></span></code></pre>'
            '<div class="buttonGroup"><button>Copy</button></div></div></div>'
        ),
        "```jsx\n<App>\n  hi\n```",
    ),
    "GitHub": (
        '<div class="highlight highlight-source-shell"><pre>npm install</pre><clipboard-copy>c</clipboard-copy></div>',
        "```shell\nnpm install\n```",
    ),
    "highlight.js": ('<pre><code class="hljs rust">fn main() {}</code></pre>', "```rust\nfn main() {}\n```"),
    "highlight.js line numbers": (
        (
            '<pre><code class="hljs language-go"><table class="hljs-ln"><tr><td class="hljs-ln-numbers">1</td>'
            '<td class="hljs-ln-code">a</td></tr><tr><td class="hljs-ln-numbers">2</td><td>b</td></tr></table></code></pre>'
        ),
        "```go\na\nb\n```",
    ),
    "Rouge": (
        (
            '<div class="language-ruby highlighter-rouge"><div class="highlight"><pre class="highlight"><code>'
            '<table class="rouge-table"><tr><td class="gutter gl"><pre class="lineno">1\n</pre></td><td class="code"><pre>'
            "puts 1\n</pre></td></tr></table></code></pre></div></div>"
        ),
        "```ruby\nputs 1\n```",
    ),
    "SyntaxHighlighter": ('<pre class="brush: php; gutter: false">echo 1;</pre>', "```php\necho 1;\n```"),
    "pandoc": ('<pre class="sourceCode haskell"><code>main</code></pre>', "```haskell\nmain\n```"),
    "rustdoc": ('<pre class="rust rust-example-rendered"><code>let x;</code></pre>', "```rust\nlet x;\n```"),
    "data-lang": ('<pre data-lang="toml"><code>a = 1</code></pre>', "```toml\na = 1\n```"),
    "WordPress": ('<pre lang="php">echo 1;</pre>', "```php\necho 1;\n```"),
    "lang of the code": ('<pre><code lang="TS">a</code></pre>', "```ts\na\n```"),
    "lang of people": ('<pre lang="en"><code lang="cs" class="language-js">a</code></pre>', "```js\na\n```"),
    "lang of the page": ('<div lang="go"><pre>a</pre></div>', "```\na\n```"),
    "hidden parts": (
        '<pre>a<span style="display:none">no</span><i style="font-size:0">no</i><b hidden>no</b> = 1</pre>',
        "```\na = 1\n```",
    ),
    "colours": (
        '<pre style="background:#fff"><code><span style="color:#fff">  </span><b style="color:red">a</b></code></pre>',
        "```\n  a\n```",
    ),
    "prettify": ('<pre class="prettyprint lang-sql">SELECT 1</pre>', "```sql\nSELECT 1\n```"),
    "lines in elements": (
        (
            '<pre data-language="ts"><code><div class="ec-line"><div class="gutter">1</div><div>a</div></div>'
            '<div class="ec-line"><div>b</div></div></code></pre>'
        ),
        "```ts\na\nb\n```",
    ),
    "no language": ("<pre>  a\n\n    b\n</pre>", "```\n  a\n\n    b\n```"),
    "language that is none": ('<pre class="language-plaintext">a</pre>', "```\na\n```"),
    "language that is an attack": ('<pre data-lang="js`&#10;# x">a</pre>', "```\na\n```"),
    "backticks": ("<pre>```js\n````\n</pre>", "`````\n```js\n````\n`````"),
    "entities": ("<pre>&lt;a&gt; &amp;amp; *x* _y_ \\</pre>", "```\n<a> &amp; *x* _y_ \\\n```"),
    "in a list": (
        "<ol><li>do<pre>a\n\nb</pre></li><li>then</li></ol>",
        "1. do\n\n   ```\n   a\n\n   b\n   ```\n2. then",
    ),
}


@pytest.mark.parametrize(("html", "markdown"), BLOCKS.values(), ids=BLOCKS.keys())
def test_code_is_kept_verbatim_with_its_language(html: str, markdown: str) -> None:
    assert main(html) == markdown


# --- the content and nothing else -------------------------------------------------------------------------

LONG = "<p>" + "The content of the page. " * 12 + "</p>"
AROUND = '<header><a href="/">Site</a></header><nav>Menu</nav><div class="sidebar">Side</div>{}<footer>Foot</footer>'

ENGINES = {
    "main": "<main>{}</main>",
    "role": '<div role="main">{}</div>',
    "article": "<article>{}</article>",
    "Sphinx": '<div class="document"><div class="body" role="main">{}</div><div class="sphinxsidebar">Side</div></div>',
    "Read the Docs": '<div class="rst-content"><div role="navigation">Menu</div><div role="main"><div itemprop="articleBody">{}</div></div></div>',
    "MkDocs": '<main class="md-main"><div class="md-sidebar">Side</div><article class="md-content__inner">{}</article></main>',
    "Docusaurus": '<main><nav>Menu</nav><article><div class="theme-doc-toc-mobile">Side</div><div class="theme-doc-markdown markdown">{}</div><footer>Foot</footer></article></main>',
    "GitHub": '<main><div>Menu Side</div><article class="markdown-body entry-content">{}</article></main>',
    "id": '<div id="content">{}</div>',
    "no mark": "{}",
}


@pytest.mark.parametrize("shell", ENGINES.values(), ids=ENGINES.keys())
def test_the_main_element_is_found(shell: str) -> None:
    inner = f"<h1>Title</h1>{LONG}<pre class='language-js'>code()</pre>"
    found = convert(f"<html><body>{AROUND.format(shell.format(inner))}</body></html>")
    assert found.startswith("# Title\n\nThe content") or shell == "{}"
    assert found.endswith("```js\ncode()\n```")
    assert not {"Menu", "Foot", "Site"} & set(found.split())


def test_a_page_of_many_articles_is_not_one_of_them() -> None:
    found = convert("<main><h1>Thread</h1>" + f"<article>{LONG}</article>" * 3 + "</main>")
    assert found.startswith("# Thread")
    assert found.count("The content of the page.") == 36


def test_an_empty_main_element_is_none() -> None:
    assert "The content" in convert(f"<main></main><div>{LONG}</div>")


@pytest.mark.parametrize(
    "html",
    [
        "<script>no()</script>",
        "<style>no {}</style>",
        "<!-- no -->",
        "<nav>no</nav>",
        "<footer>no</footer>",
        "<form><label>no</label><input value=no></form>",
        "<button>no</button>",
        "<div hidden>no</div>",
        '<div aria-hidden="true">no</div>',
        '<div style="color: red; DISPLAY : none">no</div>',
        '<p style="visibility:hidden">no</p>',
        "<template>no</template>",
        "<noscript>no</noscript>",
        "<svg><title>no</title><text>no</text></svg>",
        '<iframe src="no">no</iframe>',
        '<div role="navigation">no</div>',
        "<select><option>no</select>",
        '<a class="headerlink" href="#x">no</a>',
        '<a href="#x">¶</a>',
        '<a href="#x"></a>',
        '<a href="#x">#</a>',
        "<textarea>no</textarea>",
        "<?php no ?>",
    ],
)
def test_what_is_no_content_is_dropped(html: str) -> None:
    assert main(f"<p>before</p>{html}<p>after</p>") == "before\n\nafter"


def test_permalink_signs_leave_the_headings() -> None:
    assert (
        main('<h2>Use it<a class="headerlink" href="#use">¶</a></h2><h3><a href="#b">B</a></h3>')
        == "## Use it\n\n### B"
    )


# --- Markdown -------------------------------------------------------------------------------------------

PIECES = {
    "inline": (
        "<p>a <b>b</b> <em>c</em> <code>d_e</code> <code>`f`</code></p>",
        "a **b** *c* `d_e` `` `f` ``",
    ),
    "marked up twice": (
        "<p><b>a <b>b</b> c</b> <em>d <i>e</i></em> <code>{f(), <a href=x><code>g()</code></a>}</code></p>",
        "**a b c** *d e* `{f(), g()}`",
    ),
    "struck out": ("<p>It may. <s>It must.</s> <del>It can.</del></p>", "It may."),
    "identifiers": ("<p>snake_case and v-model</p>", "snake_case and v-model"),
    "signs": ("<p>*a* [b](c) `d` &lt;e&gt; &amp;lt; _f_</p>", r"\*a\* \[b\](c) \`d\` \<e> \&lt; \_f\_"),
    "no heading": (
        "<p># a</p><p>1. b</p><p>- c</p><p>&gt; d</p><p>---</p>",
        "\\# a\n\n1\\. b\n\n\\- c\n\n\\> d\n\n\\---",
    ),
    "lines of prose": ("<p>a\n   b\n<i>c</i></p>", "a b *c*"),
    "lists": (
        "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ol start=3><li>d<li>e</ol>",
        "- a\n  - b\n- c\n\n3. d\n4. e",
    ),
    "table": (
        "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1|2</td><td><code>x|y</code><br>z</td></tr></tbody></table>",
        "| A | B |\n| --- | --- |\n| 1\\|2 | `x\\|y` z |",
    ),
    "table head of cells": (
        "<table><thead><tr><td>A</td></tr></thead><tr><td>1</td></tr></table>",
        "| A |\n| --- |\n| 1 |",
    ),
    "caption": (
        "<table><caption>C</caption><tr><th>A</th></tr><tr><td>1</td></tr></table>",
        "C\n\n| A |\n| --- |\n| 1 |",
    ),
    "table for the layout": ("<table><tr><td><h2>A</h2>b</td><td>c</td></tr></table>", "## A\n\nb\n\nc"),
    "quote": ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
    "definitions": ("<dl><dt>a</dt><dd>b<pre>c</pre></dd></dl>", "**a**\n\nb\n\n```\nc\n```"),
    "signature": (
        '<dl><dt class="sig sig-object py"><span>f</span>(<em>a</em>, *b)<a class="headerlink" href="#f">¶</a></dt><dd>x</dd></dl>',
        "##### `f(a, *b)`\n\nx",
    ),
    "image": ('<p>see <img src="http://track.example/x.png" alt="the plan"></p>', "see the plan"),
    "links": (
        '<p><a href="../api.html#x">a</a> <a href="//cdn.example/b">b</a> <a href="?q=1">c</a> <a href="mailto:a@b.c">d</a></p>',
        (
            "[a](https://docs.example/api.html#x) [b](https://cdn.example/b) [c](https://docs.example/guide/page.html?q=1)"
            " [d](mailto:a@b.c)"
        ),
    ),
    "links that are none": (
        (
            '<p><a href="javascript:a()">a</a> <a href="data:text/html,x">b</a> <a href=" JaVaScRiPt:x">c</a>'
            ' <a href="java&#10;script:x">d</a> <a href="file:///e">e</a> <a href="http://[x">f</a> <a>g</a></p>'
        ),
        "a b c d e f g",
    ),
    "links that break out": (
        '<p><a href="https://e.example/a b)(c">x</a> <a href="/a&quot;&lt;b&gt;" title="t">y</a></p>',
        "[x](https://e.example/a%20b%29%28c) [y](https://docs.example/a%22%3Cb%3E)",
    ),
    "link around blocks": ('<a href="/x"><h3>Card</h3><p>text</p></a>', "### Card\n\ntext"),
    "inline parts of blocks": ("<div><b>a</b></div><div><i>b</i></div><td>c</td>", "**a**\n\n*b*\n\nc"),
    "unknown elements": ("<my-note><soup>a</soup></my-note><fn_cache>b</fn_cache><hn>c</hn>", "a\n\nbc"),
    "unclosed": ("<p>a<b>b<p>c<div>d", "a**b**\n\nc\n\nd"),
    "details": ("<details><summary>More</summary><p>text</p></details>", "More\n\ntext"),
    "line break": ("<p>a<br># b</p>", "a  \n\\# b"),
    "heading of many lines": ("<h2>a<br>b\nc</h2>", "## a b c"),
    "terminal escapes": ("<p>a \x1b[31mred\x1b[0m b</p><pre>\x1b[1mc</pre>", "a red b\n\n```\nc\n```"),
    "terminal escapes by reference": ("<p>a &#27;[31mred&#x1B;[0m &amp;#27;[b</p>", r"a red \&#27;\[b"),
    "invisible characters": ("<p>a\u200bb\u202ec</p>", "abc"),
    "NUL": ("<p>a\0b</p>", "ab"),
}


@pytest.mark.parametrize(("html", "markdown"), PIECES.values(), ids=PIECES.keys())
def test_markdown_is_honest(html: str, markdown: str) -> None:
    assert main(html) == markdown


def test_the_title_is_the_pages() -> None:
    page = "<head><title>\n A  page &amp; more </title></head><main><h1>x</h1></main>"
    assert to_markdown(page, media_type="text/html", url=URL).title == "A page & more"
    assert to_markdown("<p>x", media_type="text/html", url=URL).title is None
    assert to_markdown("text\n# The *title* #\n", media_type="text/markdown", url=URL).title == "The *title*"


@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown", "text/x-markdown"])
def test_markdown_passes_through(media_type: str) -> None:
    text = "# Title\r\n\r\n* a\r\n\r\n```js\r\n  <b>x</b>\r\n```\r\n"
    assert convert("\ufeff" + text, media_type) == text.replace("\r\n", "\n").rstrip("\n")


@pytest.mark.parametrize(
    ("media_type", "language"),
    [
        ("application/json", "json"),
        ("application/vnd.api+json", "json"),
        ("text/x-python", "python"),
        ("text/css", "css"),
        ("text/xml", "xml"),
    ],
)
def test_other_text_becomes_a_code_block(media_type: str, language: str) -> None:
    assert convert('{"a": "```"}\n', media_type) == f'````{language}\n{{"a": "```"}}\n````'
    assert convert(" \n", media_type) == ""


# --- hostile pages ----------------------------------------------------------------------------------------

MIB = 2**20


def many(piece: str, size: int = 2 * MIB) -> str:
    return piece * (size // len(piece))


HOSTILE = {
    "10,000 nested divs": "<p>deep words</p>" + "<div>" * 10_000 + "x" + "</div>" * 10_000,
    "1,500 nested divs with words": "<div>deep words" * 1500,
    "nested lists": "<ul><li>deep words" * 700,
    "nested quotes": "<blockquote>" * 700 + many("<p>deep words"),
    "nested tables": "<table><tr><td>" * 600 + "deep words",
    "nested formats": "<b><i><code>" * 600 + "deep words",
    "nested code": "<pre>" * 1500 + "deep words",
    "unclosed tags": "<p>deep words" + many("<a "),
    "unclosed elements": "<p>deep words" + many("<b>x"),
    "less-than signs": "<p>deep words" + many("<"),
    "a list without end": "<p>deep words<ol>" + many("<li>x"),
    "rows without end": "<p>deep words<table><thead>" + many("<tr><td>x"),
    "wide cells": "<p>deep words<table>" + many("<tr><td colspan=1000>x", MIB // 2),
    "attributes": "<p>deep words<a " + " ".join(f"a{number}=1" for number in range(200_000)) + ">x</a>",
    "attributes with signs in them": "<p>deep words<a "
    + " ".join(f"a{number}='>'" for number in range(100_000))
    + ">x</a>",
    "one long line": "<p>deep words " + "x" * 10 * MIB,
    "entities": "<p>deep words" + many("&amp;"),
    "backticks": "<p>deep words" + many("`"),
    "comments": "<p>deep words" + many("<!--"),
    "white space": "<p>deep words" + many(" ") + "x",
    "code blocks in deep divs": "<p>deep words" + "<div>" * 2000 + many("<pre>x</pre>"),
    "captions": "<p>deep words<table>" + many("<caption>x</caption>"),
    "beginnings of tags": "<p>deep words " + many("<a"),
    "beginnings of tags, in quotes": "<p>deep words" + many("<a b=\"<a c='<a "),
    "tags that fill up": "<p>deep words" + many("<a " * 190 + ">"),
}


UNREAD = frozenset({
    "unclosed tags", "attributes", "attributes with signs in them", "beginnings of tags, in quotes",
})  # fmt: skip
"""Hundreds of attributes in one tag, which would take minutes."""


@pytest.mark.effort(10 * MIB, MIB // 16)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_page_takes_long_or_breaks_the_conversion(name: str, effort: int) -> None:
    html = HOSTILE[name]
    begun = html[: effort + 1000]
    limit = sys.getrecursionlimit()
    started = time.process_time()
    found = convert(begun)
    # The limit shrinks as the root of the length: a short page has most of the fixed costs too. A second is worth half
    # of one where two processes share a core.
    assert time.process_time() - started < 40 * (len(begun) / len(html)) ** 0.5
    assert ("deep words" in found) != (name in UNREAD)
    assert len(found) < 8 * MIB
    assert sys.getrecursionlimit() == limit


def test_what_is_too_long_is_cut_and_says_so() -> None:
    found = to_markdown("<p>" + many("word ", 3 * MIB), media_type="text/html", url=URL)
    assert found.is_cut
    assert len(found.text) <= 1_000_000


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(
    ["<p>", "<div>", "<pre>", "<code>", "</pre>", "<b>", "</b>", "<ul>", "<li>", "<ol>", "</ul>", "<table>", "<tr>", "<td>", "<th>", "<thead>", "</table>", "<a/href=x>", "</a>", "<h1>", "</h1>", "<br>", "<dl>", "<dt>", "<dd>", "<blockquote>", "<caption>", "<soup>", "<img/alt=i>", "<!--", "-->", "&", "&lt;", "*", "_", "`", "#", "|", "word", "\n", "\x00", "<", ">"]
), max_size=40))  # fmt: skip
def test_no_soup_of_tags_raises(parts: list[str]) -> None:
    found = to_markdown("".join(parts), media_type="text/html", url=URL)
    assert "\0" not in found.text


@settings(max_examples=100, deadline=None)
@given(
    st.text(
        alphabet=st.characters(blacklist_categories=["Cc", "Cs", "Zs", "Zl", "Zp", "Cn", "Co"]), min_size=1
    )
    .map(strip_invisible)
    .filter(bool)
)
def test_the_text_of_a_paragraph_is_read_back_from_the_markdown(text: str) -> None:
    found = main(f"<p>{html_library.escape(text)}</p>")
    tokens = MarkdownIt().parse(found)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    inline = tokens[1].children or []
    assert "".join(token.content for token in inline) == text
    assert {token.type for token in inline} <= {"text", "text_special"}


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="`a\n ~\\<", min_size=1).filter(lambda code: code.strip("\n ") != ""))
def test_code_is_read_back_from_the_markdown(code: str) -> None:
    tokens = MarkdownIt().parse(fenced(code, "js"))
    assert [(token.type, token.info, token.content) for token in tokens] == [("fence", "js", code + "\n")]


def test_a_space_that_is_marked_as_code_is_a_space() -> None:
    page = "<main><h1>Guide</h1><h4>3.5<tt>&nbsp;</tt><a name='x'></a>Transactions</h4><p>They are <code>atomic</code>.</p></main>"
    text = to_markdown(page, media_type="text/html", url="https://example.com/").text
    assert "#### 3.5 Transactions\n\nThey are `atomic`." in text
