"""Makes a lesson of a failure, without a model (seed 003, step 3; SPEC 4.2).

What to do wins over what went wrong: first a remedy that someone gave, then a rule that knows the error's
wording, then the sentence that says what to do, then an affirmative form of the complaint.
"""

import re

from kr.rules.keywords import keywords, normalise
from kr.rules.lessons.columns import columns
from kr.rules.lessons.empty import CHINESE, first_name, has_name, is_informative
from kr.rules.lessons.essence import essence
from kr.rules.lessons.line import clean_summary
from kr.rules.lessons.remedies import advice
from kr.rules.lessons.scrub import scrub
from kr.rules.lessons.wording import (
    affirmative,
    ended,
    fit,
    is_fact,
    is_telling,
    plain,
    sentences,
    stated,
    tail_of_chain,
)

COLUMNS = 160
"""Two lines of 80 columns."""

_LONG_REMEDY = 2000
_CHAIN_COLUMNS = 120
_INSTEAD = re.compile(r"\binstead$", re.IGNORECASE)
_FRAMEWORK_COLUMNS = 40


def distill(complaint: str, remedy: str = "", framework: str = "", limit: int = COLUMNS) -> str | None:
    """Return the lesson's summary in one line of at most ``limit`` columns; ``None`` when nothing is told.

    ``framework`` is named in front where the text does not name it.
    """
    wrong = essence(complaint)
    what = plain(wrong.complaint)
    given = _remedy(remedy) or _told(wrong.remedy)
    told = _with_subject(given, what) if given else _worked_out(what) or _stated(what)
    if not told:
        return None
    named = _named(told, framework)
    return clean_summary(fit(named, limit)) or None


def is_worth_keeping(complaint: str) -> bool:
    """Tell whether an error that nobody reported by hand says what to do, by itself or by a rule."""
    wrong = essence(complaint)
    what = plain(wrong.complaint)
    if _told(wrong.remedy) or advice(what) or advice(what, broad=True):
        return True
    return has_name(_worked_out(what))


def _remedy(text: str) -> str:
    """Read what somebody gave as the remedy: it may carry a label, or be the words of a whole log."""
    text = text[:_LONG_REMEDY]
    if not is_informative(plain(text)):
        return ""
    found = essence(plain(text) if text.count("\n") < 4 else text)
    return _told(found.complaint) or _told(found.remedy)


def _told(remedy: str) -> str:
    """Return the first sentences of a remedy that fit, as an instruction."""
    kept = ""
    for sentence in sentences(plain(remedy)):
        if not is_informative(sentence):
            continue
        longer = f"{kept}. {sentence}" if kept else sentence
        if kept and columns(longer) > COLUMNS:
            break
        kept = longer
    return kept if not kept or is_telling(kept) else affirmative(kept)


def _worked_out(what: str) -> str:
    """Return what a complaint says to do, by itself or by a rule; empty when it says nothing of the kind."""
    known = advice(what)
    if known or not is_informative(what):
        return known or ""
    what = tail_of_chain(what, _CHAIN_COLUMNS)
    parts = _parts(what)
    for part in parts:
        known = advice(part)
        if known:
            return known
    worded = [part if is_telling(part) else affirmative(part) for part in parts]
    # What the author said outright goes before what a rule made of it.
    order = [at for at, part in enumerate(parts) if is_telling(part)] or range(len(parts))
    telling = next((at for at in order if is_telling(worded[at]) or worded[at] != parts[at]), None)
    if telling is not None:
        return _with_subject(worded[telling], ". ".join(parts[:telling]))
    return advice(what, broad=True) or next((part for part in parts if is_fact(part)), "")


def _stated(what: str) -> str:
    """Word what no rule knows; empty when it tells nothing."""
    if not is_informative(what):
        return ""
    parts = _parts(tail_of_chain(what, _CHAIN_COLUMNS))
    # What follows may name the version or the setting that the first sentence lacks.
    told = ""
    for part in parts[parts.index(next(filter(has_name, parts), parts[0])) :] if parts else [what]:
        if told and columns(told) + columns(part) > COLUMNS - 16:
            break
        told = f"{told}. {part}" if told else ended(part)
    return stated(told)


def _parts(what: str) -> list[str]:
    parts = [part for part in sentences(what) if is_informative(part)]
    # A reviewer's question says less than what follows it.
    return [part for part in parts if part[-1] not in "?？"] or parts


def _with_subject(told: str, what: str) -> str:
    """Put before an instruction that names nothing, or not what it replaces, the thing it speaks of."""
    replaced = first_name(what) if _INSTEAD.search(told) else ""
    if replaced and replaced not in told:
        return f"{told} of {replaced}"
    if has_name(told) or not what or not is_informative(what):
        return told
    named = [part for part in sentences(what) if has_name(part)] or sentences(what)
    about = fit(ended(named[0]), max(COLUMNS - columns(told) - 3, 40))
    return f"{told}（{about}）" if CHINESE.search(told) else f"{told} ({about})"


def _named(told: str, framework: str) -> str:
    name = fit(plain(scrub(framework)), _FRAMEWORK_COLUMNS)
    words = frozenset(keywords(re.sub(r"[\d.x^~<>=*]+$", "", name).strip() or name))
    folded = normalise(told).casefold().replace("-", "").replace(" ", "")
    if not name or (words and all(word in folded for word in words)):
        return told
    return f"{name}: {told}"
