"""An answer taken apart into passages (SPEC 3.7): a heading and what stands below it, prose and code together."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kr.source_kinds import is_package, is_pages
from kr.text.inline import code_span, plain_line, safe_url, unlinked
from kr.text.manual import manual_markdown
from kr.text.markdown import MAX_CHARS, Block, split
from kr.text.sentences import linked_share, plain
from kr.values import Answer, Passage

MAX_SOURCES = 30
_MAX_TOTAL = 1_000_000  # characters of one answer that are read
_MAX_UNIT = 12_000  # characters of prose
_MAX_HEADING = 300
_MOSTLY = 0.8
_LOWEST = 7  # the level of a paragraph that names what follows: below all headings
_TITLE = 0
# A line that is nothing but a signature or bold words names what follows, in API references above all.
_NAMES_FOLLOWING = re.compile(
    r"(?!\*\*(?:Parameters?|Arguments?|Args|Returns?|Return type|Return value|Raises|Throws|Yields|Type|Defaults?)\b)"
    r"(?:\*\*[^*\n]{1,160}\*\*|(?P<ticks>`+)[^`\n]{1,400}(?P=ticks))[.:]?"
)
_SENTENCE = re.compile(r"\*\*([^*\s]+(?:\s[^*\s]+){4,}[.:])\*\*")
"""What LaTeX2HTML sets in bold: all of a sentence, which names nothing."""
# A heading that names no subject belongs to the text above it.
_SAYS_LITTLE = re.compile(
    r"(?:(?:code |usage )?examples?|example usage|usage|syntax|synopsis|parameters?|arguments?|returns?|return values?|remarks?"
    r"|see also|notes?|output|result|complexity|exceptions?|errors)[:.]?",
    re.IGNORECASE,
)
_FIELD = re.compile(r"\*\*(?:description|problem|solution|discussion|explanation):?\*\*:?", re.IGNORECASE)
"""Names a part of what a recipe tells, below the heading of the recipe."""
_ANNOUNCES = re.compile(
    r"\W*(?:Parameters?|Arguments?|Args|Attributes|Returns?|Raises|Throws|Yields|Exceptions)\W*:\W*"
)
_SIGNATURE = re.compile(
    r"(?:(?:async|export|declare|public|abstract|default|static)\s+)*(?:def|class|function|interface|type|const \w+:)\b"
)
_LISTED = re.compile(
    r"(?:val|external|exception|def|defp?|func|function|fn|proc|sub|method)\s+[\w(][^\n]{1,300}"
)
_FEWEST_LISTED = 3  # declarations of a page that lists them
_SHAPE = re.compile(r"\s*(?:(?:export|declare)\s+)*(?:interface|type)\s+\w")
_DECLARED = re.compile(r"(?:export\s+)?(?:declare|interface|type)\s")
DECORATED = re.compile(
    r"(?:@(?:\w+\.)?(?:classmethod|staticmethod|property|cached_property|overload|abstractmethod)\n)+"
)
"""What stands above a signature of Python and says nothing of how it is called."""
IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|#include|using\b|package\b|use\s+\w+|require\b"
    r"|(?:const|let|var)\s[^=]*=\s*(?:await\s+)?(?:require|import)\b)"
)
_CLASS = re.compile(r"(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class [^\n]*\{\n")
_BODY = re.compile(r"\) \{$|^\s+(?:[\w.]+ =|return)\s|\bthis\.", re.MULTILINE)
"""What a class of JavaScript has that does something, and a declaration of it has not."""
_ACTS = re.compile(
    r"\A(?:(?:async|export|default)\s+)*(?:def|function)\b[^\n]*[{:]\n|^(?:if|for|await|try|[\w.]+\(|(?:const|let|var) [^:\n]*=)",
    re.MULTILINE,
)
"""A body, or a statement at the margin: what a declaration does not have."""
_INSTALLS = re.compile(
    r"\s*(?:[$#>] )?(?:sudo )?(?:python3? -m )?(?:npm|yarn|pnpm|bun|pip3?|pipx|uv(?: pip)?|poetry|conda|brew|apt|apt-get|cargo|go|git) "
    r"(?:-\S+ )*(?:install|i|add|ci|get|clone)\b"
)
_SYMBOL = re.compile(r"[A-Za-z_@][\w/@-]*(?:\.[A-Za-z_]\w*)+(?:\(\))?|[A-Za-z]*_\w+", re.ASCII)
# Buttons of RDoc and rustdoc, and the line below a page.
_CHROME = re.compile(
    r"[ ]*\bclick to toggle source\b|[ ]*ⓘ(?:Notable traits for [^\n]{1,80}$)?| ?(?:\d[\d.]+ )?· \[?source\b(?:\]\([^()\s]*\))?",
    re.MULTILINE,
)
_FOOTER = re.compile(
    r"[\s|*>]*(?:Copyright\s*(?:©|\(c\)|\d{4})|©\s*\d{4}|(?:This|The) (?:document|page) (?:was |is )?(?:last )?(?:generated|translated|modified|updated)\b"
    r"|Generated (?:by|on)\b|Last (?:modified|updated|changed)\b)[^\n]{0,400}[\s|:-]*",
    re.IGNORECASE,
)
# What says nothing to a reader: a class without bases or arguments, as installed sources show it.
_BARE = re.compile(r"\s*(?:export\s+|declare\s+|public\s+|abstract\s+)*class\s+\w+\s*[:;{]?\s*}?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a passage came from. ``address`` is safe Markdown; ``url`` is set when it is a web address.

    ``number`` counts the places of one answer, in its order.
    """

    number: int
    source: str
    address: str
    url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Blocks that belong together, and the ``path`` of headings above them, the outermost first."""

    origin: Origin
    path: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def heading(self) -> str | None:
        """The headings on one line; None where there is none."""
        return " > ".join(self.path[-3:]) or None

    @property
    def title(self) -> str:
        """The headings in plain words, for a ranking."""
        return " > ".join(plain(part).replace("`", "").replace("**", "") for part in self.path)

    @property
    def text(self) -> str:
        """What stands in it, code included."""
        return "\n\n".join(block.text for block in self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """An answer taken apart. ``cut`` are addresses of which only the beginning was read; ``is_cut``: more was left out."""

    units: tuple[Unit, ...] = ()
    cut: frozenset[str] = frozenset()
    is_cut: bool = False


@dataclass(slots=True)
class _Reader:
    answer: Answer
    origins: dict[str, Origin] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    cut: set[str] = field(default_factory=set)
    is_cut: bool = False
    left: int = _MAX_TOTAL
    seen: set[tuple[tuple[str, ...], tuple[Block, ...]]] = field(default_factory=set)

    def read(self, passage: Passage) -> None:
        origin = self._origin(passage)
        if origin is None or self.left <= 0:
            self.is_cut = True
            return
        text = passage.text[: min(self.left, MAX_CHARS)]
        if passage.is_cut or len(text) < len(passage.text):
            self.cut.add(origin.address)
        self.left -= len(text)
        found = split(text)
        if is_pages(self.answer.source):
            whole = (part for block in found for part in _as_manual(block))
            found = tuple(block for block in map(_without_chrome, whole) if block.text)
        # A page's first heading says what its title says, without the site's name.
        is_headed = is_pages(self.answer.source) and _is_headed(found, passage.title or "")
        if is_pages(self.answer.source) and sum(map(_is_listed, found)) >= _FEWEST_LISTED:
            found = tuple(map(_as_name, found))
        for path, blocks in units_of(found, "" if is_headed else _title(passage.title or "")):
            if (path, blocks) not in self.seen:
                self.seen.add((path, blocks))
                self.units.append(Unit(origin=origin, path=path, blocks=blocks))

    def _origin(self, passage: Passage) -> Origin | None:
        address = address_of(passage, self.answer)
        is_placed = is_package(self.answer.source) and not safe_url(passage.url)
        url = None if is_placed else safe_url(passage.url) or safe_url(self.answer.url)
        # In a file of a package each name has a place of its own.
        place = f"{address}: {passage.title}" if is_package(self.answer.source) else address
        if place not in self.origins:
            if len(self.origins) == MAX_SOURCES:
                return None
            number = len(self.origins) + 1
            self.origins[place] = Origin(
                number=number, source=plain_line(self.answer.source, 40), address=address, url=url
            )
        return self.origins[place]


def address_of(passage: Passage, answer: Answer) -> str:
    """Return where a passage was read, as the report names it: a safe address, or the place inside of an installed package."""
    url = safe_url(passage.url)
    if is_package(answer.source) and not url:
        # The package's home page is not where the text was read.
        return plain_line(passage.url or passage.title or "the installed package", 300)
    return url or safe_url(answer.url) or "no address"


def _as_manual(block: Block) -> tuple[Block, ...]:
    """Take a preformatted page of a manual apart; any other block is left as it is."""
    manual = manual_markdown(block.text) if block.kind == "code" and not block.language else None
    return split(manual) if manual else (block,)


def _without_chrome(block: Block) -> Block:
    """Return a block of a page without what its generator put there for a pointer, and nothing of a line of copyright."""
    if block.kind == "code":
        return block
    text = "" if _FOOTER.fullmatch(block.text) else _CHROME.sub("", block.text).strip("\n")
    return replace(block, text=_SENTENCE.sub(r"\1", text) if _SENTENCE.fullmatch(text) else text)


@lru_cache(maxsize=1)
def read_answer(answer: Answer) -> Material:
    """Take an untrusted answer apart. Repeated units are kept once; sizes are bounded.

    The last answer is remembered: it is looked at once to see whether it holds anything, and then used.
    """
    reader = _Reader(answer)
    for passage in answer.passages:
        reader.read(passage)
    return Material(units=tuple(reader.units), cut=frozenset(reader.cut), is_cut=reader.is_cut)


def units_of(blocks: Iterable[Block], title: str = "") -> list[tuple[tuple[str, ...], tuple[Block, ...]]]:
    """Return ``(path, blocks)``: what stands below each heading, or below a line that names what follows."""
    outline = _Outline([(_TITLE, Block(kind="heading", text=title))] if title else [])
    for block in blocks:
        if block.kind == "heading" and not (
            _SAYS_LITTLE.fullmatch(block.text) and outline.is_above(block.level)
        ):
            outline.enter(block.level, block)
        elif block.kind == "heading":
            outline.hold(Block(kind="prose", text=f"**{block.text}:**"))
        elif _is_name(block) and not (outline.is_announced or _FIELD.fullmatch(block.text)):
            outline.enter(_LOWEST, block)
        elif not _is_bare(block) and not links_only(block):
            outline.hold(block)
    outline.end()
    return outline.found


@dataclass(slots=True)
class _Outline:
    """Headings open and close by their levels; ``is_open``: the last name has nothing below it yet."""

    above: list[tuple[int, Block]]
    found: list[tuple[tuple[str, ...], tuple[Block, ...]]] = field(default_factory=list)
    held: list[Block] = field(default_factory=list)
    size: int = 0
    is_open: bool = False

    def is_above(self, level: int) -> bool:
        """Whether the heading that is open is of a higher rank."""
        return bool(self.above) and _TITLE < self.above[-1][0] < level

    @property
    def is_announced(self) -> bool:
        """Whether the line before announces what follows ("Raises:"), so that a name is no heading."""
        return bool(self.held) and _ANNOUNCES.fullmatch(self.held[-1].text) is not None

    def hold(self, block: Block) -> None:
        length = 0 if block.kind == "code" else len(block.text)
        if self.held and self.size + length > _MAX_UNIT:
            self._close()
        self.held.append(block if block.kind == "code" else replace(block, text=unlinked(block.text)))
        self.size += length
        self.is_open = False

    def enter(self, level: int, block: Block) -> None:
        is_name = level == _LOWEST or _NAMES_FOLLOWING.fullmatch(block.text) is not None
        if self.is_open and is_name and level == self.above[-1][0]:
            self.above[-1] = (level, _joined(self.above[-1][1], block))  # another form, say an overload
            return
        self.end()
        while self.above and self.above[-1][0] >= level > _TITLE:
            self.above.pop()
        if not (level == 1 and self.above and self.above[-1][1].text == block.text):
            self.above.append((level, block))
        self.is_open = is_name

    def end(self) -> None:
        if self.is_open and self.above[-1][0] == _LOWEST:
            self.held.append(self.above.pop()[1])  # it named nothing, so it is a text of its own
        self._close()
        self.is_open = False

    def _close(self) -> None:
        if self.held:
            self.found.append((tuple(block.text for _, block in self.above), tuple(self.held)))
        self.held, self.size = [], 0


def _is_headed(blocks: Sequence[Block], title: str) -> bool:
    """Tell whether a page has a heading that says what its title says, be it not of the highest rank (DocBook's sections)."""
    first = next((plain(block.text) for block in blocks if block.kind == "heading"), "")
    return any(block.level == 1 for block in blocks) or (first != "" and f" {first} " in f" {plain(title)} ")


def _joined(one: Block, other: Block) -> Block:
    text = f"{one.text}, {other.text}"
    return Block(kind="prose", text=text if len(text) <= _MAX_HEADING else one.text)


def _title(title: str) -> str:
    """A title on one line, as code where it is the name of something: ``click.Option``; what it marks as code stays so."""
    if _SYMBOL.fullmatch(title):
        return f"`{title}`"
    return re.sub(r"\\`([^`\\]+)\\`", r"`\1`", plain_line(title, 200))


def _is_name(block: Block) -> bool:
    return block.kind == "prose" and not block.warns and _NAMES_FOLLOWING.fullmatch(block.text) is not None


def links_only(block: Block) -> bool:
    """Tell whether a paragraph or list is hardly more than links: it leads elsewhere and says nothing here."""
    return block.kind in {"prose", "list"} and linked_share(block.text) > _MOSTLY


def is_shape(code: str) -> bool:
    """Tell whether code is a type of TypeScript alone."""
    return _SHAPE.match(code) is not None


def is_example(block: Block) -> bool:
    """Tell whether a block is code that does something: neither a declaration nor the command that installs a package."""
    return block.kind == "code" and not is_declaration(block) and not _INSTALLS.match(block.text)


def is_import(code: str) -> bool:
    """Tell whether code does nothing but make names known."""
    return all(IMPORT.match(line) for line in code.split("\n") if line.strip())


def is_declaration(block: Block) -> bool:
    """Tell whether a block says how something is called or typed: one or two lines, or more that end as a parameter list does."""
    code = DECORATED.sub("", block.text.strip(), count=1)
    if block.kind != "code" or _ACTS.search(code):
        return False
    if _DECLARED.match(code) or (_CLASS.match(code) and not _BODY.search(code)):
        return True
    first, *others = code.split("\n")
    if first[-1:] not in {"(", "[", "{", "<", ":", ",", "\\"} and not all(map(_SIGNATURE.match, others)):
        return False  # of Ruby, Lua or Elixir: what follows is its body
    is_short = code.count("\n") <= 2 or code.rpartition("\n")[2].startswith(")")
    return is_short and _SIGNATURE.match(code) is not None


def is_usage(markdown: str) -> bool:
    """Tell whether a section of a document shows code that uses the package."""
    return "```" in markdown and any(is_example(block) for block in split(markdown))


def _is_listed(block: Block) -> bool:
    return block.kind == "code" and _LISTED.fullmatch(block.text.strip()) is not None


def _as_name(block: Block) -> Block:
    """Return a declaration of an API page that lists one after another as what it is there: the name of what follows."""
    return Block(kind="prose", text=code_span(block.text.strip())) if _is_listed(block) else block


def _is_bare(block: Block) -> bool:
    return block.kind == "code" and _BARE.fullmatch(block.text) is not None
