"""Markdown inline content, written anew so that nothing but plain inline Markdown is left (SPEC 3.7).

No raw HTML, no images, no links but to http and https, and no text that a Markdown reader could take for
one of these, whatever stands beside it.
"""

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from kr.text.characters import one_line, strip_invisible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_URL = 1000
_PUNCTUATION = r"!-/:-@\[-`{-~"
_ESCAPES = re.compile(
    rf"\\(?=[{_PUNCTUATION}\n]|$)"
    r"|`"
    r"|(?<=\S)\*|\*(?=\S)"
    r"|(?<![^\W_])_|_(?![^\W_])"
    r"|<(?=[A-Za-z/!?])"
    r"|&(?=#?\w{1,32};)"
    r"|\](?=[(\[:]|$)"
    r"|(?<=\])\("
    r"|!(?=\[|$)"
)
_BLOCK_START = re.compile(
    r"^(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|=+[^\S\n]*$|~{3}|[-:|](?:[-:|]|[^\S\n])*+$)|^(?P<number>\d{1,9})(?=[.)](?:\s|$))",
    re.MULTILINE,
)
# Signs that are emphasis or a link's end only beside others: escaped where a paragraph reads otherwise without.
_SOFT = re.compile(r"\\([*_!]|\](?![:(\[]))")
_WORD = re.compile(
    r"(?<![\w`.*/@:#&=?%+<-])(?:"
    r"(?:[A-Za-z_]\w{0,60}(?:::\w{1,60}){0,4})?<[A-Za-z][\w:., |]{0,40}>"  # a type, not a tag: those are no text
    r"|(?:\*\*|\*(?=args\b))?[A-Za-z_](?:[\w.]{0,118}\w)?(?:\[\])?(?:\(\))?"
    r")(?![\w`*/@=-])"
)
_WORDS_OF_LINK = re.compile(
    r"(?<!`)(`+)(?!`)[^`]{0,1000}?(?<!`)\1(?!`)"
    r"|(?<!\\)\[(?P<words>(?:`[^`\n]{0,200}`|\\.|\[[^\[\]`\\]{0,200}\]|[^\[\]`\\]){0,500})\]\([^()\s]{0,3000}\)"
)
_INDENT = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)
_SILENT_TAG = re.compile(r"<(/?)(?:script|style|template|noscript)\b", re.IGNORECASE)
_BACKTICKS = re.compile("`+")
_SAFE_URL = re.compile(r"https?://[^/\s]", re.IGNORECASE)


def escape(text: str) -> str:
    """Return the text with a backslash before whatever would be Markdown or HTML inside a line."""
    return _ESCAPES.sub(r"\\\g<0>", strip_invisible(text))


def marked(text: str) -> str:
    """Return the text escaped, and its identifiers as code: ``max_size``, ``__init__``, ``**kwargs``, ``run()``, ``operator[]``."""
    parts, end = [], 0
    for found in _WORD.finditer(text):
        if _is_identifier(found[0]):
            parts += [escape(text[end : found.start()]), f"`{found[0]}`"]
            end = found.end()
    return "".join([*parts, escape(text[end:])])


def _is_identifier(word: str) -> bool:
    is_named = any(character.isalpha() for character in word)
    return is_named and ("_" in word or word[0] == "*" or word.endswith(("()", "[]", ">")))


def plain_line(text: str, limit: int = 500) -> str:
    """Return any text as one harmless line of Markdown, of at most ``limit`` characters before escaping."""
    return _least_escaped(escape(one_line(text, limit)))


def safe_url(url: str | None) -> str | None:
    """Return an http or https address fit for Markdown and for a comma separated list, else ``None``."""
    if not url:
        return None
    url = strip_invisible(url[: 2 * _MAX_URL]).strip()
    if len(url) > _MAX_URL or not _SAFE_URL.match(url):
        return None
    return (
        quote(url, safe="!#$%&'*+,/:;=?@[]_~-.")
        if url.isascii()
        else quote(url, safe="!#$%&'*+,/:;=?@[]_~-.%")
    )


def unlinked(markdown: str) -> str:
    """Return clean Markdown with the words of its links alone; addresses that stand for themselves stay."""
    return _WORDS_OF_LINK.sub(
        lambda found: found["words"] if found["words"] is not None else found[0], markdown
    )


def render_inline(tokens: Iterable["Token"], *, badges: bool = True) -> str:
    """Render the inline tokens of one piece of text. The result may have several lines, none indented.

    Pictures show their captions beside text; alone they show nothing, since a caption without its picture says little.
    Without ``badges``, the pictures that alone make a link don't either.
    """
    writer = _Writer()
    tokens = list(tokens) if badges else _without_badges(list(tokens))
    if any(token.type == "image" for token in tokens) and not any(
        token.type not in {"image", "html_inline"} and token.content.strip() for token in tokens
    ):
        return ""
    for token in tokens:
        writer.add(token)
    return as_paragraph(writer.finish())


def _without_badges(tokens: list["Token"]) -> list["Token"]:
    def is_badge(at: int) -> bool:
        return [token.type for token in tokens[max(0, at - 1) : at + 2]] == [
            "link_open",
            "image",
            "link_close",
        ]

    return [token for at, token in enumerate(tokens) if not is_badge(at)]


def as_paragraph(markdown: str) -> str:
    """Return inline Markdown whose lines start nothing but a paragraph."""
    return _BLOCK_START.sub(r"\g<number>\\", _INDENT.sub("", markdown).strip("\n"))


class _Writer:
    """Text is gathered and escaped in one go, since what is harmless alone may not be beside its neighbour."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._text: list[str] = []
        self._links: list[tuple[str | None, int]] = []
        self._silent = False

    def add(self, token: "Token") -> None:
        if token.type == "html_inline":
            self._html(token.content)
        elif self._silent:
            return
        elif token.type in {"softbreak", "hardbreak"}:
            self._text.append("\n")
        elif token.type == "code_inline":
            self._mark(code_span(token.content))
        elif token.type == "image":
            self._text.extend(child.content for child in token.children or [] if not child.children)
        elif token.type in {"em_open", "em_close", "strong_open", "strong_close"}:
            self._mark(token.markup)
        elif token.type == "link_open":
            self._flush()
            self._links.append((safe_url(str(token.attrGet("href") or "")), len(self._out)))
        elif token.type == "link_close":
            self._close_link(automatic=token.markup == "autolink")
        else:
            self._text.append(token.content)

    def finish(self) -> str:
        self._flush()
        return _least_escaped("".join(self._out))

    def _html(self, tag: str) -> None:
        found = _SILENT_TAG.match(tag)
        if found:
            self._silent = not found[1]

    def _mark(self, markdown: str) -> None:
        self._flush()
        self._out.append(markdown)

    def _flush(self) -> None:
        if self._text:
            self._out.append(marked(strip_invisible("".join(self._text))))
            self._text.clear()

    def _close_link(self, *, automatic: bool) -> None:
        self._flush()
        url, start = self._links.pop()
        shown = "".join(self._out[start:])
        if not url or not shown.strip():
            return
        del self._out[start:]
        self._out.append(f"<{url}>" if automatic else f"[{shown}]({url})")


def _least_escaped(paragraph: str) -> str:
    """Take away the escapes without which the paragraph still reads the same.

    A bracket stays escaped where brackets don't pair, since what comes next may be joined to it.
    """
    if not _SOFT.search(paragraph):
        return paragraph
    bare = _outside_code(paragraph)
    pairs = bare.count("[") == bare.count("]")
    fewer = _SOFT.sub(lambda found: found[1] if pairs or found[1] != "]" else found[0], paragraph)
    return fewer if _read(fewer) == _read(paragraph) else paragraph


def _outside_code(paragraph: str) -> str:
    return "".join(token[1] for token in _read(paragraph) if token[0] == "text")


def _read(paragraph: str) -> list[tuple[str, str]]:
    """Return types and contents of the inline tokens, neighbouring texts as one."""
    found: list[tuple[str, str]] = []
    for token in _inline_parser().parseInline(paragraph)[0].children or []:
        kind = "text" if token.type in {"text", "text_special"} else token.type
        content = token.content or str(token.attrGet("href") or "")
        if kind == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + content)
        elif kind != "text" or content:
            found.append((kind, content))
    return found


@functools.cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def code_span(code: str) -> str:
    code = strip_invisible(code).replace("\n", " ")
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    edge = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{'`' * (longest + 1)}{edge}{code}{edge}{'`' * (longest + 1)}" if code.strip() else ""
