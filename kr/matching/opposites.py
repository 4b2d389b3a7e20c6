"""What speaks against a match (SPEC 3.2): what a topic denies, and which way it goes.

Denial is marks of negation and their scope, general vocabulary, English and Chinese first. The way is verbs with
particles, ends of axes ("ascending", 下载), from one thing to another.
"""

import re
from collections import Counter
from functools import cache, lru_cache

from kr.matching.words import Token, bases, pattern, poles_in, poles_of, singular, stem
from kr.text.keywords import CJK_FUNCTION, FUNCTION_WORDS, LIGHT_WORDS, bigrams, phrases, word_set
from kr.values import NamedTuple

NEGATIONS = word_set(
    """
    no not never without non cannot nor neither lack lacks lacking absent absence zero free
    dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt cant havent hasnt hadnt aint mustnt neednt mightnt
    disable disables disabled disabling deactivate deactivates deactivated deactivating
    disallow disallows disallowed disallowing forbid forbids forbidding forbidden prohibit prohibits prohibited prohibiting
    ohne nicht kein keine sans pas sin não sem без не
    """
)
"""What stands in their scope is told as absent or switched off. ``zero`` denies the next word, ``-free`` the one before."""

EXCLUSIONS = word_set(
    """
    skip skips skipped skipping bypass bypasses bypassed bypassing omit omits omitted omitting ignore ignores ignored ignoring
    exclude excludes excluded excluding suppress suppresses suppressed suppressing except
    """
)
"""Weaker marks: they tell against a topic that has the very words in their scope, and nothing else."""

TRAILING = word_set("disable disabled deactivated forbidden prohibited disallowed skipped bypassed off")
"""Marks that may follow what they negate: "validation disabled in tests"."""

PHRASES = {
    ("no", "longer"): "not",
    ("not", "longer"): "not",
    ("get", "rid"): "disable",
    ("getting", "rid"): "disable",
    ("w", "o"): "without",
    ("instead", "of"): "except",
    ("rather", "than"): "except",
    ("opposed", "to"): "except",
}
"""Two words that are one mark."""

SYMPTOMS = word_set(
    """
    work works working effect found find reachable available supported recognized recognised defined possible longer
    firing triggered triggering responding loading showing updating updated rendering rendered resolved matching only
    just able enough
    """
)
"""What a complaint says after "not": "not working" is about the very topic."""

CJK_NEGATIONS = phrases(
    "不使用 不启用 不开启 不需要 不带 不含 不用 不要 不能 无需 无须 没有 禁用 禁止 停用 关闭 屏蔽 取消 未 没 非 无 不 "
    "關閉 無需 沒有 無 なしで なし しない せずに 없이"
)
CJK_EXCLUSIONS = phrases("绕过 跳过 忽略 排除 略过 繞過 跳過 而不是 而非")
CJK_SYMPTOMS = phrases(
    "不生效 不起作用 不工作 不显示 不更新 不触发 不执行 不响应 不刷新 不加载 不渲染 不跳转"
)
"""Complaints: they tell against a topic that says the same thing without the negation, and nothing else."""
CJK_NO_NEGATION = phrases(
    "不一致 不同 不足 不仅 不断 不过 不良 不可变 无法 无效 无限 无障碍 无缝 无头 无线 "
    "无关 未来 未知 未找到 非常 并非 除非 是非 非受控 非阻塞 无状态 非同期 没反应 取消请求 取消订阅 关闭弹窗 关闭连接 无痛 不等于 "
    "不可见 无刷新 無限 無効"
)
"""Words that only look negated, and those whose opposite stands among the pairs."""

_UNRELATED = word_set(
    """
    dispatch discover discount distribute display default deliver decode design deploy delay debug deduplicate dedupe
    under union unit unique until unicode inform input inset install insert indent inline depend detail device derive
    """
)
_PREFIXES = (
    ("un", 3),
    ("non", 3),
    ("dis", 5),
    ("de", 6),
    ("mis", 5),
    ("in", 5),
    ("im", 5),
    ("ir", 6),
    ("anti", 4),
)


def positive_of(word: str) -> str | None:
    """Return what ``word`` denies by a prefix or by ``-less`` (``uncontrolled``: ``controlled``), else None.

    The answer is a guess by form alone, to be held against the words of another topic.
    """
    if word in _UNRELATED:
        return None
    for prefix, least in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= least:
            return word[len(prefix) :]
    if word.endswith("less") and len(word) > 6:
        return word[:-4]
    return None


_SCOPE = 4
_VERBAL_SCOPE = 2
_CJK_SCOPE = 6
_LEAD = 4
_VERBAL = NEGATIONS & word_set(
    """
    not never cannot dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt cant havent hasnt hadnt aint
    mustnt neednt mightnt
    """
)
_CJK_TRAILING = word_set("禁用 停用 关闭 屏蔽 なし なしで 없이 ない")


class Denial(NamedTuple):
    """One thing that a topic says is not there: stems and bigrams of it.

    ``head`` is the place of the first word; ``beside`` is what stands before a mark that may deny either side: 对话框关闭前.
    """

    scope: frozenset[str]
    head: int | None
    strong: bool
    beside: frozenset[str] = frozenset()

    def meets(self, other: "Denial") -> bool:
        """Tell whether both may deny one thing."""
        return not (self.scope | self.beside).isdisjoint(other.scope | other.beside)


@cache
def _symptoms() -> frozenset[str]:
    return frozenset(map(stem, SYMPTOMS))


@cache
def _cjk_mark() -> re.Pattern[str]:
    kinds = {
        "none": CJK_NO_NEGATION,
        "symptom": CJK_SYMPTOMS,
        "weak": CJK_EXCLUSIONS,
        "strong": CJK_NEGATIONS,
    }
    return re.compile("|".join(f"(?P<{kind}>{pattern(*words).pattern})" for kind, words in kinds.items()))


def is_number(text: str) -> bool:
    """Tell a plain number or a version (``3``, ``v2.7``, ``2.x``) from other words."""
    return not text.isalpha() and _number().fullmatch(text) is not None


@cache
def _number() -> re.Pattern[str]:
    return re.compile(r"v?\d+(?:\.\d+)*(?:\.x)?", re.IGNORECASE)


def denials(tokens: list[Token]) -> tuple[Denial, ...]:
    """Return what the tokens deny, in order."""
    found: list[Denial] = []
    for position, token in enumerate(tokens):
        if token.kind == "cjk":
            found.extend(_cjk_denials(tokens, position))
        elif token.kind == "word" and (denial := _denial(tokens, position)):
            found.append(denial)
    return tuple(found)


def _denial(tokens: list[Token], position: int) -> Denial | None:
    mark, start = tokens[position].text, position + 1
    if start < len(tokens) and (phrase := PHRASES.get((mark, tokens[start].text))):
        mark, start = phrase, start + 1
    strong = mark in NEGATIONS and not tokens[position].in_name
    if not (mark in NEGATIONS or mark in EXCLUSIONS or mark in TRAILING):
        return None
    if mark == "free":
        return _made(_scope(tokens[:position][::-1], 1), strong=True) if tokens[position].joint else None
    if mark == "off" and tokens[position].joint:
        return None
    limit = 1 if mark == "zero" else _VERBAL_SCOPE if mark in _VERBAL else _SCOPE
    follows = start < len(tokens) and tokens[start].kind != "break" and not tokens[start].function
    if mark in TRAILING and not follows:
        scope = _scope(tokens[:position][::-1], limit)
        if scope or mark == "off":
            return _made(scope, strong=True)
    if mark == "off":
        return None
    scope = _scope(tokens[start:], limit)
    if mark == "zero" and not is_denying_zero(tokens, position):
        return None
    if mark in _VERBAL | {"no"} and _is_complaint(tokens[start:], has_subject=position > 0):
        return _made(scope[:1], strong=False)
    return _made(scope, strong=strong)


def is_denying_zero(tokens: list[Token], position: int) -> bool:
    """Tell "zero downtime" from "scale to zero" and "divide by zero"."""
    after = tokens[position + 1] if position + 1 < len(tokens) else None
    before = tokens[position - 1] if position else None
    counted = (
        before is not None
        and before.function
        and before.text in {"to", "by", "from", "at", "is", "of", "than"}
    )
    return after is not None and after.kind == "word" and not after.function and not counted


def _is_complaint(tokens: list[Token], *, has_subject: bool) -> bool:
    """Tell "header not showing on mobile" from "not showing columns"."""
    content = next((i for i, token in enumerate(tokens) if not token.function), None)
    if content is None or stem(tokens[content].text) not in _symptoms():
        return False
    if tokens[content].text == "found":
        return True
    return has_subject and (content + 1 == len(tokens) or tokens[content + 1].function)


def _scope(tokens: list[Token], limit: int) -> list[Token]:
    """Take the phrase at the front: content words up to a break or to the function word that ends it."""
    scope: list[Token] = []
    light: list[Token] = []
    lead = 0
    for token in tokens:
        if token.kind == "break":
            break
        if token.kind == "cjk":
            scope.append(token)
            break
        if token.function:
            lead += 1
            if scope or lead > _LEAD:
                break
        elif token.text in LIGHT_WORDS:
            light.append(token)
        elif token.text not in NEGATIONS:
            scope.append(token)
        if len(scope) == limit:
            break
    return scope or light


def _made(scope: list[Token], *, strong: bool) -> Denial | None:
    terms: set[str] = set()
    for token in scope:
        if token.kind == "cjk":
            terms.update(bigrams(_phrase(token.text)))
        else:
            terms.add(stem(token.text))
    head = scope[0].at if scope and scope[0].kind == "word" else None
    return Denial(frozenset(terms), head, strong) if terms else None


def _phrase(text: str) -> str:
    parts = [part for part in pattern(*CJK_FUNCTION).split(text) if part]
    return parts[0][:_CJK_SCOPE] if parts else ""


def _cjk_denials(tokens: list[Token], position: int) -> list[Denial]:
    run = tokens[position].text
    found: list[Denial] = []
    for match in _cjk_mark().finditer(run):
        if match["none"]:
            continue
        if match["symptom"]:
            found.append(Denial(frozenset(bigrams(match[0][1:])), None, strong=False))
            continue
        strong = match["strong"] is not None
        phrase = _phrase(run[match.end() :])
        before = pattern(*CJK_FUNCTION).split(run[: match.start()])[-1]
        if phrase:
            beside = bigrams(before[-_CJK_SCOPE:]) if before and match[0] in _CJK_TRAILING else ()
            found.append(Denial(frozenset(bigrams(phrase)), None, strong, frozenset(beside)))
            continue
        scope = _scope(tokens[position + 1 :], _SCOPE)
        if not scope and before:
            found.append(Denial(frozenset(bigrams(before[-_CJK_SCOPE:])), None, strong))
        elif not scope and match[0] in _CJK_TRAILING:
            scope = _scope(tokens[:position][::-1], _SCOPE)
        if denial := _made(scope, strong=strong):
            found.append(denial)
    return found


_VERBS = {
    "in": "log sign opt check clock zoom fade ease slide plug fill drill roll scale swap build",
    "on": "log sign turn switch power add toggle",
    "off": "log sign turn switch power toggle back cut hand kick take",
    "out": "log sign opt check clock time zoom fade ease slide roll scale swap print lay drop break bail lock fan read",
    "up": "set start sign back clean look pop speed scale follow warm boot spin mock hook sum wake roll clear tidy scroll page"
    " move count swipe slide step bubble round power bring",
    "down": "shut scale slow drill cool break drop spin tear step scroll page count touch roll round wind cut power move swipe"
    " slide bubble pull narrow",
    "back": "roll call fall play write feed switch scroll go move",
    "over": "fail switch hand take carry",
}
_PLACES = {"in": 0, "on": 0, "out": 1, "off": 1, "up": 2, "down": 3, "back": 4, "over": 5}
_PAIRS = {verb + particle: (verb, particle) for particle, verbs in _VERBS.items() for verb in verbs.split()}
_MEANINGS = {
    "turnon": "enable", "switchon": "enable", "toggleon": "enable", "optin": "enable",
    "turnoff": "disable", "switchoff": "disable", "toggleoff": "disable", "optout": "disable",
}  # fmt: skip
_DETERMINERS = word_set(
    "a an the this that these those my your our their his her its each every all any some no"
)
_FARTHEST = 4
"""How many words may part a verb from its particle: "turn the query cache off"."""


def place_of(word: str) -> tuple[str, int] | None:
    """Return verb and place of a word made of both (``logout``, ``rollback``), else None."""
    pair = _PAIRS.get(word)
    return (pair[0], _PLACES[pair[1]]) if pair else None


def merge_verbs(tokens: list[Token]) -> list[Token]:
    """Write each verb and its particle as one word, so that "logging in", "log-in" and "login" are the same."""
    if not any(token.text in _VERBS or token.text in _MEANINGS for token in tokens):
        return tokens
    merged: list[Token] = []
    taken: set[int] = set()
    for position, token in enumerate(tokens):
        if position in taken:
            continue
        if token.kind == "word" and not token.in_name:
            found = _particle(tokens, position)
            if found:
                at, text = found
                taken.add(at)
                merged.append(token._replace(text=_MEANINGS.get(text, text), function=False))
                continue
            if token.text in _MEANINGS:
                merged.append(token._replace(text=_MEANINGS[token.text]))
                continue
        merged.append(token)
    return merged


def _particle(tokens: list[Token], position: int) -> tuple[int, str] | None:
    """Return where the particle of a verb stands, and both as one word."""
    verb = tokens[position].text
    for at in range(position + 1, min(position + 2 + _FARTHEST, len(tokens))):
        token = tokens[at]
        if token.kind != "word":
            return None
        if token.in_name or token.text not in _VERBS:
            continue
        whole = next(
            (joined for base in bases(verb, is_verb=True) if (joined := base + token.text) in _PAIRS), None
        )
        if whole and (at == position + 1 or _is_loose(tokens, at)):
            return at, whole
        return None
    return None


def _is_loose(tokens: list[Token], at: int) -> bool:
    """Tell a particle ("log users in with tokens") from a preposition, which has an object."""
    if tokens[at].text not in {"in", "on", "over"}:
        return True
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    return following is None or (following.function and following.text not in _DETERMINERS)


_ACCESSORS = word_set("get gets getting got set sets setting")
_ARTICLES = frozenset({"a", "the"})
Axis = int | str


class End(NamedTuple):
    """One end of an axis of opposites, and the word that names it."""

    pole: int
    text: str


def ends_of(tokens: list[Token], denials: tuple[Denial, ...]) -> dict[Axis, Counter[End]]:
    """Return for each axis how often each word names an end; what is denied names the other one."""
    denied = {denial.head for denial in denials}
    found: dict[Axis, Counter[End]] = {}
    for position, token in enumerate(tokens):
        flip = -1 if token.kind == "word" and token.at in denied else 1
        for axis, pole, text in _ends(tokens, position):
            found.setdefault(axis, Counter())[End(pole * flip, text)] += 1
    return found


def are_opposed(one: Counter[End], other: Counter[End]) -> bool:
    """Compare the ends that each topic names for itself: "connect ... connections", "disconnect ... connections"."""
    mine, yours = {end.pole for end in one - other}, {end.pole for end in other - one}
    return bool(mine and yours) and mine.isdisjoint(yours)


def _ends(tokens: list[Token], position: int) -> list[tuple[Axis, int, str]]:
    token = tokens[position]
    if token.kind == "cjk":
        return [*poles_in(token.text)]
    if token.kind == "break" or (token.text == "up" and _follows(tokens, position, "to")):
        return []
    if token.text in _ACCESSORS and not _is_verb(tokens, position):
        return []
    return _named(token.text)


@lru_cache(maxsize=8192)
def _named(word: str) -> list[tuple[Axis, int, str]]:
    root = stem(word)
    found: list[tuple[Axis, int, str]] = [(axis, pole, root) for axis, pole in poles_of(word)]
    if phrase := place_of(word) or place_of(singular(word)):
        found.append((*phrase, root))
    return found


def _is_verb(tokens: list[Token], position: int) -> bool:
    """Tell "set a cookie" from "the result set" and "a set of cookies"."""
    before = tokens[position - 1] if position else None
    if before is not None and before.kind == "word" and (not before.function or before.text in _ARTICLES):
        return False
    return not _follows(tokens, position, "of")


def _follows(tokens: list[Token], position: int, text: str) -> bool:
    return position + 1 < len(tokens) and tokens[position + 1].text == text


FORTH = {
    "to": "to",
    "into": "to",
    "onto": "to",
    "toward": "to",
    "towards": "to",
    "as": "to",
    "before": "before",
    "inside": "in",
}
BACK = {"from": "to", "after": "before", "outside": "in"}
_CJK_FORTH = (
    "转换为",
    "转换成",
    "转化为",
    "转换到",
    "转为",
    "转成",
    "变为",
    "变成",
    "改为",
    "改成",
    "迁移到",
    "转",
    "到",
)
_BEFORE_THINGS = word_set("a an the my your our their its this that each every all")
_MOST = 3
_MOST_CHARACTERS = 5
_LONGEST_RUN = 12

Direction = tuple[str, str, str]


def directions(tokens: list[Token]) -> frozenset[Direction]:
    """Return what goes where: the relation, a stem or bigram of the first thing, and one of the second."""
    found: set[Direction] = set()
    for position, token in enumerate(tokens):
        if token.kind == "cjk":
            found.update(_in_run(tokens, position))
        elif token.kind == "word" and (relation := FORTH.get(token.text) or BACK.get(token.text)):
            left, right = _before(tokens, position), _after(tokens, position)
            if token.text in BACK:
                left, right = right, left
            found.update((relation, one, other) for one in left for other in right if one != other)
    return frozenset(found)


def _before(tokens: list[Token], position: int) -> list[str]:
    # An article never stands before a preposition: "A to Z".
    if position and _is_letter(tokens[position - 1]):
        return [tokens[position - 1].text]
    return _near(tokens[:position][::-1])


def _after(tokens: list[Token], position: int) -> list[str]:
    rest = tokens[position + 1 :]
    if rest and _is_letter(rest[0]) and (len(rest) == 1 or rest[1].function):
        return [rest[0].text]
    return _near(rest)


def _is_letter(token: Token) -> bool:
    return token.kind == "word" and len(token.text) == 1 and token.text in FUNCTION_WORDS


def _near(tokens: list[Token]) -> list[str]:
    """Return the stems of the phrase at the front."""
    found: list[str] = []
    for token in tokens:
        if token.kind == "cjk" and not found:
            return list(bigrams(token.text[:_LONGEST_RUN]))
        if token.kind != "word" or len(found) == _MOST:
            break
        if not token.function:
            found.append(stem(token.text))
        elif token.text not in _BEFORE_THINGS:
            break
    return found


def _in_run(tokens: list[Token], position: int) -> set[Direction]:
    run = tokens[position].text
    found: set[Direction] = set()
    for match in pattern(*_CJK_FORTH).finditer(run):
        before = pattern(*CJK_FUNCTION).split(run[: match.start()])[-1].removeprefix("从")
        after = pattern(*CJK_FUNCTION).split(run[match.end() :])[0]
        left = list(bigrams(before[-_MOST_CHARACTERS:])) if before else _near(tokens[:position][::-1])
        right = list(bigrams(after[:_MOST_CHARACTERS])) if after else _near(tokens[position + 1 :])
        found.update(("to", one, other) for one in left for other in right if one != other)
    return found


def is_reversed(one: frozenset[Direction], other: frozenset[Direction]) -> bool:
    """Tell whether one topic goes the other's way back."""
    return any(
        (relation, last, first) in other
        and (relation, last, first) not in one
        and (relation, first, last) not in other
        for relation, first, last in one
    )
