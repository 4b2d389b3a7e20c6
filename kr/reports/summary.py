"""What the taken passages answer in a few lines, and the sentences that warn (SPEC 3.7)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, takewhile
from textwrap import indent

from kr.reports.choosing import WARNED_OFF, Ranked
from kr.reports.passages import DECORATED, IMPORT, Unit, is_declaration, is_example
from kr.reports.ranking import rarity
from kr.reports.terms import Terms
from kr.source_kinds import is_package
from kr.text.inline import code_span
from kr.text.markdown import Block, split
from kr.text.sentences import (
    Sentence,
    leans,
    part,
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
_MOST_ELIDED = 3_000
_MOST_ITEM = 300  # characters of an item of a list, which tells of one parameter or member
_LONGEST_LINE = 200
_STANDS = 0.5
_CODE_TELLS = 0.6  # what code tells of the question beside prose
_MOST_WORDS = 6
_TORN = 0.5  # what a statement loses that stands inside of another one
_SHOWS = 2.0  # words of the question in a statement out of a longer one that names nothing
_ASIDE = 0.5  # of what the code itself tells: what its comments and texts do
_HEAVIEST = 1.5  # what the rarest word of the question weighs beside a name that the sentences tell
_LINE = 0.2  # what each further line loses
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
_ANNOUNCING = (":", "：")
_SUBJECT = 4  # words of a sentence that say what it is about
_READS_ON = 0.7  # how well a sentence must stand to be told for its neighbour's sake
_NEARLY = 0.4  # of what the first passage's answer holds: what another one must hold to be told beside it
_MOST_OTHERS = 2
_ALIKE = 0.8
_MOST_CAVEATS = 4

_NAME = re.compile(r"`([A-Za-z_@.][\w.:@/-]{1,80})(?:\([^`]*\))?`")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_SUBJECT_NAME = re.compile(
    r"(?:(?<=\.)|(?<=::)|(?<=`)|(?<=\s)|^)([A-Za-z_]\w{2,})(?=\(|`)|(?:(?<=\.)|(?<=::))([A-Za-z_]\w{2,})$"
    r"|\b((?:[A-Z]?[a-z0-9]+[A-Z]\w*|\w+_\w+))"
)
_NEXT_DECLARED = re.compile(r"\n[ \t]*\n(?=\S)|\n(?=(?:export |declare )+function )")
_TYPE_NAME = re.compile(r"(?:\w+ )*(?:interface|type|class) (\w+)")
_GENERIC = re.compile(r"^((?:\w+ )*function \w+)<.*?>\(")
_BARE = re.compile(
    r"(?:\w+ )*(?:class|interface) [^({]*(?:\{[\s.…]*\})?"
)  # it says no more than that there is one
_COMMENT = re.compile(r"\s*(?:#(?!!|include)|//|/\*|\*|--\s|<!--|[{}()\[\];,]*\s*$|\.\.\.|…)")
_IMPORTS = re.compile(r"(?:^\s*(?:#|//).*\n)*^\s*(?:import|from|const .* = require)\b.*$", re.MULTILINE)
"""Imports with the comments above them, which are about the whole file."""
_WHOLE_COMMENT = re.compile(r"\s*(?:#|//|/\*.*\*/\s*$)")
_MARKS = re.compile(r"@|\s*(?:#|//)")  # decorators and comments
_UNJOINED = re.compile(r"\s//|\s#|/\*|`|\"\"\"|'''")  # what the end of a line means something to
_REMARK = re.compile(
    r"/\*.*?\*/|(?m:^(?P<before>(?:[^\"'`\n/#]|\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|[/#])*?)[ \t](?://|#)[ \t][^\n]*$)",
    re.DOTALL,
)
"""A comment beside code; in a text its mark means something else."""
_COMMENTS = re.compile(r"(?m:^[ \t]*)/\*.*?\*/[ \t]*\n|[ \t]+//[ \t][^\n\"'`]*$", re.DOTALL | re.MULTILINE)
"""What stands between the members of a declaration or behind them."""
_LITERAL = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_BRACKETS = re.compile(r"\([^()\[\]{}]{2,}\)|\[[^()\[\]{}]{2,}\]|\{[^()\[\]{}]{2,}\}")
_GUTTED = re.compile(r"(?:\)|=>)\s*\{…\};?$")  # a function's body is what it is shown for
_HEADER = re.compile(r"\n[ \t]+(?=(?:extends|implements) )")
"""Where the first line of a class goes on in the next."""
_REPEATED = re.compile(r"(\b\w+\(…\))(?:; \1)+")
"""Overloads of which nothing is left that differs."""
_EMPTY = re.compile(r"\A\s*(?:if|for|while|try)\b[^\n]*\{\s*\}")
"""A statement with a block in which nothing is done."""
_LINE_END = "\ue003"
_STAND_INS = {
    "()": "\ue004",
    "[]": "\ue005",
    "{}": "\ue006",
    "(…)": "\ue000",
    "[…]": "\ue001",
    "{…}": "\ue002",
}
_PROMPT = re.compile(r"^(?:>>> |\.\.\. ?|\$ |> )")
_DOES = re.compile(r"[(=@{<]|^\s*(?:await|return|yield|import|from|raise|with|for|if)\b")
_GOES_ON = re.compile(r"\s|[)\]{}.,;|&?:=+<>]|(?:else|except|finally|elif|catch|then|end|do)\b|\.\.\. ?")
_HOLDS_ON = re.compile(r"@\w|\s*(?:#|//)|.*[<,\\]\s*$")
_TYPE = re.compile(r"[A-Za-z_]\w*(?: \w+)*[ *]*")
_OF_TYPE = re.compile(r"[A-Za-z_]\w* \(")
"""A type on a line of its own, and the function of C on the next."""
_TARGET = re.compile(r"^[ \t]*(?:(?:const|let|var) )?\w+ = (?=[\w.]+\()", re.MULTILINE)
_TELLS = re.compile(r"(?:\b[a-z]{2,},? ){4,}[a-z]{2,}\b|\A[A-Z][a-z]+ [a-z]+ [^\n]*\w\.\Z")
"""Words of a sentence, or all of one, which are no code."""
_RAISED = "Traceback (most recent call last)"
_NOT_SO = re.compile(
    r"(?:#|//|--)\s*\W{0,4}(?:(?:wrong|bad|incorrect|raises|throws)\b|(?:don['’]?t|do not|never) (?!\w+ing\b))",
    re.IGNORECASE,
)
_SHOWS_FAULT = re.compile(
    r"\b(?:wrong|incorrect|bad|mistake|raises|throws)\b|\b(?:a|an) \w+(?:Error|Exception)\b|^(?:don['’]?t|do not|never|avoid)\b",
    re.IGNORECASE,
)
"""What stands beside code that is not to be written so: in a comment of it, or in the line that announces it."""
_PRINTED = frozenset({"console", "text", "plain", "output", "log", "pytb", "traceback"})
_PARAMETER = re.compile(
    r"[\s*.]*(?:(?:readonly|static|public|protected|abstract|async|override|get|set) )*([A-Za-z_$][\w$]*)\??\s*[:=,]?"
)
_REFERS = re.compile(
    r"(?:(?:please|for (?:more|further|the|details)\b[^.,]{0,40}),? ?)?(?:see|refer to|read (?:more|about)|check out|(?:documentation|docs|reference):)\s(?!.*`)",
    re.IGNORECASE,
)
"""Sends the reader elsewhere, and names nothing to use."""
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
    code: tuple[Block, ...] = ()


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
    """Return the answer of the best of some passages in its own words, and a sentence and a call of two others that answer too.

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
    answers = (_answer(passage, terms, weights, room) for passage in passages)
    first = next((one for one in answers if one.sentences or one.code), Summary(passages[0].unit, ()))
    found = [first]
    named = {first.unit.heading}
    for at in sorted(range(1, len(worth)), key=lambda at: -worth[at]):
        unit = passages[at].unit
        if worth[at] < _NEARLY * worth[0] or len(found) > _MOST_OTHERS:
            break
        if (brief := _brief(passages[at], terms, weights)) and unit.heading not in named:
            named.add(unit.heading)
            found.append(brief)
    return tuple(found)


def gist(unit: Unit, terms: Terms, room: int) -> str | None:
    """Return in a line of ``room`` characters what a passage tells: what its subject does, and how that is called.

    Of a passage that documents a name that is its first sentence, of any other the one that tells most of the question.
    """
    said = _units(sentences_of(unit.blocks))
    weights = [term.weight for term in terms.all]
    passage = _read(unit, unit.blocks, said, terms, weights)
    best = _best(passage, weights)
    if is_package(unit.origin.source) and unit.heading and unit.heading.startswith("`"):
        best = next((one for one in passage.said if _stands_alone(one) and not one.sentence.is_item), best)
    codes = _codes(passage, [best] if best else [], terms, weights)
    call = next((code_span(code.text) for code in codes if "\n" not in code.text), "")
    told = _clean(best.sentence.text) if best else ""
    line = f"{told} {call}".strip()
    line = line if len(line) <= room else told or call
    return line if 0 < len(line) <= room else None


def _brief(passage: _Passage, terms: Terms, weights: Sequence[float]) -> Summary | None:
    """Return the best sentence of a passage and how its subject is called, a line each."""
    said = _best(passage, weights)
    told = [said] if said else []
    calls = [code for code in _codes(passage, told, terms, weights) if "\n" not in code.text]
    sentences = tuple(_clean(one.sentence.text) for one in told)
    return Summary(passage.unit, sentences, tuple(calls[:1])) if sentences or calls else None


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
        or _REFERS.match(text)
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
    return max(
        filter(_stands_alone, passage.said), key=lambda one: (one.score(weights), -one.at), default=None
    )


def _stands_alone(said: _Said) -> bool:
    """Tell whether a sentence can be told without its neighbours: it leans on none before it and announces none."""
    return said.form > 0 and not leans(said.sentence) and not said.sentence.text.endswith(_ANNOUNCING)


def _answer(passage: _Passage, terms: Terms, weights: Sequence[float], room: int) -> Summary:
    chosen = _chosen(passage.said, weights)
    codes: list[Block] = []
    for code in _codes(passage, chosen, terms, weights):
        if sum(len(one.text.split("\n")) for one in (*codes, code)) < MOST_LINES:
            codes.append(code)
    lines = MOST_LINES - sum(len(code.text.split("\n")) for code in codes)
    told: dict[int, str] = {}
    for one in sorted(chosen, key=lambda one: -one.score(weights)):
        text = _clean(one.sentence.text)
        is_idle = not codes and text.endswith(_ANNOUNCING)  # it announces what is not told here
        room -= len(text)
        if text and room >= 0 and len(told) < lines and not is_idle:
            told[one.at] = text
    return Summary(passage.unit, tuple(told[at] for at in sorted(told)), tuple(codes))


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


def _codes(
    passage: _Passage, chosen: Sequence[_Said], terms: Terms, weights: Sequence[float]
) -> Iterator[Block]:
    """Yield the shortest code that shows the answer: how it is declared, an example or a statement of one.

    Of a declaration the parameters or members are told that sentences speak of or that are asked for. What a program
    printed is no code.
    """
    names = {name.rpartition(".")[2]: 1.0 for one in chosen for name in _NAME.findall(one.sentence.text)}
    names.update({one.sentence.label: 1.0 for one in chosen if one.sentence.label})
    heading = plain(passage.unit.path[-1]) if passage.unit.path else ""
    subjects = [name for found in _SUBJECT_NAME.findall(heading) for name in found if name]
    names.update(dict.fromkeys(subjects or [heading], 2.0))  # a heading of one word (`mount`) is a name too
    heaviest = max(weights, default=0.0) or 1.0
    light = [_HEAVIEST * weight / heaviest for weight in weights]
    code = [
        block
        for before, block in pairwise([None, *passage.blocks])
        if block and block.kind == "code" and not (_is_printed(block) or _is_fault(before, block, terms))
    ]
    shown = next((block.language for block in code if is_example(block)), "")
    # What follows a call in another language is what it makes.
    code = [block for block in code if is_declaration(block) or block.language == shown]
    for is_wanted, parted in (
        (is_declaration, partial(_declarations, names=names, terms=terms)),
        (is_example, partial(_statements, terms=terms)),
    ):
        declares = is_wanted is is_declaration
        found: list[tuple[float, Block]] = []
        for number, block in enumerate(code):
            if not is_wanted(block):
                continue
            for text, is_whole in parted(block.text):
                fault = None if declares else _NOT_SO.search(text)
                if fault and not terms.within(fault[0]):
                    continue
                told = _shown(text, names, terms, light, declares=declares, is_whole=is_whole)
                if told is None:
                    continue
                score = told + 0.5 * ("(" in text) - len(text) / 400 - 0.1 * number
                score -= _TORN * (not is_whole) + _LINE * text.count("\n")
                found.append((score, replace(block, text=text)))
        best, *others = (block for _, block in sorted(found, key=lambda pair: -pair[0])) if found else (None,)
        if best is None:
            continue
        yield best
        if declares and (
            beside := next((one for one in others if _completes(one.text, best.text, heading, terms)), None)
        ):
            yield beside


def _completes(other: str, best: str, heading: str, terms: Terms) -> bool:
    """Tell whether a declaration is the options of the call that is told, with some that are asked for, or the call that takes them."""
    name = re.escape(heading.strip("`()").rpartition(".")[2])
    called = re.compile(rf"\b{name} *(?:<.*>)?\(")
    if not called.search(best):
        return called.search(other) is not None
    taken, is_asked = _TYPE_NAME.match(other), terms.within(other.partition("{")[2])
    return taken is not None and taken[1] in best and any(terms.all[at].is_main for at in is_asked)


def _is_printed(block: Block) -> bool:
    return block.language in _PRINTED and not _PROMPT.search(block.text)


def _is_fault(before: Block | None, block: Block, terms: Terms) -> bool:
    """Tell whether the lines that announce an example say that it is none to follow, where nobody asks about that."""
    if before is None or before.kind == "code" or is_declaration(block):
        return False
    found = _SHOWS_FAULT.search(plain(part(before.text)[-1])) if before.text.rstrip().endswith(":") else None
    return found is not None and not terms.within(found[0])


def _shown(
    text: str,
    names: Mapping[str, float],
    terms: Terms,
    light: Sequence[float],
    *,
    declares: bool,
    is_whole: bool,
) -> float | None:
    """Return what code shows of the question and of what is named; None where that is too little."""
    # What a program calls its own variable is no part of the answer: ``bar = trange(10)``.
    bare = _LITERAL.sub("", _doing(text) if declares else _TARGET.sub("", _doing(text)))
    named = set(_WORD.findall(bare)) & names.keys()
    held = terms.within(bare)
    aside = sum(light[at] for at in terms.within(_IMPORTS.sub("", text)) - held)
    if not declares and (_TELLS.search(bare) or not (named or held or aside >= _SHOWS)):
        return None
    told = sum(names[name] for name in named) + sum(light[at] for at in held) + _ASIDE * aside
    return told if is_whole or named or told >= _SHOWS else None


def _doing(code: str) -> str:
    """Return code without its comments, and without its imports where it does more."""
    lines = [line for line in code.split("\n") if not _COMMENT.match(_PROMPT.sub("", line))]
    doing = [line for line in lines if not IMPORT.match(_PROMPT.sub("", line))]
    return "\n".join(doing or lines)


def _declarations(code: str, names: Mapping[str, float], terms: Terms) -> Iterator[tuple[str, bool]]:
    """Yield each declaration on a line; of one of many lines, its other parameters by their names or not at all."""
    for declared in _NEXT_DECLARED.split(_COMMENTS.sub("", code).strip("\n")):
        lines = _HEADER.sub(" ", DECORATED.sub("", declared, count=1)).split("\n")
        if lines[0].endswith(":"):  # a class of Python with what its instances have
            if _fits("\n".join(lines)):
                yield "\n".join(lines), True
                continue
            lines = [f"{lines[0]} ..."]
        whole = _on_a_line(lines) or "\n".join(lines)
        if len(whole) > _LONGEST_LINE and "\n" not in whole:
            whole = _REPEATED.sub(r"\1", _dotted(_GENERIC.sub(r"\1(", whole), terms))
        if len(whole) <= _LONGEST_LINE and "\n" not in whole:
            if not _BARE.fullmatch(whole):
                yield whole, True
            continue
        # The parameters of types stand before those of the call.
        opened = max((at for at, line in enumerate(lines[1:-1], 1) if line.startswith(">(")), default=0)
        first = f"{lines[0].partition('<')[0]}(" if opened else re.sub(r"\s*//.*", "", lines[0].strip())
        last = lines[-1].strip()
        is_type = last.startswith("}")
        for dots, is_brief in (("", False), ("…", False), ("...", False), ("...", True)):
            kept = _parameters(lines[opened + 1 : -1], names, terms, dots, is_brief=is_brief, is_type=is_type)
            text = f"{first} {'; '.join(kept)} {last}" if is_type else f"{first}{', '.join(kept)}{last}"
            text = _REPEATED.sub(r"\1", text)
            if len(lines) > 1 and len(text) <= _MOST_CODE and not (is_type and kept == ["..."]):
                yield text, True
                break


def _parameters(
    lines: Sequence[str],
    names: Mapping[str, float],
    terms: Terms,
    dots: str,
    *,
    is_brief: bool,
    is_type: bool,
) -> list[str]:
    """Return parameters or members: those asked for whole, or ``is_brief``; the others by name, or as dots."""
    kept: dict[str, str] = {}
    for at, member in enumerate(_members(lines)):
        # Dots with names behind them stand for what ``kr.packages.documented.shortened`` left out.
        name = None if member.startswith("... ") else _PARAMETER.match(member)
        is_asked = name is not None and (name[1] in names or bool(terms.within(name[1])))
        if name is None:
            told = member if member in {"*", "/"} else "..."
        elif is_asked and not is_brief:
            told = _dotted(member, terms)
        else:
            is_named = is_asked or dots != "..."
            told = _by_name(name, member, dots and "…", is_type=is_type) if is_named else "..."
        if told != "..." or "..." not in list(kept.values())[-1:]:
            # Of a method that is called in several ways, the first is told where there is no room.
            kept.setdefault(name[1] if name and is_type and dots and told != "..." else str(at), told)
    return list(kept.values())


def _members(lines: Sequence[str]) -> Iterator[str]:
    """Yield parameters or members on a line each, also such as take several lines."""
    held = ""
    for line in lines:
        if line.strip() and not _WHOLE_COMMENT.match(line):
            held = f"{held} {line.strip()}".strip()
        if held and _is_closed(held) and not held.endswith(("&", "|")):
            yield held.rstrip(",;")
            held = ""


def _by_name(name: re.Match[str], member: str, dots: str, *, is_type: bool) -> str:
    """Return a parameter without its type but with its default (or ``dots`` for it), a member of a type with dots for what it is."""
    rest = member[name.end(1) :]
    if is_type:
        return f"{name[1]}(…)" if rest[:1] in {"(", "<"} else f"{name[1]}{'?' * rest.startswith('?')}: …"
    default = rest[1:] if rest.startswith("=") else rest.rpartition(" = ")[2] if " = " in rest else ""
    return f"{member[: name.end(1)].strip()}{'=' * bool(default)}{(dots or default) if default else ''}"


def _statements(code: str, terms: Terms) -> Iterator[tuple[str, bool]]:
    """Yield whole statements that follow one another (True), long ones elided, and such as stand inside of longer ones (False)."""
    parted = _parted(code.strip("\n").split("\n"))
    statements = [_on_a_line(statement) or "\n".join(statement) for statement in parted]
    for start, statement in enumerate(statements):
        told = _without_comments(parted[start])
        if not _fits(statement) and _fits(told) and "\n" in told and _DOES.search(told):
            yield told, True
        elif not _fits(statement):
            yield from ((text, False) for text in _inside(statement.split("\n")))
        text = ""
        for further, lines in zip(statements[start:], parted[start:], strict=True):
            shown = further if _fits(further) else _elided(lines, terms)
            text = f"{text}\n{shown}".strip("\n")
            if not (shown and _fits(text)):
                break
            is_import = len(statements) > 1 and all(IMPORT.match(line) for line in _doing(text).split("\n"))
            if _is_closed(text) and _DOES.search(text) and not is_import:
                yield text, True


def _without_comments(statement: Sequence[str]) -> str:
    """Return a statement without the lines that are comments alone; of code with texts of several lines it is left as it is."""
    text = "\n".join(statement)
    if any(quotes in text for quotes in ('"""', "'''", "`")):
        return text
    told = "\n".join(line for line in statement if line.strip() and not _WHOLE_COMMENT.match(line))
    return text if _EMPTY.search(told) else told


def _elided(statement: Sequence[str], terms: Terms) -> str | None:
    """Return a long statement on one line, its longest brackets as dots until it fits; None where it does not."""
    bare = _REMARK.sub(lambda found: found["before"] or "", "\n".join(statement)).split("\n")
    lines = [line.strip() for line in bare if line.strip() and not _WHOLE_COMMENT.match(line)]
    is_chain = all(line.startswith(".") for line in lines[1:])  # of which a single link is told
    if is_chain or any(_UNJOINED.search(line) for line in lines):
        return None
    text = "".join(f"{_between(one, other)}{other}" for one, other in pairwise(["(", *lines]))
    text = _without_last_commas(_dotted(text, terms))
    is_fit = len(text) <= _LONGEST_LINE and _LINE_END not in text and _is_closed(text)
    is_idle = _is_emptied(text, statement) or _GUTTED.search(text) or _BARE.fullmatch(text)
    return text if is_fit and not is_idle and _DOES.search(text) else None


def _dotted(text: str, terms: Terms) -> str:
    """Return code with its longest brackets as dots until it fits a line, first those that hold nothing of what is asked."""
    for empty in ("()", "[]", "{}"):
        text = text.replace(empty, _STAND_INS[empty])
    while len(text) > _LONGEST_LINE or _LINE_END in text:
        groups = _BRACKETS.findall(text[:_MOST_ELIDED])
        if not groups:
            break
        longest = max(groups, key=lambda group: (_LINE_END in group, not terms.within(group), len(group)))
        text = text.replace(longest, _STAND_INS[f"{longest[0]}…{longest[-1]}"], 1)
    for brackets, mark in _STAND_INS.items():
        text = text.replace(mark, brackets)
    return text


def _joins(line: str, following: str) -> bool:
    """Tell whether the end of a line means no more than a space."""
    return line[-1] in ",;{([" or following[0] in ")]}.?:&|+"


def _between(line: str, following: str) -> str:
    if line[-1] in "([" or following[0] in ")].":
        return ""
    return " " if _joins(line, following) else _LINE_END


def _fits(text: str) -> bool:
    lines = text.split("\n")
    return len(lines) <= _CODE_LINES and max(map(len, lines)) <= _LONGEST_LINE and len(text) <= _MOST_CODE


def _parted(lines: Sequence[str]) -> list[list[str]]:
    """Part code at its margin into statements, each with its decorators and comments; of a session, what was typed and did not fail."""
    is_session = any(line.startswith(">>> ") for line in lines)
    statements: list[list[str]] = []
    is_open = False
    for line in lines if is_session else _dedented(lines).split("\n"):
        if is_session and not line.startswith((">>> ", "...")):
            if line.startswith(_RAISED) and statements:
                statements.pop()  # it fails
            continue
        begins = line.startswith(">>> ") if is_session else not (is_open or _GOES_ON.match(line) or not line)
        if begins and statements and _OF_TYPE.match(line) and _TYPE.fullmatch("\n".join(statements[-1])):
            begins = False
        if begins or not statements:
            statements.append([])
        statements[-1].append(_PROMPT.sub("", line) if is_session else line)
        is_decorator = statements[-1][0].startswith("@") and line[:1] in {")", "]", "}"}
        is_open = (
            is_decorator or not _is_closed("\n".join(statements[-1])) or _HOLDS_ON.match(line) is not None
        )
    return [statement for statement in statements if any(statement)]


def _inside(statement: Sequence[str]) -> Iterator[str]:
    """Yield whole statements of few lines inside of a long one, below the line that opens a block of Python.

    Of a chain of calls, single links with what they hang on.
    """
    at = next((at for at, line in enumerate(statement) if not _MARKS.match(line)), 0)
    first, *body = statement[at:]
    if body and all(line.lstrip().startswith(".") for line in body):
        yield from (f"{first}\n{line}" for line in body if _is_closed(line))
        return
    above = f"{first}\n" if first.rstrip().endswith(":") else ""
    if above:
        body = list(takewhile(lambda line: not line or line[0].isspace(), body))
    for lines in _parted(body):
        inner = _on_a_line(lines) or "\n".join(lines).strip("\n")
        if re.match(r"\s*[@.|&})\]-]", inner) or first.endswith("\\"):
            continue  # it belongs to its class, or to its command
        is_whole = _fits(inner) and _is_closed(inner) and inner.rstrip()[-1] not in ",:{"
        for text in [inner] if is_whole else _inside(lines) if 1 < len(lines) < len(statement) else ():
            below = above + indent(text, "    ")
            yield below if above and _fits(below) else text


def _on_a_line(lines: Sequence[str]) -> str | None:
    """Return the lines of one bracketed expression on one line, without comment lines; None where a line end means more than a space."""
    first, *rest = lines
    rest = [line for line in rest if line.strip() and not _WHOLE_COMMENT.match(line)]
    if not rest or any(_UNJOINED.search(line) for line in (first, *rest)):
        return None
    text = first.rstrip()
    for line in map(str.strip, rest):
        if _is_closed(text) or not _joins(text, line):
            return None
        text += f"{_between(text, line)}{line}"
    if _is_emptied(text, lines):
        return None
    return _without_last_commas(text) if len(text) <= _LONGEST_LINE else None


def _is_emptied(text: str, lines: Sequence[str]) -> bool:
    """Tell whether a block in which there was a comment is left without anything."""
    return _EMPTY.search(text) is not None and not _EMPTY.search("".join(lines))


def _without_last_commas(text: str) -> str:
    """Return code without the commas that ended its lines before a bracket; that of ``(one,)`` is there for what it is."""
    kept: list[str] = []
    opened: list[int] = []
    for at, sign in enumerate(text):
        if sign in "([{":
            opened.append(at)
        elif sign in ")]}" and opened:
            start = opened.pop()
            is_tuple = not re.match(r"[\w)\]]", text[start - 1 : start]) and text.count(",", start, at) == 1
            if text[at - 1] == "," and sign != "}" and not is_tuple:
                kept.pop()
        kept.append(sign)
    return "".join(kept)


def _is_closed(text: str) -> bool:
    if any(text.count(quotes) % 2 for quotes in ('"""', "'''")):
        return False
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
