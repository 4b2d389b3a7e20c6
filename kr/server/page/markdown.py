"""Reports as HTML (rule 3.7: what comes from the network is untrusted; rule 8).

Raw HTML stands there as text, links lead to http and https alone and images are links: nothing that a source wrote
is loaded or run. Code is highlighted with class names, since the page allows no inline style.
"""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from kr.report import parse_report


def report_html(text: str) -> tuple[Markup, Markup | None]:
    """Render a report: its text, and its header's sources where it follows the template (rule 3.7)."""
    shape = parse_report(text)
    if shape is None:
        return to_html(text), None
    sections = "\n\n".join(f"## {name}\n\n{body}" for name, body in shape.sections.items() if body.strip())
    return to_html(sections), Markup(_markdown().renderInline(shape.header["Sources"]))  # noqa: S704 - as in to_html


def to_html(text: str) -> Markup:
    """Render Markdown; headings begin at the second level, below the page's own title."""
    return Markup(_markdown().render(text))  # noqa: S704 - raw HTML is off, and the rules below are the rest


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    markdown.enable(["table", "strikethrough"]).disable("image")
    # Any other link stands in the text as it was written.
    markdown.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]
    markdown.core.ruler.push("fit_the_page", _fit_the_page)
    return markdown


def _fit_the_page(state: StateCore) -> None:
    for token in state.tokens:
        if token.tag == "h1":
            token.tag = "h2"
        if token.type in {"th_open", "td_open"} and token.attrs:
            token.attrs = {"class": str(token.attrs["style"]).replace("text-align:", "to-")}
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs = {"href": str(child.attrGet("href")), "rel": "noopener noreferrer nofollow"}


class _Renderer(RendererHTML):
    """What is wide scrolls, and the keyboard must reach it; code is highlighted."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002 - a rule's signature
        language = (tokens[idx].info.split() or [""])[0]
        return f'<pre tabindex="0"><code>{_highlighted(tokens[idx].content, language)}</code></pre>\n'

    code_block = fence

    def table_open(self, *_: Any) -> str:
        return '<div class="scroll" tabindex="0"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _highlighted(code: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language.lower(), stripnl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))
