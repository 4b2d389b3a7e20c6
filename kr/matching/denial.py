"""What a topic denies: marks of negation and their scope, general vocabulary, English and Chinese first (SPEC 3.2)."""

import re
from functools import cache

from kr.matching.words import Token, pattern, stem
from kr.text.keywords import bigrams
from kr.text.stopwords import CJK_FUNCTION, LIGHT_WORDS, phrases, word_set
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
