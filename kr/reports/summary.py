"""What the taken passages answer in a few lines, and the sentences that warn (SPEC 3.7)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from kr.reports.choosing import WARNED_OFF, Ranked
from kr.reports.passages import Unit, is_example
from kr.reports.ranking import rarity
from kr.reports.terms import Terms
from kr.text.markdown import Block, split
from kr.text.sentences import (
    Sentence,
    leans,
    plain,
    points_back,
    points_on,
    sentences_of,
    understandable,
)

MOST_LINES = 5
"""Of an answer, code included (SPEC 3.7)."""

_MOST_SENTENCES = 3
_CODE_LINES = 4
_MOST_CODE = 280  # characters
_MOST_ITEM = 300  # characters of an item of a list, which tells of one parameter or member
_LONGEST_LINE = 160
_STANDS = 0.5
_CODE_TELLS = 0.6  # what code tells of the question beside prose
_EXAMPLE = 2.0  # what code that does something counts more than a declaration
_MOST_WORDS = 6
_TORN = 0.5  # what a statement loses that stands inside of another one
_SHOWS = 2.0  # words of the question in a statement out of a longer one that names nothing
_SHORT = 25  # characters: less is a line such as "Added in: v2"
_OPENING = 0.35  # of all that is asked: what the first sentence of a passage counts for being the first
_NAMED = 0.1  # of it: what a sentence counts that names something
_KNOWN = 0.3  # what a word counts that a better sentence has told
_OF_BEST = 0.4  # what a further sentence must tell
_LABELLED = 0.5
_ITEM = 0.75  # what an item counts that is about something the question doesn't name
_INTRODUCES = 0.8  # what a sentence counts that names what the code after it shows
_ANNOUNCES = 0.3  # what a sentence counts that announces what may not follow here
_WARNS = 0.7
_SUBJECT = 4  # words of a sentence that say what it is about
_READS_ON = 0.7  # how well a sentence must stand to be told for its neighbour's sake
_NEARLY = 0.7  # of what the first passage's answer holds: what another one must hold to be told beside it
_MOST_OTHERS = 2
_ALIKE = 0.8
_MOST_CAVEATS = 4

_NAME = re.compile(r"`([A-Za-z_@.][\w.:@/-]{1,80})(?:\([^`]*\))?`")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_SUBJECT_NAME = re.compile(
    r"(?:(?<=\.)|(?<=::)|(?<=`)|(?<=\s)|^)([A-Za-z_]\w{2,})(?=\(|`)|(?:(?<=\.)|(?<=::))([A-Za-z_]\w{2,})$"
    r"|\b((?:[A-Z]?[a-z0-9]+[A-Z]\w*|\w+_\w+))"
)
_COMMENT = re.compile(r"\s*(?:#(?!!|include)|//|/\*|\*|--\s|<!--|[{}()\[\];,]*\s*$|\.\.\.|…)")
_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|#include|using\b|package\b|use\s+\w+|require\b"
    r"|(?:const|let|var)\s[^=]*=\s*(?:await\s+)?(?:require|import)\b)"
)
_LITERAL = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_PROMPT = re.compile(r"^(?:>>> |\.\.\. ?|\$ |> )")
_DOES = re.compile(r"[(=@{<]|^\s*(?:await|return|yield|import|from|raise|with|for|if)\b")
_GOES_ON = re.compile(r"\s|[)\]}.,;|&?:=+<>]|(?:else|except|finally|elif|catch|then|end|do)\b|\.\.\. ?")
_HOLDS_ON = re.compile(r"@\w|\s*(?:#|//)|.*[<,\\]\s*$")
_TELLS = re.compile(r"(?:\b[a-z]{2,},? ){4,}[a-z]{2,}\b")  # words of a sentence, which are no code
_PRINTED = frozenset({"console", "text", "plain", "output", "log", "pytb", "traceback"})
_PARAMETER = re.compile(r"[\s*.]*([A-Za-z_$][\w$]*)\??\s*[:=,]?")
_CAVEAT = re.compile(
    r"\b(?:deprecat\w*|breaking|warn(?:ing)?s?|caution|caveats?|beware|important|must not|only works|not supported|unsupported"
    r"|experimental|unstable|removed|renamed|since v?\d|as of v?\d|requires? \S+ ?v?\d|v\d+(?:\.\d+)+|versions? v?\d|(?:added|changed|new|introduced) in"
    r"|limitations?|known issues?|security)\b"
    r"|注意|警告|弃用|废弃|不支持|不兼容|限制",
    re.IGNORECASE,
)
_CAVEAT_HEADING = re.compile(
    r"\W*(?:\d[\d.]*\W+)?(?:(?:known|common|current|important|notable|security|version|major|some)\s+)*"
    r"(?:caveats?|limitations?|restrictions?|gotchas?|pitfalls?|warnings?|cautions?|beware|breaking changes?|deprecat\w*"
    r"|(?:in)?compatibilit\w*|notes?|notice|(?<=known )(?:issues?|problems?|bugs?))\b"
    r"|\W*(?:使用|重要|已知的?|版本)?(?:注意|警告|限制|局限|弃用|废弃|不兼容|兼容性)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence with the unit that it stands in, as clean Markdown on one line."""

    unit: Unit
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer of one passage: sentences, and the code that shows the call; either may be missing."""

    unit: Unit
    sentences: tuple[str, ...]
    code: Block | None = None


@dataclass(slots=True, eq=False)
class _Said:
    """A sentence or item: what of the question it ``told``, what else speaks for it, and how well it stands alone."""

    at: int
    sentence: Sentence
    told: frozenset[int]
    extra: float
    form: float

    def score(self, weights: Sequence[float], known: frozenset[int] = frozenset()) -> float:
        """What it tells beside the words that are known."""
        told = sum(weights[at] * (_KNOWN if at in known else 1.0) for at in self.told)
        return (told + self.extra) * self.form


@dataclass(frozen=True, slots=True)
class _Passage:
    """A passage as far as the report shows it; ``titled`` and ``shown``: what of the question its last heading and its code hold."""

    unit: Unit
    blocks: Sequence[Block]
    said: Sequence[_Said]
    titled: frozenset[int]
    shown: frozenset[int]

    def worth(self, weights: Sequence[float]) -> float:
        """How much of the question one of its sentences tells below its heading."""
        found = [sum(weights[at] for at in one.told | self.titled) * one.form for one in self.said]
        return max([*found, _CODE_TELLS * sum(weights[at] for at in self.shown | self.titled)])


def summarize(
    shown: Sequence[tuple[Unit, Sequence[Block]]], terms: Terms, room: int = 800
) -> tuple[Summary, ...]:
    """Return the answer of the best of some passages in its own words, and a sentence of each that answers nearly as well.

    The passages are given with those of their blocks that the report shows, the best first. An answer has at most five
    lines: the sentences that tell most of the question, in ``room`` characters, and the shortest whole code that shows it. No
    sentence leans on what is not there, or is about something that the source warns off.
    """
    sentences = [_units(sentences_of(blocks)) for _, blocks in shown]
    held = [terms.within(plain(one.text)) for said in sentences for one in said]
    weights = [rare * term.weight for rare, term in zip(rarity(terms, held), terms.all, strict=True)]
    passages = [
        _read(unit, blocks, said, terms, weights)
        for (unit, blocks), said in zip(shown, sentences, strict=True)
    ]
    worth = [passage.worth(weights) for passage in passages]
    found = [_answer(passages[0], terms, weights, room)]
    named = {passages[0].unit.heading}
    for at in sorted(range(1, len(worth)), key=lambda at: -worth[at]):
        unit, said = passages[at].unit, _best(passages[at], weights)
        if worth[at] < _NEARLY * worth[0] or len(found) > _MOST_OTHERS:
            break
        if said and unit.heading not in named:
            named.add(unit.heading)
            found.append(Summary(unit, (_clean(said.sentence.text),)))
    return tuple(found)


def _read(
    unit: Unit, blocks: Sequence[Block], sentences: Sequence[Sentence], terms: Terms, weights: Sequence[float]
) -> _Passage:
    whole = sum(sorted(weights, reverse=True)[:_MOST_WORDS])
    names = _WORD.findall(plain(unit.path[-1])) if unit.path else []
    said: list[_Said] = []
    is_opened = False
    for at, sentence in enumerate(sentences):
        form = understandable(sentence) * _standing(sentence, terms)
        extra = _LABELLED * sum(weights[n] for n in terms.within(sentence.label or ""))
        extra += _NAMED * whole * bool(_NAME.search(sentence.text))
        extra += _NAMED * whole * any(name in sentence.text for name in names)
        if not (is_opened or sentence.is_item) and form > _STANDS and len(sentence.text) > _SHORT:
            is_opened = True
            extra += _OPENING * whole
        said.append(_Said(at, sentence, terms.within(plain(sentence.text)), extra, form))
    code = "\n".join(block.text for block in blocks if block.kind == "code")
    titled = terms.within(plain(unit.path[-1])) if unit.path else frozenset()
    return _Passage(unit, blocks, said, titled, terms.within(code))


def _units(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Put together what an item of a list says: its further sentences tell of the same parameter."""
    found: list[Sentence] = []
    for sentence in sentences:
        last = found[-1] if found else None
        if (
            last
            and last.is_item
            and last.place == sentence.place
            and len(last.text) + len(sentence.text) < _MOST_ITEM
        ):
            found[-1] = replace(last, text=f"{last.text} {sentence.text}")
        else:
            found.append(sentence)
    return found


def _standing(sentence: Sentence, terms: Terms) -> float:
    """Return how well a sentence can stand in a Summary: 0 where it points elsewhere or speaks of what is warned off."""
    text = plain(sentence.text)
    warned = WARNED_OFF.search(text)
    if (
        points_back(text)
        or (warned and not terms.within(warned[0]))
        or terms.is_aside(" ".join(text.split()[:_SUBJECT]))
    ):
        return 0.0
    if points_on(text):
        return _INTRODUCES if _introduces(text) else _ANNOUNCES
    about = _ITEM if sentence.is_item and not terms.within(sentence.label or "") else 1.0
    return about * (_WARNS if sentence.warns else 1.0)


def _introduces(text: str) -> bool:
    """Tell whether a sentence names what the code after it shows."""
    return text.endswith(":") and not points_on(text[:-1]) and _NAME.search(text) is not None


def _best(passage: _Passage, weights: Sequence[float]) -> _Said | None:
    standing = [one for one in passage.said if one.form > 0 and not leans(one.sentence)]
    return max(standing, key=lambda one: (one.score(weights), -one.at), default=None)


def _answer(passage: _Passage, terms: Terms, weights: Sequence[float], room: int) -> Summary:
    chosen = _chosen(passage.said, weights)
    labels = {one.sentence.label for one in chosen if one.sentence.label}
    code = _shortest(passage, chosen, terms) or _call(passage.blocks, labels)
    lines = MOST_LINES - (len(code.text.split("\n")) if code else 0)
    told: dict[int, str] = {}
    for one in sorted(chosen, key=lambda one: -one.score(weights)):
        text = _clean(one.sentence.text)
        room -= len(text)
        if text and room >= 0 and len(told) < lines:
            told[one.at] = text
    return Summary(passage.unit, tuple(told[at] for at in sorted(told)), code)


def _chosen(said: Sequence[_Said], weights: Sequence[float]) -> list[_Said]:
    """Take the sentences that tell most anew, each with the one that it leans on, and what reads on after the best one."""
    left = [one for one in said if one.form > 0]
    chosen: list[_Said] = []
    known: frozenset[int] = frozenset()
    enough = _OF_BEST * max((sum(weights[at] for at in one.told) * one.form for one in left), default=0.0)
    while left and len(chosen) < _MOST_SENTENCES:
        one = max(left, key=lambda one: (one.score(weights, known), -one.at))
        left.remove(one)
        if one.score(weights, known) < enough:
            break
        _add(chosen, one, said)
        known |= one.told
    if chosen:
        best = max(chosen, key=lambda one: one.score(weights))
        for one in said[best.at + 1 : best.at + 2]:
            reads_on = len(chosen) == 1 and one.form >= _READS_ON and not one.sentence.is_item
            if reads_on or (one.form > 0 and _introduces(one.sentence.text)):
                _add(chosen, one, said)
    return sorted(chosen, key=lambda one: one.at)


def _add(chosen: list[_Said], one: _Said, said: Sequence[_Said]) -> None:
    before = said[one.at - 1] if one.at and leans(one.sentence) else None
    if leans(one.sentence) and (before is None or before.form <= 0 or leans(before.sentence)):
        return
    for new in (before, one):
        is_known = new is None or any(_is_alike(new.sentence.text, old.sentence.text) for old in chosen)
        if new and not is_known and len(chosen) < _MOST_SENTENCES:
            chosen.append(new)


def _shortest(passage: _Passage, chosen: Sequence[_Said], terms: Terms) -> Block | None:
    """Return the shortest whole code that shows the answer: an example, statements of one, or the line of it that calls what is named.

    What a program printed is no code.
    """
    heading = plain(passage.unit.path[-1]) if passage.unit.path else ""
    names = {name.rpartition(".")[2]: 1.0 for one in chosen for name in _NAME.findall(one.sentence.text)}
    names.update({name: 2.0 for found in _SUBJECT_NAME.findall(heading) for name in found if name})
    best: tuple[float, Block] | None = None
    for number, block in enumerate(block for block in passage.blocks if block.kind == "code"):
        example = _EXAMPLE * is_example(block)
        if block.language in _PRINTED and not _PROMPT.search(block.text):
            continue
        for text, is_whole in _statements(block.text):
            bare = _LITERAL.sub("", _doing(text))
            found = set(_WORD.findall(bare)) & names.keys()
            told = sum(names[name] for name in found) + sum(terms.all[at].weight for at in terms.within(bare))
            if told <= 0 or _TELLS.search(bare) or not (is_whole or (found and example) or told >= _SHOWS):
                continue
            score = (
                told + example + 0.5 * ("(" in text) - len(text) / 400 - 0.1 * number - _TORN * (not is_whole)
            )
            if best is None or score > best[0]:
                best = (score, Block(kind="code", text=text, language=block.language))
    return best[1] if best else None


def _doing(code: str) -> str:
    """Return code without its comments, and without its imports where it does more."""
    lines = [line for line in code.split("\n") if not _COMMENT.match(_PROMPT.sub("", line))]
    doing = [line for line in lines if not _IMPORT.match(_PROMPT.sub("", line))]
    return "\n".join(doing or lines)


def _call(blocks: Sequence[Block], labels: AbstractSet[str]) -> Block | None:
    """Return a signature of many lines on one, with the parameters that the sentences tell of."""
    code = next((block for block in blocks if block.kind == "code"), None)
    if (
        code is None
        or is_example(code)
        or not code.text.rstrip().rpartition("\n")[2].lstrip().startswith(")")
    ):
        return None
    first, *lines, last = code.text.strip("\n").split("\n")
    # The parameters of types stand before those of the call.
    opened = max((at for at, line in enumerate(lines) if line.rstrip().endswith(">(")), default=-1)
    if opened >= 0:
        first, lines = f"{first.partition('<')[0]}(", lines[opened + 1 :]
    kept: list[str] = []
    for line in lines:
        name = _PARAMETER.match(line)
        if name and (name[1] in labels or not labels) and name[1] not in {"self", "args", "kwargs"}:
            kept.append(line.strip().rstrip(",") if labels else name[1])
        elif kept[-1:] != ["..."] and labels:
            kept.append("...")
    text = f"{first.strip()}{', '.join(kept)}{last.strip()}"
    return replace(code, text=text) if len(text) <= _MOST_CODE else None


def _statements(code: str) -> Iterator[tuple[str, bool]]:
    """Yield code of few lines: the whole of it, or whole statements (True) and single lines inside of longer ones (False)."""
    lines = code.strip("\n").split("\n")
    if len(lines) <= _CODE_LINES and len(code) <= _MOST_CODE:
        if _DOES.search(code):
            yield _dedented(lines), True
        return
    statements = _parted(lines)
    for start, statement in enumerate(statements):
        if len(statement) > _CODE_LINES:
            yield from ((text, False) for text in _inside(statement))
        lines = []
        for further in statements[start:]:
            lines += further
            text = "\n".join(lines).strip("\n")
            if len(lines) > _CODE_LINES or max(map(len, lines)) > _LONGEST_LINE or len(text) > _MOST_CODE:
                break
            if _is_closed(text) and _DOES.search(text):
                yield text, True


def _parted(lines: Sequence[str]) -> list[list[str]]:
    """Part code at its margin into statements, each with its decorators and comments; of a session, what was typed."""
    typed = [line for line in lines if line.startswith((">>> ", "..."))]
    is_session = any(line.startswith(">>> ") for line in typed)
    statements: list[list[str]] = []
    is_open = False
    for line in typed if is_session else _dedented(lines).split("\n"):
        begins = line.startswith(">>> ") if is_session else not (is_open or _GOES_ON.match(line) or not line)
        if begins or not statements:
            statements.append([])
        statements[-1].append(_PROMPT.sub("", line) if is_session else line)
        is_open = not _is_closed("\n".join(statements[-1])) or _HOLDS_ON.match(line) is not None
    return [statement for statement in statements if any(statement)]


def _inside(statement: Sequence[str]) -> Iterator[str]:
    """Yield whole statements of few lines inside of a long one, and single links of a chain of calls with what they hang on."""
    first, *body = statement
    if all(line.lstrip().startswith(".") for line in body):
        yield from (f"{first}\n{line}" for line in body if _is_closed(line))
        return
    for inner in _parted(body):
        text = "\n".join(inner).strip()
        if re.match(r"[@.|&-]", text) or first.endswith("\\"):
            continue  # it belongs to its class, or to its command
        if (
            len(inner) <= _CODE_LINES
            and len(text) <= _MOST_CODE
            and _is_closed(text)
            and text[-1] not in ",:{"
        ):
            yield text
        elif 1 < len(inner) < len(statement):
            yield from _inside(inner)


def _is_closed(text: str) -> bool:
    return all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}"))


def _dedented(lines: Sequence[str]) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def caveats(rows: Sequence[Ranked], terms: Terms, told: Iterable[str] = ()) -> list[Quotation]:
    """Return at most four sentences that warn where the question is spoken of; not those that were ``told`` already.

    That is what stands in notes and warnings that are set apart or below headings such as "Limitations", and sentences
    about versions, deprecation and limits; in ``rows``, the passages that the report is made from.
    """
    known = set(told)
    found: list[tuple[float, Quotation]] = []
    for row in rows:
        heading = _CAVEAT_HEADING.match(plain(row.unit.path[-1])) if row.unit.path else None
        below = heading is not None and not terms.within(heading[0])
        before = ""
        for sentence in sentences_of(row.unit.blocks):
            text = sentence.text
            told_of = len(terms.within(plain(text))) + (leans(sentence) and bool(terms.within(before)))
            before = plain(text)
            if not (below or sentence.warns or _warns(text, terms)) or understandable(sentence) < 0.7:
                continue
            if points_back(text) or points_on(text) or (leans(sentence) and not sentence.warns and not below):
                continue
            clean = _clean(text)
            if clean and clean not in known and (told_of or sentence.warns):
                known.add(clean)
                weight = told_of + 1.5 * (sentence.warns or below) + row.score / (rows[0].score or 1.0)
                found.append((weight, Quotation(row.unit, clean)))
    best = sorted(found, key=lambda pair: -pair[0])[:_MOST_CAVEATS]
    return [quotation for _, quotation in best]


def _warns(text: str, terms: Terms) -> bool:
    """Tell whether a sentence has a word of warning; one that the question asks about (migration) is none."""
    return any(not terms.within(found[0]) for found in _CAVEAT.finditer(text))


def _is_alike(one: str, other: str) -> bool:
    left, right = set(one.casefold().split()), set(other.casefold().split())
    return len(left & right) >= _ALIKE * min(len(left), len(right))


def _clean(sentence: str) -> str:
    """Return a piece of Markdown as one line of it, written anew: half a code span shows what it held."""
    blocks = (block.text for block in split(sentence) if block.kind != "code")
    return " ".join(blocks).replace("\n", " ").strip()
