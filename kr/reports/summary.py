"""What the best passage says itself: its own answer, and the sentences that warn (SPEC 3.7)."""

import re
from collections.abc import Iterable, Mapping, Sequence
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
"""Of a Summary, code included (SPEC 3.7)."""

_MOST_SENTENCES = 3
_CODE_LINES = 4
_MOST_CODE = 280  # characters
_MOST_ITEM = 300  # characters of an item of a list, which tells of one parameter or member
_KNOWN = 0.3  # what a word counts that a better sentence has told
_READS_ON = 0.7  # how well a sentence must stand to be told for its neighbour's sake
_EXAMPLE = 2.0  # what code that does something counts more than a declaration
_LONGEST_LINE = 160
_OF_BEST = 0.4
_LABELLED = 0.5
_OPENING = 0.35  # what the first sentence of a passage counts for being the first, of the whole question
_ALIKE = 0.8
_MOST_CAVEATS = 4
_ANNOUNCES = 0.3  # what a sentence counts that announces what may not follow here
_WARNS = 0.7
_STANDS = 0.5
_SHORT = 25  # characters: less is a line such as "Added in: v2"
_ITEM = 0.75  # what an item counts that is about something the question doesn't name
_SUBJECT = 4  # words of a sentence that say what it is about

_NAME = re.compile(r"`([A-Za-z_@][\w.:@/-]{1,80})(?:\([^`]*\))?`")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_SUBJECT_NAME = re.compile(
    r"(?:(?<=\.)|(?<=::)|(?<=`)|(?<=\s)|^)([A-Za-z_]\w{2,})(?=\(|`)|(?:(?<=\.)|(?<=::))([A-Za-z_]\w{2,})$"
)
_IDENTIFIER = re.compile(r"\b(?:[A-Z]?[a-z0-9]+[A-Z]\w*|\w+_\w+)")
_IDLE_LINE = re.compile(
    r"\s*(?:#(?!!)|//|/\*|\*|--\s|<!--|import\b|from\s+\S+\s+import\b|#include|using\b|package\b|use\s+\w+|require\b|(?:const|let|var)\s[^=]*=\s*(?:await\s+)?(?:require|import)\b|[{}()\[\];,]*\s*$|\.\.\.|…)"
)
_LITERAL = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_PROMPT = re.compile(r"^(?:>>> |\.\.\. |\$ |> )")
_SESSION = re.compile(r"^>>> ", re.MULTILINE)
_DOES = re.compile(r"[(=@{<]|^\s*(?:await|return|yield|import|from|raise|with|for|if)\b")
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
    code: Block | None


@dataclass(slots=True, eq=False)
class _Candidate:
    """A sentence or item: the weights of the words that it ``told``, what else speaks for it, and how well it stands alone."""

    at: int
    sentence: Sentence
    told: Mapping[int, float]
    extra: float
    form: float
    lead: float = 0.0
    """What it counts for being the first."""

    def score(self, known: AbstractSet[int] = frozenset()) -> float:
        """What it tells beside the words that are known."""
        told = sum(weight * (_KNOWN if at in known else 1.0) for at, weight in self.told.items())
        return (told + self.extra + self.lead) * self.form

    def worth(self) -> float:
        """Its score, wherever it stood."""
        return self.score() - self.lead * self.form


def summarize(row: Ranked, blocks: Sequence[Block], terms: Terms, room: int = 800) -> Summary:
    """Return the answer of a passage in its own words, from those ``blocks`` of it that the report shows.

    At most five lines, and ``room`` characters of sentences: the sentences that tell most of the question, and the shortest code that shows it. No
    sentence leans on what is not there, or is about something that the source warns off.
    """
    candidates = _candidates(row.unit, blocks, terms)
    chosen = _choose(candidates)
    names = {name.rpartition(".")[2]: 1.0 for c in chosen for name in _NAME.findall(c.sentence.text)}
    names.update(dict.fromkeys(_subjects(row.unit), 2.0))
    labels = {c.sentence.label for c in chosen if c.sentence.label}
    code = _shortest(blocks, terms, names) or _call(blocks, labels)
    lines = len(code.text.split("\n")) if code else 0
    told: dict[int, str] = {}
    for candidate in sorted(chosen, key=_Candidate.score, reverse=True):
        text = _clean(candidate.sentence.text)
        room -= len(text)
        if text and room >= 0 and len(told) < MOST_LINES - lines:
            told[candidate.at] = text
    sentences = [told[at] for at in sorted(told)]
    if code is None and len(sentences) > 1 and sentences[-1].endswith((":", "：")):
        sentences.pop()
    return Summary(row.unit, tuple(sentences), code)


def _candidates(unit: Unit, blocks: Sequence[Block], terms: Terms) -> list[_Candidate]:
    sentences = _units(sentences_of(blocks))
    held = [terms.within(plain(sentence.text)) for sentence in sentences]
    rare = rarity(terms, held)
    weights = [scarce * term.weight for scarce, term in zip(rare, terms.all, strict=True)]
    whole = sum(weights) or 1.0
    names = _WORD.findall(plain(unit.path[-1])) if unit.path else []
    found: list[_Candidate] = []
    is_opened = False
    for at, (sentence, own) in enumerate(zip(sentences, held, strict=True)):
        lead = 0.0
        extra = _LABELLED * sum(weights[n] for n in terms.within(sentence.label or ""))
        if (
            not is_opened
            and not sentence.is_item
            and understandable(sentence) > _STANDS
            and len(sentence.text) > _SHORT
        ):
            is_opened = True
            lead = _OPENING * whole
        extra += (
            0.1 * whole * (any(name in sentence.text for name in names) + bool(_NAME.search(sentence.text)))
        )
        form = understandable(sentence) * _standing(sentence, terms)
        found.append(_Candidate(at, sentence, {n: weights[n] for n in own}, extra, form, lead))
    return found


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
    about = _ITEM if sentence.is_item and not terms.within(sentence.label or "") else 1.0
    return about * (_ANNOUNCES if points_on(text) else _WARNS if sentence.warns else 1.0)


def _choose(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Take the best sentence, with the one that it leans on, and others that tell nearly as much anew; in their order."""
    left = [c for c in candidates if c.score() > 0]
    chosen: list[_Candidate] = []
    known: set[int] = set()
    enough = _OF_BEST * max((c.worth() for c in left), default=0.0)
    while left and len(chosen) < _MOST_SENTENCES:
        candidate = max(left, key=lambda c: (c.score(known), -c.at))
        left.remove(candidate)
        if candidate.score(known) < enough:
            break
        if any(_is_alike(candidate.sentence.text, other.sentence.text) for other in chosen):
            continue
        if leans(candidate.sentence):
            before = candidates[candidate.at - 1] if candidate.at else candidate
            if before not in chosen and (before.score() <= 0 or before is candidate):
                continue
            if before not in chosen:
                chosen.append(before)
        if len(chosen) < _MOST_SENTENCES:
            chosen.append(candidate)
        known |= candidate.told.keys()
    return sorted(_completed(chosen, candidates), key=lambda c: c.at)


def _completed(chosen: list[_Candidate], candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Where few sentences stand out, add what the passage says right after the best one, then right before."""
    if not chosen:
        return chosen
    best = max(chosen, key=_Candidate.score)
    found = list(chosen)
    for at in (best.at + 1, best.at + 2, best.at - 1):
        if len(found) >= _MOST_SENTENCES or not 0 <= at < len(candidates):
            continue
        beside = candidates[at]
        is_read_on = at < best.at or not leans(beside.sentence) or candidates[at - 1] in found
        is_new = not any(_is_alike(beside.sentence.text, other.sentence.text) for other in found)
        if is_new and beside.form >= _READS_ON and is_read_on and not beside.sentence.is_item:
            found.append(beside)
    return found


def _subjects(unit: Unit) -> list[str]:
    """Return the names that a heading gives: ``watch`` of ``fs.watch(filename)``."""
    heading = plain(unit.path[-1]) if unit.path else ""
    return [one or other for one, other in _SUBJECT_NAME.findall(heading)] + _IDENTIFIER.findall(heading)


def _shortest(blocks: Sequence[Block], terms: Terms, names: Mapping[str, float]) -> Block | None:
    """Return the shortest code that shows the answer.

    That is a whole example of few lines, a statement of a longer one, or, where no statement is so short, the line
    that holds a name which the sentences speak of. What a program printed is no code.
    """
    best: tuple[float, Block] | None = None
    for number, block in enumerate(block for block in blocks if block.kind == "code"):
        for text, is_whole in _statements(block.text):
            doing = [line for line in text.split("\n") if not _IDLE_LINE.match(_PROMPT.sub("", line))]
            bare = _LITERAL.sub("", "\n".join(doing))
            found = set(_WORD.findall(bare)) & names.keys()
            told = sum(names[name] for name in found) + sum(terms.all[at].weight for at in terms.within(bare))
            # A line out of a parameter list shows no call.
            if told <= 0 or not (is_whole or (found and is_example(block))):
                continue
            score = told + 0.5 * ("(" in text) - len(text) / 400 - 0.1 * number - (not is_whole)
            score += _EXAMPLE * (is_example(block) and block.language not in _PRINTED)
            score -= text.rstrip().endswith((":", "("))
            if text.rstrip().endswith("<"):
                continue
            if best is None or score > best[0]:
                best = (score, Block(kind="code", text=text, language=block.language))
    return best[1] if best else None


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


def _statements(code: str) -> Iterable[tuple[str, bool]]:
    """Yield the whole of a short example, and what of a longer one closes its brackets within a few lines.

    With each is told whether it is whole; a line of a longer statement, which ends with a comma, is not.
    """
    lines = code.strip("\n").split("\n")
    if len(lines) <= _CODE_LINES and len(code) <= _MOST_CODE:
        if _DOES.search(code):
            yield _dedented(lines), True
        return
    is_session = _SESSION.search(code) is not None
    for start, line in enumerate(lines):
        bare = _PROMPT.sub("", line)
        if not bare.strip() or _IDLE_LINE.match(bare) or len(line) > _LONGEST_LINE or not _DOES.search(bare):
            continue
        for text in _windows(lines[start : start + _CODE_LINES], is_session=is_session):
            yield text, not text.rstrip().endswith((",", "\\"))


def _windows(lines: Sequence[str], *, is_session: bool) -> Iterable[str]:
    """Yield what begins with the first of some lines, closes its brackets and stays in its block; of a session what was typed."""
    for end, line in enumerate(lines, start=1):
        if _leaves(line, lines[0]) or (is_session and not _PROMPT.match(line)):
            return
        text = _dedented(lines[:end])
        if is_session and not text.startswith(">>> "):
            text = _dedented([_PROMPT.sub("", one) for one in lines[:end]])
        if _is_closed(text) and len(text) <= _MOST_CODE:
            yield text
            if end == 1 and not line.rstrip().endswith((":", ";", ")")):
                return


def _leaves(line: str, first: str) -> bool:
    """Tell whether a line stands outside of the block that ``first`` stands in, or for code that was left out."""
    indents = [len(one) - len(one.lstrip()) for one in (line, first)]
    return bool(line.strip()) and (indents[0] < indents[1] or line.strip() == "...")


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
