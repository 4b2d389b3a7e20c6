"""Untrusted Markdown, taken apart and written anew (SPEC 3.7).

A source's text is parsed as CommonMark with tables, and every block is rendered again from its tokens:
prose, lists and tables as quoted lines (``> ``), code as it was, in a fence. No line that a source wrote can
be taken for one of kr's own: code that holds a line like a heading or a header of a report is quoted too.
"""

import functools
import re
import textwrap
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kr.text.characters import strip_invisible
from kr.text.inline import as_paragraph, escape, render_inline, safe_url

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


MAX_CHARS = 300_000
"""How much of one text is read; the rest is cut off before parsing."""

_MAX_PIECE = 2000  # of inline content: what is quadratic in the parser stays small
_MAX_BRACKETS = 100  # in a piece; with more it is text without links
_MAX_BLOCK = 4000  # of a list or a table
_MAX_NESTING = 40
_MAX_COLUMNS = 40
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?!---|\.\.\.)[^\n]*\n){0,100}(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_CELL_START = re.compile(r"^\\(?=[-+#>=~])")
_BACKTICKS = re.compile("`+")
# ``[`x`][pkg.x]`` of MkDocs; a code span is passed over.
_CROSS = re.compile(
    r"(?<![\w\\])\[(?:(?P<shown>`[^`\n]{1,200}`)\]\[(?P<target>[\w.:/~-]{0,200})\]"
    r"|(?P<words>[^\[\]`\n]{1,200})\]\[(?P<page>[A-Za-z_]\w{0,80}(?:\.\w{1,80}){1,12})\])"
    r"|(?<!`)(?P<ticks>`+)(?!`)[^`]{0,500}?(?<!`)(?P=ticks)(?!`)"
)
# A line with one `#` is no section of ours and a comment in half of all languages: it may stand in a fence.
_LIKE_OURS = re.compile(
    r"^ {0,3}(?:##(?:[ \t]|$)|\*\*(?:Framework|Version|Research Date|Confidence|Sources):|- Source \d"
    r"|\[(?:Based on stale|No research results)|Notes (?:by kr|on this copy))",
    re.MULTILINE,
)

_HARMFUL = frozenset({"heading_open", "html_block", "html_inline", "image"})

Kind = Literal["heading", "prose", "list", "table", "code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a text, cleaned.

    ``text`` is the code itself for ``code``, Markdown without quote marks for the others (for ``heading``
    the heading's words). Unless it is code, it is bounded to a few thousand characters.
    ``warns``: it belongs to a warning or note that is set apart. ``level`` is a heading's, 1 to 6.
    """

    kind: Kind
    text: str
    language: str | None = None
    warns: bool = False
    level: int = 0


def split(text: str) -> tuple[Block, ...]:
    """Take an untrusted text apart into blocks, in its order. Never raises; time is bounded."""
    source = _FRONT_MATTER.sub("", strip_invisible(text[:MAX_CHARS]))
    walker = _Walker()
    environment: dict[str, object] = {}
    for token in _parser().parse(source, environment):
        walker.take(token, environment)
    walker.finish()
    return tuple(walker.blocks)


def render(block: Block) -> str:
    """Return a block as it stands in a report: a fence, or quoted lines. No newline at the end."""
    if block.kind == "code":
        return fence(block.text, block.language)
    return quote(f"**{block.text}**" if block.kind == "heading" else block.text)


def clean(text: str) -> str:
    """Return an untrusted Markdown text as blocks that are safe to stand in a report."""
    return "\n\n".join(render_all(split(text)))


def render_all(blocks: Iterable[Block]) -> list[str]:
    """Render blocks; neighbours that are quoted make one quotation."""
    parts: list[str] = []
    joined = False
    for block in blocks:
        quoted = block.kind != "code"
        if quoted and joined:
            parts[-1] += f"\n>\n{render(block)}"
        else:
            parts.append(render(block))
        joined = quoted
    return parts


def quote(text: str) -> str:
    """Prefix every line with ``> ``."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def fence(code: str, language: str | None = None) -> str:
    """Put code, unchanged, into a fence that it cannot close; quoted when a line of it looks like kr's own."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    marks = "`" * max(3, longest + 1)
    end = "" if code.endswith("\n") else "\n"
    text = f"{marks}{language or ''}\n{code}{end}{marks}"
    return quote(text) if _LIKE_OURS.search(code) else text


def is_harmless(text: str) -> bool:
    """Tell whether a text can stand in a report as it is: no HTML, image, heading, dangerous link or open fence."""
    if strip_invisible(text) != text or len(text) > MAX_CHARS:
        return False
    environment: dict[str, object] = {}
    tokens = _parser().parse(f"{text}\n\nend\n", environment)
    if not tokens or tokens[-1].type != "paragraph_close" or tokens[-1].level or tokens[-2].content != "end":
        return False
    parts: list[Token] = []
    for token in tokens:
        for piece in _pieces(token.content) if token.type == "inline" else ():
            _parser().inline.parse(piece, _parser(), environment, parts)
    if environment.get("references") or {token.type for token in (*tokens, *parts)} & _HARMFUL:
        return False
    links = (str(token.attrGet("href")) for token in parts if token.type == "link_open")
    return all(safe_url(link) for link in links)


@functools.cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    # Inline content is parsed by the walker, in pieces.
    parser.core.ruler.disable(["inline", "text_join"])
    # Dangerous links are dropped when they are rendered; refused here, they would stay as text.
    parser.validateLink = _accept  # type: ignore[method-assign]
    return parser


def _accept(url: str) -> bool:  # noqa: ARG001 - the parser's signature
    return True


class _Walker:
    """Turns the flat list of tokens into blocks; lists and quotations around code are split at it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._heading = 0  # the level of the one that is open
        self._markers: list[str] = []  # of the open list items, outermost first
        self._marker: str | None = None  # of an item whose first line is still to come
        self._list: list[str] = []
        self._rows: list[list[str]] | None = None
        self._label = ""  # of an admonition whose text is still to come
        self._scope: Scope = ""  # of the admonition that is open, and whether it is a caveat
        self._warns = False
        self._nested = False  # in what is indented below an admonition's mark
        self._quoted = 0  # how many quotations are open
        self._list_warns = False

    def take(self, token: "Token", environment: dict[str, object]) -> None:
        match token.type:
            case "inline":
                self._inline(token, environment)
            case "fence" | "code_block":
                self._code(token, environment)
            case "heading_open" | "heading_close":
                self._heading = int(token.tag[1:]) if token.type == "heading_open" else 0
                self._scope = ""
            case "blockquote_open" | "blockquote_close":
                self._quotation(token.nesting)
            case "list_item_open" | "list_item_close" | "bullet_list_close" | "ordered_list_close":
                self._listed(token)
            case "table_open":
                self._end_list()
                self._leave_indented()
                self._rows = []
            case "tr_open" if self._rows is not None:
                self._rows.append([])
            case "table_close":
                self._end_table()
            case _:
                pass  # raw HTML and rules are dropped, other tokens only enclose

    def finish(self) -> None:
        """Add a label after which nothing came."""
        self._end_list()
        self._end_label()

    def _inline(self, token: "Token", environment: dict[str, object]) -> None:
        if not self._rows and not self._heading:
            self._leave_indented()
            for part in parts(token.content):
                self._prose(part, environment)
            return
        pieces = [piece for piece in _rendered(token.content, environment, badges=not self._heading) if piece]
        if self._rows:
            self._rows[-1].append(" ".join(pieces))
        else:
            words = " ".join(pieces).replace("\n", " ").replace("**", "")
            self._add("heading", words, level=self._heading)

    def _quotation(self, nesting: int) -> None:
        self._quoted += nesting
        if self._scope == "quoted" and not self._quoted:
            self._end_list()
            self._scope = ""

    def _leave_indented(self) -> None:
        if self._scope == "indented" and not self._nested:
            self._scope = ""

    def _prose(self, part: "Part", environment: dict[str, object]) -> None:
        text = part.text
        if part.ends:
            self._scope = ""
        if not self._markers:
            text = f"{self._label} {text}" if self._label else text
            self._label = text.strip() if lone_label(text) else ""
        is_caveat = begins_caveat(text)
        scope = part.scope or ("quoted" if is_caveat else "")
        if scope and (self._quoted or scope != "quoted"):
            self._scope, self._warns = scope, is_caveat
        if self._label and not self._markers:
            return
        for piece in _rendered(text, environment):
            if piece and self._markers:
                self._list_line(piece)
            elif piece:
                self._add("prose", piece, warns=is_caveat)

    def _end_label(self) -> bool:
        """Write a label that has no prose beside it as a paragraph; tell whether it warns."""
        label, self._label = self._label, ""
        for piece in _rendered(label, {}) if label else ():
            self.blocks.append(Block(kind="prose", text=piece, warns=begins_caveat(label)))
        return begins_caveat(label)

    def _listed(self, token: "Token") -> None:
        if token.type == "list_item_open":
            marker = f"{token.info}{token.markup}" if token.info else "-"
            self._markers.append(marker)
            self._marker = marker
        elif token.type == "list_item_close":
            self._markers.pop()
            self._marker = None
            if sum(map(len, self._list)) > _MAX_BLOCK:
                self._end_list()
        elif not self._markers:
            self._end_list()

    def _list_line(self, text: str) -> None:
        self._list_warns = self._list_warns or (bool(self._scope) and self._warns)
        outer = " " * sum(len(marker) + 1 for marker in self._markers[:-1])
        inner = outer + " " * (len(self._markers[-1]) + 1)
        if self._marker is None:
            self._list.append("")
        first = inner if self._marker is None else f"{outer}{self._marker} "
        self._list.append(first + text.replace("\n", f"\n{inner}"))
        self._marker = None

    def _end_list(self) -> None:
        text = textwrap.dedent("\n".join(self._list)).strip("\n")
        warns, self._list_warns = self._list_warns, False
        self._list.clear()
        self._add("list", text, warns=warns)

    def _code(self, token: "Token", environment: dict[str, object]) -> None:
        if token.type == "code_block" and self._scope == "indented" and not self._nested:
            # More paragraphs of a MkDocs admonition: indented, and no code.
            self._nested = True
            for inner in _parser().parse(token.content, environment):
                self.take(inner, environment)
            self._nested = False
            return
        named = _LANGUAGE.match(strip_invisible(token.info).strip())
        if token.content.strip():
            self._add("code", token.content, named[0] if named else None)

    def _end_table(self) -> None:
        rows = [_row(cells) for cells in self._rows or []]
        width = min(len((self._rows or [[]])[0]), _MAX_COLUMNS)
        self._rows = None
        head = [rows[0], "|" + " --- |" * width] if rows else []
        part: list[str] = []
        for row in rows[1:]:
            if not row.strip("| "):
                continue
            if part and sum(map(len, part)) + len(row) > _MAX_BLOCK:
                self._add("table", "\n".join([*head, *part]))
                part = []
            part.append(row)
        self._add("table", "\n".join([*head, *part]))

    def _add(
        self, kind: Kind, text: str, language: str | None = None, *, warns: bool = False, level: int = 0
    ) -> None:
        if kind != "list" and self._list:
            self._end_list()
        if text.strip():
            warns = self._end_label() or warns or (bool(self._scope) and self._warns)
            self.blocks.append(Block(kind=kind, text=text, language=language, warns=warns, level=level))


def _rendered(content: str, environment: dict[str, object], *, badges: bool = True) -> Iterable[str]:
    parser = _parser()
    known = environment.get("references")
    references = known if isinstance(known, dict) else {}
    for source in _pieces(content):
        piece = source
        if "][" in source:
            piece = _CROSS.sub(lambda found: _without_target(found, references), source)
        if piece.count("[") > _MAX_BRACKETS:
            yield as_paragraph(escape(piece))
            continue
        tokens: list[Token] = []
        parser.inline.parse(piece, parser, environment, tokens)
        yield render_inline(tokens, badges=badges)


def _without_target(found: re.Match[str], references: Container[str]) -> str:
    """Return the words of a cross-reference to an object or page; what is no such reference comes back whole."""
    shown = found["shown"] or found["words"]
    target = found["target"] or found["page"] or shown or ""
    return found[0] if not shown or " ".join(target.split()).upper() in references else str(shown)


def _pieces(content: str) -> Iterable[str]:
    start = 0
    while len(content) - start > _MAX_PIECE:
        window = content[start : start + _MAX_PIECE]
        cut = max(window.rfind("\n"), window.rfind(" ")) + 1 or _MAX_PIECE
        yield window[:cut]
        start += cut
    yield content[start:]


def _row(cells: Sequence[str]) -> str:
    # Nothing in a cell can begin a block, so that what escapes that is not needed.
    bare = (_CELL_START.sub("", cell.replace("\n", " ")) for cell in cells[:_MAX_COLUMNS])
    shown = (cell.replace("|", r"\|") for cell in bare)
    return "| " + " | ".join(shown) + " |"


Scope = Literal["", "indented", "fenced", "quoted"]

_CAVEAT = (
    r"warnings?|cautions?|danger|important|attention|notes?|notice|beware|caveats?|limitations?|known issues?|bug"
    r"|error|failure|security|deprecat(?:ed|ion)|breaking(?:[ -]changes?)?|version[ -](?:added|changed|deprecated|removed)"
)
_SINCE = r"(?:added|changed|removed|deprecated) (?:in|since)(?: version)? v?\d[\w.]{0,20}"
_OTHER = r"tips?|hint|info|abstract|example|success|question|quote|todo|seealso|see[ -]also|details"
_TITLE = r"(?:[ ]?[(:][^*_`\n]{0,80})?[!:.]?"
_BEGINS = re.compile(
    rf"(?:[^\w\s*`\[\\]{{1,3}}\s*)?(?:(\*\*|__)(?:{_CAVEAT}|{_SINCE}){_TITLE}\1|(?:{_CAVEAT}): )",
    re.IGNORECASE,
)
_LONE = re.compile(rf"(\*\*|__)(?:{_CAVEAT}|{_SINCE}|{_OTHER}){_TITLE}\1:?", re.IGNORECASE)
_KNOWN = re.compile(rf"(?:{_CAVEAT}|{_OTHER})", re.IGNORECASE)
_MARK = re.compile(
    r"(?P<mark>!!!|\?\?\?\+?|:{3,9}|/{3,9})[ \t]*(?P<name>[A-Za-z][\w.-]{0,60})?[ \t]*(?P<rest>.*)"
    r"|\[!(?P<quoted>[A-Za-z]{1,20})\][+-]?[ \t]*(?P<words>.*)"
)
_QUOTED_TITLE = re.compile(r"""(?:inline(?: end)?[ ]*)?"([^"]{0,200})"|\|[ ]*(.{0,200})|\[([^\]]{0,200})\]""")
_ATTRIBUTES = re.compile(r"""\{(?:[^{}]{0,200}?title="([^"{}]{0,200})")?[^{}]{0,200}\}""")
_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class Part:
    """Markdown inside or outside of an admonition. ``scope`` tells how far one that begins here goes on.

    ``ends`` is set where a fenced one has been closed right before.
    """

    text: str
    scope: Scope = ""
    ends: bool = False


def parts(content: str) -> Iterator[Part]:
    """Yield a paragraph's Markdown without the marks of admonitions; their kind and title become a label."""
    if not any(mark in content for mark in ("!!!", "???", ":::", "///", "[!")):
        yield Part(content)
        return
    lines: list[str] = []
    label, title, ends = "", "", False
    scope: Scope = ""
    for line in content.split("\n"):
        found = _MARK.fullmatch(line.strip())
        opened = _opened(found) if found else None
        if opened is None:
            lines.append(line)
            continue
        if lines or label or ends:
            yield Part(_labelled(label, title, "\n".join(lines)), scope, ends)
        label, title, words, scope = opened
        ends = not scope
        lines = [words] if words else []
    yield Part(_labelled(label, title, "\n".join(lines)), scope, ends)


def lone_label(text: str) -> bool:
    """Tell whether a paragraph is nothing but a label, which belongs to what comes next."""
    return _LONE.fullmatch(text.strip()) is not None


def begins_caveat(text: str) -> bool:
    """Tell whether a text begins with the label of a warning or note."""
    return _BEGINS.match(text) is not None


def _opened(found: re.Match[str]) -> tuple[str, str, str, Scope] | None:
    """Return label, title, first words and scope of what a line opens; no scope where it closes; None for text."""
    if found["quoted"]:
        known = _KNOWN.fullmatch(found["quoted"])
        return (_shown(found["quoted"]), "", found["words"], "quoted") if known else None
    mark, name, rest = found["mark"], found["name"] or "", found["rest"]
    is_fence = mark[0] in ":/"
    if not name:
        return ("", "", "", "") if is_fence and not rest else None
    titled = _QUOTED_TITLE.fullmatch(rest) or _ATTRIBUTES.fullmatch(rest)
    title = next((group for group in titled.groups() if group), "") if titled else ""
    if not titled and is_fence:
        title, rest = rest, ""
    words = "" if titled else rest
    if not _KNOWN.fullmatch(name):
        if mark[0] == ":":
            return "", "", title, ""  # a tab or another container: its words are kept
        return (_shown(name), title, "", "fenced" if is_fence else "indented") if titled else None
    return _shown(name), title, words, "fenced" if is_fence else "indented"


def _shown(name: str) -> str:
    return name.replace("-", " ").replace("seealso", "see also").capitalize()


def _labelled(label: str, title: str, body: str) -> str:
    if not label:
        return body
    title, body = re.sub(r"[*_`]", "", title).strip(), body.strip()
    if title and body and len(title) <= _LONGEST_TITLE:
        return f"**{label} ({title}):** {body}"
    return f"**{label}:** {title}{' ' if title and body else ''}{body}".rstrip()
