"""Makes a lesson of a failure, without a model (seed 003, step 3; SPEC 4.2).

What to do wins over what went wrong: first a remedy that someone gave, then a rule that knows the error's
wording, then the sentence that says what to do, then an affirmative form of the complaint.
"""

import re

from kr.rules.keywords import keywords, normalise
from kr.rules.lessons.columns import columns
from kr.rules.lessons.essence import essence
from kr.rules.lessons.line import clean_summary
from kr.rules.lessons.remedies import advice
from kr.rules.lessons.scrub import scrub
from kr.rules.lessons.wording import affirmative, ended, fit, is_fact, is_telling, plain, sentences

COLUMNS = 160
"""Two lines of 80 columns."""

_NAME = re.compile(
    r"`[^`]+`|\B[@$#]\w[\w.-]*|--[a-z][\w-]+|\b\w+\(\)|[A-Za-z]\w*[._:/]\w[\w.]*|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*[a-z]\w*[A-Z]\w*"
    r"|\b[A-Z][A-Z0-9_]{2,}\b|\b\w+_\w+|\b[a-z]+(?:-[a-z]+)+\b|\b[A-Za-z]+[0-9]+\w*"
)
_LATIN_IN_CHINESE = re.compile(r"[\u3400-\u9fff].*[A-Za-z]{2}|[A-Za-z]{2}.*[\u3400-\u9fff]")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    error errors exception failed failure fail fails failing unknown internal server log logs detail details see check task
    agent step exit code status process command run test tests build something went wrong please try later message null none
    undefined object occurred returned non zero nonzero result story phase
    """,
    )
)
_EMPTY_CHINESE = re.compile(
    r"(?:执行|任务|操作|系统|发生|未知|出现|处理|构建|测试|请|查看|日志|错误|失败|异常|了|的|。|，|\s|[!！:：])+"
)
_FRAMEWORK_COLUMNS = 40


def distill(complaint: str, remedy: str = "", framework: str = "", limit: int = COLUMNS) -> str | None:
    """Return the lesson's summary in one line of at most ``limit`` columns; ``None`` when nothing is told.

    ``framework`` is named in front where the text does not name it.
    """
    wrong = essence(complaint)
    what = plain(wrong.complaint)
    given = _told(essence(remedy).complaint) or _told(wrong.remedy)
    told = _with_subject(given, what) if given else _worked_out(what)
    if not told:
        return None
    named = _named(told, framework)
    return clean_summary(fit(named, limit)) or None


def is_worth_keeping(complaint: str) -> bool:
    """Tell whether an error that nobody reported by hand says what to do, by itself or by a rule."""
    wrong = essence(complaint)
    what = plain(wrong.complaint)
    return bool(_told(wrong.remedy)) or advice(what) is not None or advice(what, broad=True) is not None


def is_informative(text: str) -> bool:
    """Tell whether a text says anything about a cause at all."""
    if _CHINESE.search(text):
        return _EMPTY_CHINESE.fullmatch(text) is None
    words = [word for word in keywords(text) if word not in _EMPTY_WORDS and not word.isdigit()]
    return len(words) > 1 or (bool(words) and has_name(text))


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
    if not is_informative(what):
        return ""
    known = advice(what)
    if known:
        return known
    parts = [part for part in sentences(what) if is_informative(part)]
    # A reviewer's question says less than what follows it.
    parts = [part for part in parts if part[-1] not in "?？"] or parts
    for part in parts:
        known = advice(part)
        if known:
            return known
    worded = [affirmative(part) for part in parts]
    # What the author said outright goes before what a rule made of it.
    order = [at for at, part in enumerate(parts) if is_telling(part)] or range(len(parts))
    telling = next((at for at in order if is_telling(worded[at])), None)
    if telling is not None:
        return _with_subject(worded[telling], ". ".join(worded[:telling]))
    known = advice(what, broad=True)
    if known:
        return known
    if any(is_fact(part) for part in parts):
        return next(part for part in parts if is_fact(part))
    first = ended(parts[0]) if parts else what
    return f"避免：{first}" if _CHINESE.search(first) else f"Avoid: {first}"


def _with_subject(told: str, what: str) -> str:
    """Put before an instruction that names nothing the thing it speaks of."""
    if has_name(told) or not what or not is_informative(what):
        return told
    about = fit(ended(sentences(what)[0]), max(COLUMNS - columns(told) - 3, 40))
    return f"{told}（{about}）" if _CHINESE.search(told) else f"{told} ({about})"


def has_name(text: str) -> bool:
    """Tell whether a text names an API, a setting, a file or a product."""
    return _NAME.search(text) is not None or _LATIN_IN_CHINESE.search(text) is not None


def _named(told: str, framework: str) -> str:
    name = fit(plain(scrub(framework)), _FRAMEWORK_COLUMNS)
    words = frozenset(keywords(re.sub(r"[\d.x^~<>=*]+$", "", name).strip() or name))
    folded = normalise(told).casefold().replace("-", "").replace(" ", "")
    if not name or (words and all(word in folded for word in words)):
        return told
    for mark in ("Avoid", "避免"):
        if told.startswith(mark):
            return f"{name} {told}" if mark == "避免" else f"{mark} with {name}{told[len(mark) :]}"
    return f"{name}: {told}"
