"""What people and tools wrap an instruction in, and what an auto-fix reports: made plain instructions (SPEC 4.2).

Courtesy, hedges and questions that propose go; nothing is negated and nothing is turned round.
"""

import re
from collections.abc import Sequence

from kr.lessons.distill.empty import CHINESE, has_name, is_informative
from kr.lessons.distill.verbs import begins_with_order, imperative
from kr.lessons.distill.wording import is_rejected

_AIM = re.compile(
    r"^to (?:fix|solve|resolve|avoid|prevent|suppress|silence|correct|update|address|work around|get rid of|remedy)\b[^:,]{0,60}[,:]\s*",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"^(?:(?:(?:it(?:'s| is| would be| might be) )?(?:better|best|safer|preferable) to|please,?|pls|kindly|instead,?|better,?|also,?|then|so|hence|therefore,?|otherwise,?|maybe|perhaps|imo,?|imho,?|nit(?:, but important)?[:,]"
    r"|let(?:'s| us)|in (?:this|that|such a) case,?|i(?:'d| would)? (?:think|suggest|recommend|propose|prefer)(?: that)?(?: (?:we|you))?"
    r"|i(?:'d| would)(?= [a-z])|(?:for [\w.-]+, )?a possible solution would be to|the (?:easiest |best |right )?(?:fix|solution) (?:is|would be|will be) to|remember to|be sure to)\s+)+",
    re.IGNORECASE,
)
_PLEASE = re.compile(r"^(?:please|pls|kindly),?\s+", re.IGNORECASE)
_SHOULD = re.compile(
    r"^(?:you|we|one|the author)(?:'ll)? (?:(?:should|must)\b(?! not\b|n't)(?: also)?(?: (?:want|need|have|like) to| consider)?"
    r"|(?:may|might|can|could|will)(?: also)? (?:(?:want|need|have|like|wish) to|consider)\b"
    r"|(?<!one )(?:can|could|may|might)(?: also)?(?=[^.]*(?:\binstead\b| to (?:fix|avoid|solve|resolve|prevent|silence|suppress)\b))"
    r"|(?:need|needs|have|has|ought|want) to|(?:should|must) (?=never\b|always\b|not\b))\s+(?!only\b|also\b|have\b|be\b|see\b|get\b|notice\b|find\b|encounter\b)",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    r"^(?:did you (?:remember|forget) to|could|can|would|why don't|why not|what if|how about|what about|maybe)(?: (?:we|you))?(?: (?:please|maybe|not|just))*\s+(.+?)\s*\?$",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^(?:to [a-z]+ [^:]{1,80}, )?(?:please )?(?:run|call|execute|type|issue|(use)): (?=(`?[\w.]+\()?\S)",
    re.IGNORECASE,
)
_ZH_COURTESY = re.compile(
    r"^(?:(?:麻烦|辛苦|烦请|劳烦)(?:[^，,]{0,8}(?:看|确认|处理|修改|改)(?:一?下)?[，,]\s*|\s*)|(?:我觉得|个人觉得|感觉|我认为)\s*[，,]?)"
)
_ZH_PROPOSED = re.compile(
    r"(?:是不是|是否|能不能|可不可以|要不要|能否|可否)(?:可以|应该|能)?(?:考虑)?(?:一下)?(?=[换改用加移把将拆提放使增删去设配调检校])(.+?)(?:呢|吗|吧)?[？?]$"
)
_QUESTION = ("?", "？")
_ZH_HEDGE = re.compile(r"(?:呢|吗|吧)?[？?]$")

_FIXED_BY = re.compile(
    r"\b(?:fix|resolv|solv|correct|address|repair|work(?:ed)? ?around|eliminat|prevent)\w*\b(?:\s+(.+?))?\s+(?:by|via|through) (?:now )?(\w+ing\b.+)",
    re.IGNORECASE,
)
_BY = re.compile(r"\bby (\w+ing\b.+)")
_FIXED_VIA = re.compile(
    r"^(.{0,80}?)\s*\b(?:auto-?)?(?:fixed|resolved|solved)\s+(?:by|via|with|using) (?!\w+ing\b)([^;,]{3,120})",
    re.IGNORECASE,
)
_FIXED_HEAD = re.compile(r"^[^;]{0,80}?\b(?:auto-?)?(?:fixed|resolved|solved)\s*[:–-]\s+", re.IGNORECASE)
_DONE = re.compile(
    r"^(?:(?:auto-?)?(?:fixed|fix|resolved|repaired)(?: automatically)?\s*[:,–-]+\s*)?(?:(?:i|we|it|agent|the agent)(?:'ve| have| has)? )?(?:now |then |also |just |simply )?(?=[a-z-]+ \S)",
    re.IGNORECASE,
)
_ZH_FIXED = re.compile(
    r"^(?:已经?)?(?:被)?(?:自动)?(?:修复|解决|处理)(?:完成|成功|好)?了?[^：:，,。]{0,40}[：:，,]\s*"
)
_ZH_THROUGH = re.compile(
    r"(?:^|[，,：:]\s*)(?:已)?(?:通过|采用|用)\s*(.+?)[，,]?\s*(?:的方式|来|后)?(?:自动)?(?:修复|解决|消除|规避|修正)了?[^，,。]{0,60}$"
)
_ZH_DONE = re.compile(
    r"(添加|增加|新增|修改|更新|升级|降级|替换|删除|移除|安装|配置|设置|补充|引入|启用|关闭|调整|迁移|注册|导入|改用|改为|改成|补上|加上|去掉|固定|锁定)了"
)
_ZH_ALREADY = re.compile(
    r"^(?:现)?已经?(?=[将把在为给对由用从添增新修更升降替删移安配设补引启关调迁注导改加去固锁])"
)


_RESULT = re.compile(
    r",? (?:and )?(?:(?:re-?r[au]n|re-?tested)\b.*|(?:all|everything|tests?|now|it)\b[^,;]*\b(?:green|pass\w*|works?))$"
)


def plain_order(sentence: str) -> str:
    """Take courtesy and hedges off a sentence; a question that proposes becomes what it proposes."""
    if CHINESE.search(sentence):
        return _plain_chinese(sentence)
    if is_rejected(sentence):
        return sentence
    sentence = capital(bare) if (bare := _PLEASE.sub("", sentence)) != sentence else sentence
    told = _AIM.sub("", sentence)
    proposed = _PROPOSED.match(_COURTESY.sub("", told) if told.endswith("?") else "")
    if proposed is not None:
        told = imperative(proposed[1]) or proposed[1]
        return capital(told) if begins_with_order(told) else sentence
    head, mark, last = told.rpartition("; ") if told.endswith("?") else ("", "", "")
    if mark and (plainly := plain_order(last)) != last:
        return f"{head}; {plainly[0].lower()}{plainly[1:]}"
    told = _SHOULD.sub("", _COURTESY.sub("", _SHOULD.sub("", told)))
    told = _COMMAND.sub(lambda found: "use " if found[1] else "call " if found[2] else "run ", told)
    if told == sentence or not told:
        return sentence
    told = imperative(told) or told
    return capital(told) if begins_with_order(told) else sentence


def plain_orders(parts: Sequence[str]) -> list[str]:
    """Make plain what the sentences of a remark ask for; a question proposes only where nothing answers it."""
    last = len(parts) - 1
    return [
        part if part[-1:] in _QUESTION and at < last else plain_order(part) for at, part in enumerate(parts)
    ]


def _plain_chinese(sentence: str) -> str:
    told = _ZH_COURTESY.sub("", sentence)
    proposed = _ZH_PROPOSED.search(told)
    if proposed is not None:
        told = f"{told[: proposed.start()]}{proposed[1]}"
    return _ZH_HEDGE.sub("", told) if told != sentence else told


def capital(told: str) -> str:
    """Begin a sentence with a capital, unless it begins with a name."""
    first = told.split(" ", maxsplit=1)[0]
    return told[:1].upper() + told[1:] if re.fullmatch(r"(?:re-)?[a-z][a-z']*", first) else told


def reported(sentences: list[str]) -> tuple[str, str]:
    """Return what a report of a fix says was done, as an instruction, and what it was done about; both may be empty."""
    about = ""
    for sentence in sentences:
        found, fixed = _done(sentence)
        if found and is_informative(found):
            found = _RESULT.sub("", found)
            return capital(found), fixed if has_name(fixed) else about
        about = about or (sentence if has_name(sentence) else "")
    return "", ""


def _done(sentence: str) -> tuple[str, str]:
    if CHINESE.search(sentence):
        return _done_in_chinese(sentence)
    found = _FIXED_BY.search(sentence)
    if found is not None and (told := imperative(found[2])):
        return told, found[1] or ""
    via = _FIXED_VIA.search(sentence)
    if via is not None:
        return f"use {via[2]}", via[1]
    sentence = _FIXED_HEAD.sub("", sentence)
    clauses = re.split(r";\s+|,\s+(?:so|then) ", sentence)
    for clause in clauses:
        told = imperative(_DONE.sub("", clause, count=1), is_past=True)
        if told:
            return told, ""
    found = _BY.search(sentence)
    return (imperative(found[1]), sentence[: found.start()].strip()) if found else ("", "")


def _done_in_chinese(sentence: str) -> tuple[str, str]:
    through = _ZH_THROUGH.search(sentence)
    told = through[1] if through else _ZH_FIXED.sub("", sentence)
    plain = _ZH_DONE.sub(r"\1", _ZH_ALREADY.sub("", told))
    return (plain, "") if plain != sentence else ("", "")
