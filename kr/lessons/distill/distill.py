"""Makes a lesson of a failure, without a model (seed 003, step 3; SPEC 4.2).

What to do wins over what went wrong: first a remedy that someone gave, then a rule that knows the error's
wording, then the sentence that says what to do, then an affirmative form of the complaint.
"""

import re
from collections.abc import Sequence

from kr.lessons.columns import columns
from kr.lessons.distill.empty import CHINESE, has_name, is_informative
from kr.lessons.distill.essence import essence
from kr.lessons.distill.phrases import capital, plain_order, plain_orders, reported
from kr.lessons.distill.remedies import advice
from kr.lessons.distill.scrub import scrub
from kr.lessons.distill.verbs import begins_with_order, imperative
from kr.lessons.distill.wording import (
    affirmative,
    ended,
    fit,
    is_fact,
    is_order,
    is_prohibition,
    is_rejected,
    is_telling,
    plain,
    sentences,
    spoken,
    stated,
    tail_of_chain,
)
from kr.lessons.line import clean_summary
from kr.text.keywords import keywords, normalise

COLUMNS = 160
"""Two lines of 80 columns."""

_LONG_REMEDY = 2000
_SHORT_ORDER = 48
_CHAIN_COLUMNS = 120
_INSTEAD = re.compile(r"\binstead$", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:either )?[a-z]+ (?:it|this|them|that)\b(?! \w+ (?:is|are)\b)", re.IGNORECASE)
_LEADS = re.compile(r"(?:^|\s)To [a-z]+[^.]*, (?:please )?(?:call|run|execute|type|issue|use)(?::.*)?$")
_ITEMS = re.compile(r"^[ \t]*(?:[-*•]|\(?[0-9]{1,2}[.)、])[ \t]+(?=\S)", re.MULTILINE)
_LATIN = re.compile(r"[A-Za-z][\w-]+")
_CALL = re.compile(r"\b(?:[a-zA-Z_]\w*\.)*[a-zA-Z_]\w*\(\)")
_API = re.compile(r"\b\w+\(|\b[A-Za-z_]\w*\.[A-Za-z_]\w*|\b[A-Z][a-z]\w*[A-Z]|@\w|`")
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_CLAUSE_END = re.compile(r"[,，;；]\s*|\s+[-–—]+\s+| because ")
_REPLACED = re.compile(
    r"(['\"`])[\w$@./:()-]{2,}\1|\b(?:[a-zA-Z_]\w*\.)*[a-zA-Z_]\w*\(\)|\b[a-z_]\w*(?:\.\w+)+"
)
_LONG_FRAMEWORK = 400
_FRAMEWORK_COLUMNS = 40


def distill(
    complaint: str, remedy: str = "", framework: str = "", limit: int = COLUMNS, *, is_report: bool = False
) -> str | None:
    """Return the lesson's summary in one line of at most ``limit`` columns; ``None`` when nothing is told.

    ``framework`` is named in front where the text does not name it. With ``is_report`` the complaint reports a fix:
    what was done is what to do.
    """
    wrong = essence(complaint)
    what = plain(wrong.complaint)
    done, about = ("", "")
    if is_report and not remedy:
        done, about = reported(sentences(plain(complaint[:_LONG_REMEDY])))
    if given := done or _remedy(remedy):
        told = _with_subject(given, about if done else what)
    else:
        told = _printed(wrong.remedy, what, limit) or _worked_out(what, limit) or _stated(what)
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


def says_what_to_do(remark: str) -> bool:
    """Tell whether a person's remark says itself what to do, and names what it is about."""
    told = plain_orders(sentences(plain(remark[:_LONG_REMEDY])))
    return any((is_order(part) or affirmative(part) != part) and has_name(part) for part in told)


def _printed(remedy: str, what: str, limit: int) -> str:
    """Word the remedy that a text carries; a short one speaks of what stands before it."""
    told = _told(remedy)
    known = advice(what) if _PRONOUN.match(told) else None
    if not told or known:
        return known or ""
    told = capital(told) if begins_with_order(told) else told
    full = _with_subject(told, what)
    room = limit - columns(told) - 3
    if full != told or room < limit - _SHORT_ORDER or not has_name(what) or CHINESE.search(told):
        return full
    parts = (_LEADS.sub("", part) for part in sentences(what))
    about = [part for part in parts if part and told.casefold() not in part.casefold()]
    return f"{told} ({fit('. '.join(about), room)})" if has_name(" ".join(about)) else told


def _remedy(text: str) -> str:
    """Read what somebody gave as the remedy: it may carry a label, or be the words of a whole log."""
    text = _without_items(_without_code(text[:_LONG_REMEDY]))
    if not is_informative(plain(text)):
        return ""
    found = essence(plain(text) if text.count("\n") < 4 else text)
    told = _told(found.complaint) or _told(found.remedy)
    # Who gives a remedy in the past tense says what was done.
    done = imperative(told, is_past=True) if not CHINESE.search(told) else ""
    return capital(done) if done and done != told else told


def _without_items(text: str) -> str:
    """Make one sentence of a list."""
    head, *items = (" ".join(part.split()) for part in _ITEMS.split(text))
    if len(items) < 2:
        return text
    ends = [ended(item) for item in items]
    first, *others = (part for part in ends if part)
    lowered = (part[0].lower() + part[1:] if begins_with_order(part) else part for part in others)
    return " ".join(part for part in (head, "; ".join((first, *lowered))) if part)


def _without_code(text: str) -> str:
    """Take out fenced code where there are words beside it."""
    bare = _FENCED.sub("\n", text)
    return bare if is_informative(plain(bare)) else text


def _told(remedy: str) -> str:
    """Return the first sentences of a remedy that fit, as an instruction; what leads to the instruction goes."""
    told = [part for part in sentences(plain(remedy)) if is_informative(part)]
    plainly = plain_orders(told)
    first = next((at for at, part in enumerate(plainly) if is_order(part)), None)
    kept = ""
    for sentence in plainly[first or 0 :]:
        longer = spoken(kept, sentence) if kept else sentence
        if kept and columns(longer) > COLUMNS:
            break
        kept = longer
    if first is not None:
        return _with_subject(kept, next(filter(has_name, told[:first]), ""))
    return kept if not kept or is_telling(kept) else affirmative(kept)


def _worked_out(what: str, limit: int = COLUMNS) -> str:
    """Return what a complaint says to do, by itself or by a rule; empty when it says nothing of the kind."""
    if not is_informative(what):
        return advice(what) or ""
    parts = _parts(what)
    orders = [at for at, part in enumerate(plain_orders(parts)) if is_order(part)]
    if orders:
        return _ordered(parts, orders, limit)
    for part in (what, *parts):
        known = advice(part)
        if known:
            return known
    worded = [part if is_telling(part) else affirmative(part) for part in parts]
    # What the author said outright goes before what a rule made of it.
    order = [at for at, part in enumerate(parts) if is_telling(part)] or range(len(parts))
    telling = next((at for at in order if is_telling(worded[at]) or worded[at] != parts[at]), None)
    if telling is not None:
        return _with_subject(plain_order(worded[telling]), ". ".join(parts[:telling]))
    return advice(". ".join(parts) or what, broad=True) or next((part for part in parts if is_fact(part)), "")


def _ordered(parts: Sequence[str], orders: Sequence[int], limit: int) -> str:
    """Choose among the sentences that command: a prohibition says less than what to do instead."""
    first = orders[0]
    told = plain_order(parts[first])
    about = ". ".join(parts[:first])
    if not is_prohibition(told):
        return _in_context(_with_subject(told, about), parts[:first])
    instead = next((plain_order(parts[at]) for at in orders[1:] if not is_prohibition(parts[at])), "")
    for head in (told, _CLAUSE_END.split(told)[0]):
        both = spoken(head, instead) if instead else head
        if columns(both) <= limit:
            return _with_subject(both if instead else told, about)
    return _with_subject(instead or told, told)


def _in_context(told: str, before: Sequence[str]) -> str:
    """Put what is wrong behind a short Chinese order that shares no name with it: it says what to use, not for what."""
    about = next((part for part in before if has_name(part) and not is_rejected(part)), "")
    if not about or not CHINESE.search(told) or columns(told) > _SHORT_ORDER or "（" in told:
        return told
    names = frozenset(_LATIN.findall(about)) & frozenset(_LATIN.findall(told))
    return told if names else f"{told}（{fit(about, COLUMNS - columns(told) - 4)}）"


def _stated(what: str) -> str:
    """Word what no rule knows; empty when it tells nothing."""
    if not is_informative(what):
        return ""
    parts = _parts(what)
    # What follows may name the version or the setting that the first sentence lacks.
    told = ""
    for part in parts[parts.index(next(filter(has_name, parts), parts[0])) :] if parts else [what]:
        if told and columns(told) + columns(part) > COLUMNS - 16:
            break
        told = spoken(told, part) if told else ended(part)
    return stated(told)


def _parts(what: str) -> list[str]:
    told = [tail_of_chain(part, _CHAIN_COLUMNS) for part in sentences(what)]
    parts = [part for part in told if is_informative(part)]
    # A reviewer's question says less than what follows it.
    plainly = plain_orders(parts)
    return [
        part for part, order in zip(parts, plainly, strict=True) if part[-1] not in "?？" or order != part
    ] or parts


def _with_subject(told: str, what: str) -> str:
    """Put to an instruction that names nothing, or not what it replaces or is about, the thing it speaks of."""
    replaced = _REPLACED.search(what) if _INSTEAD.search(told) else None
    if replaced and replaced[0] not in told:
        return f"{told} of {replaced[0]}"
    if not what or not is_informative(what):
        return told
    if has_name(told) and not _PRONOUN.match(told):
        call = _CALL.search(what)
        is_complete = call is None or _API.search(told) is not None or CHINESE.search(told) is not None
        return told if is_complete or call is None else f"{call[0]}: {told}"
    named = [part for part in sentences(what) if has_name(part)] or sentences(what)
    about = fit(ended(named[0]), max(COLUMNS - columns(told) - 3, 40))
    return f"{told}（{about}）" if CHINESE.search(told) else f"{told} ({about})"


def _named(told: str, framework: str) -> str:
    name = fit(plain(scrub(framework[:_LONG_FRAMEWORK])), _FRAMEWORK_COLUMNS)
    words = frozenset(keywords(re.sub(r"[\d.x^~<>=*]+$", "", name).strip() or name))
    folded = normalise(told).casefold().replace("-", "").replace(" ", "")
    if not name or (words and all(word in folded for word in words)):
        return told
    return f"{name}: {told}"
