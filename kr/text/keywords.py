"""Keywords of a text, by which topics, lessons and passages are compared, the stems that they compare by, and which words tell little (SPEC 3.2).

Function words carry grammar and are dropped. Light words carry little ("how to *use*", "*guide* to"): they
count, but a topic is not another one because of them.
"""

import re
import sys
import unicodedata
from _thread import allocate_lock  # threading is nothing that a hit imports
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

MAX_CHARACTERS = 4096
MAX_KEYWORDS = 64

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean letters, as the inside of a character class. Halfwidth forms are gone after NFKC."""

WORD = r"\w\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0eff\u1000-\u109f"
"""Letters, digits and ``_``, as the inside of a character class; and the vowel signs that ``\\w`` leaves out."""

_APOSTROPHES = str.maketrans("", "", "'’")


def keywords(text: str, *, limit: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return the keywords of ``text``, each once, in the order of their first appearance.

    NFKC, case folded, split on everything that is no letter or digit and inside ``camelCase`` and
    ``snake_case``; English function words are dropped; a run of Chinese, Japanese or Korean characters becomes its
    character bigrams. At most ``limit`` keywords, of at most the first 4,096 characters, so that a hostile
    text costs no more than a long one. ``keywords(" ".join(keywords(t)))`` gives the same again.
    """
    found: dict[str, None] = {}
    for run, is_run in runs(normalise(text)):
        if is_run:
            found.update(dict.fromkeys(bigrams(run)))
        else:
            for piece in _pieces(run.isascii()).findall(run):
                found.update(dict.fromkeys(content_parts(piece)))
        if len(found) >= limit:
            break
    return tuple(found)[:limit]


@cache
def _pieces(
    is_ascii: bool,
) -> re.Pattern[str]:  # the classes of all scripts take as long to compile as a look-up's SQL
    return re.compile(r"[\w']+" if is_ascii else f"[{WORD}'’]+")


@cache
def _lone_marks() -> re.Pattern[str]:
    return re.compile(r"[\u0300-\u036f]+")


def normalise(text: str) -> str:
    """Cut ``text`` to what is looked at, in NFKC; case is kept, since it parts words."""
    text = text[:MAX_CHARACTERS]
    if text.isascii():
        return text
    return _lone_marks().sub("", unicodedata.normalize("NFKC", text))[:MAX_CHARACTERS]


def runs(text: str) -> list[tuple[str, bool]]:
    """Part ``text`` into runs of Chinese, Japanese or Korean characters (True) and what stands between (False)."""
    if text.isascii():
        return [(text, False)] if text else []
    return [(part, place % 2 == 1) for place, part in enumerate(_cjk_run().split(text)) if part]


def is_cjk(text: str) -> bool:
    """Tell whether ``text`` starts with a Chinese, Japanese or Korean character."""
    return not text.isascii() and _cjk_run().match(text) is not None


@cache
def _cjk_run() -> re.Pattern[str]:
    return re.compile(f"([{_CJK}]+)")


def bigrams(run: str) -> tuple[str, ...]:
    """Return the character bigrams of ``run``; a single character stands for itself."""
    return tuple(run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)


def content_parts(piece: str) -> list[str]:
    """Return the words of one piece of text without its function words.

    A compound of which only one word would be left (``MySQL``, ``onOk``) stays whole, so that a name is not
    reduced to a fragment of it.
    """
    parts = split_compound(piece)
    kept = [part for part in parts if part not in FUNCTION_WORDS]
    if len(parts) > 1 and len(kept) < 2:
        whole = "".join(parts)
        return [whole] if whole not in FUNCTION_WORDS else []
    return kept


def split_compound(piece: str) -> list[str]:
    """Split at underscores and camel humps and fold case: ``max_overflow``, ``bodyCell``, ``XMLHttpRequest``.

    A single capital before a hump belongs to it (``OAuth2`` is ``oauth2``), digits to the letters before them.
    """
    words: list[str] = []
    for part in piece.translate(_APOSTROPHES).split("_"):
        start = 0
        for index in range(1, len(part)):
            if index - start > 1 and _is_hump(part, index):
                words.append(part[start:index])
                start = index
        if part[start:]:
            words.append(part[start:])
    return [fold_word(word) for word in words]


def fold_word(word: str) -> str:
    """Fold case; NFKC once more, since some letters fold to a letter and a mark."""
    if word.isascii():
        return word.lower()
    return _lone_marks().sub("", unicodedata.normalize("NFKC", word.casefold()))


def _is_hump(word: str, index: int) -> bool:
    if not word[index].isupper():
        return False
    if not word[index - 1].isupper():
        return True
    following = word[index + 1 : index + 2]
    return following.islower() and word[index:].rstrip("s") != word[index]


def word_set(text: str) -> frozenset[str]:
    """Return the words of a table that is kept as text, so that it stays readable."""
    return frozenset(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """Return the phrases of a table, the longest first, so that a pattern made of them prefers it."""
    return tuple(sorted(text.split(), key=len, reverse=True))


FUNCTION_WORDS = word_set(
    """
    a an the this that these those such some any each every all both either neither other another
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one's
    who whom whose which what when where why how whether
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would ought cannot
    and or but nor so yet if then else than because while though although unless until since as
    of in on at by for from to into onto with within without about against between among through throughout
    during before after above below over under again further per via upon toward towards across along around
    behind beside besides beyond inside outside near off out up down
    not no never non none
    there here just only also too very quite rather much many more most less least few several own same
    let lets please ok vs versus etc e.g i.e
    dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt cant havent hasnt hadnt aint mustnt neednt mightnt
    im ive id youre youve theyre weve whats thats theres heres hows wheres
    """
)

EMPTY_WORDS = word_set(
    """
    a an the i me my mine we us our you your yours he him his she her hers it its they them their one's
    who whom whose which what when where why how whether am is are was were be been being do does did doing done
    have has had having could may might shall should would ought can will must there here just also too very quite
    let lets please ok etc that this these those
    im ive id youre youve theyre weve whats thats theres heres hows wheres
    """
)
"""Function words that no rule of the matcher reads: a topic made of a question can do without them."""

HEAVY_PREPOSITIONS = word_set("through between across among within without via against")
"""They tell something themselves when nothing follows: "has_many through"."""

LIGHT_WORDS = word_set(
    """
    use uses used using usage make makes making made get gets getting got want wants need needs needed needing
    write writes writing written implement implements implementing implementation work works working
    set sets setting config configure configures configured configuring configuration configurations setup settings option options
    example examples guide guides tutorial tutorials way ways howto best practice practices tip tips
    basic basics overview introduction intro explain explained explanation understand understanding
    proper properly correct correctly approach approaches documentation docs reference feature features
    support supports supported simple simply problem problems issue issues question questions help
    app apps application applications project projects thing things different various real instead
    require requires required requiring allow allows
    enable enables enabled enabling activate activated activating
    avoid avoids avoiding prevent prevents preventing fix fixes fixing solve solves solving
    """
)
"""Enabling is the unmarked case: what is told about a thing is told of the thing switched on."""

CJK_FUNCTION = phrases(
    "为什么 怎么样 怎么办 怎么 怎样 如何 什么 为何 哪些 哪个 哪里 是否 能否 可否 可以 能够 某些 某个 一些 一个 一种 "
    "有些 以及 或者 并且 而且 还是 但是 因为 所以 如果 用于 通过 进行 关于 对于 "
    "為什麼 怎麼樣 怎麼 怎樣 什麼 "
    "について ください ための する した して です ます には では から まで による および とは "
    "에서 으로 하는 방법 어떻게 "
    "的 了 吗 呢 吧 么 与 和 或 及 而 把 被 将 與 嗎 を が は の に へ で と も"
)
"""Phrases that end a run of characters, like white space. Single characters stand here only when they are hardly
ever part of a longer word of the trade."""

CJK_LIGHT = phrases(
    "最佳实践 解决方案 解决办法 使用方法 配置 设置 使用 用法 实现 方法 方式 步骤 教程 示例 例子 说明 详解 指南 入门 "
    "导致 引起 造成 内部 里面 问题 解决 方案 内容 部分 功能 相关 操作 处理 启用 开启 打开 避免 防止 設定 啟用 使い方 有効化 설정 사용 활성화"
)
"""Phrases that tell as little as the English light words."""


PACKAGE = "snowballstemmer"
_SHORTEST = 4
"""Shorter words are abbreviations more often than inflected forms (``ios``, ``css``)."""
_LOADING = allocate_lock()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the stem of a folded word; what is no plain English word comes back as it is.

    Snowball's English stemmer, applied twice: a noun made from a verb's noun ("normalizations") takes two steps to
    the root that its verb takes one to.
    """
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    stemmer = _english()()  # one of its own for each call, since it keeps the word that it works on
    return str(stemmer.stemWord(stemmer.stemWord(word)))


@cache
def _english() -> type[Any]:
    with _LOADING:  # another thread would find the stand-in gone in the middle of its import
        return _load()


def _load() -> type[Any]:
    """Load the one language: the package itself imports all thirty, which would be a sixth of a hit."""
    if PACKAGE not in sys.modules:
        found = find_spec(PACKAGE)
        if found is not None and found.submodule_search_locations is not None:
            stand_in = ModuleType(PACKAGE)
            stand_in.__path__ = found.submodule_search_locations
            sys.modules[PACKAGE] = stand_in
            try:
                english: type[Any] = import_module(f"{PACKAGE}.english_stemmer").EnglishStemmer
            finally:
                del sys.modules[PACKAGE]
            return english
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer  # type: ignore[no-any-return]
