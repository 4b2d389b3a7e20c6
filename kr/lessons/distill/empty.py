"""Texts that tell nothing: placeholders, and phrases that name neither a cause nor a remedy (SPEC 4.2)."""

import re

from kr.text.keywords import keywords

_NAME = re.compile(
    r"`[^`]+`|\B[@$#]\w[\w.-]*|--[a-z][\w-]+|\b\w+\(\)|\b[A-Za-z]\w*[._:/]\w[\w.]*|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*[a-z]\w*[A-Z]\w*"
    r"|\b[A-Z][A-Z0-9_]{2,}\b|\b\w+_\w+|\b[a-z]+(?:-[a-z]+)+\b|\b[A-Za-z]+[0-9]+\w*"
)
_LATIN_IN_CHINESE = re.compile(r"[\u3400-\u9fff].*[A-Za-z]{2}|[A-Za-z]{2}.*[\u3400-\u9fff]")
CHINESE = re.compile(r"[\u3400-\u9fff]")
_PLACEHOLDER = re.compile(
    r"\W*(?:.?|n/?a|tb[dac]|todo\b.{0,12}|fixme\b.{0,12}|none|null|nil|nan|undefined|unknown|pending|nothing|as above|see (?:above|below)|fix (?:it|this|me)|ditto"
    r"|same(?: as above)?|not (?:applicable|available|known)|no (?:fix|suggestion|remedy)"
    r"|暂?无(?:建议)?|没有|待(?:定|补充|确认|处理)|[见同如](?:上|下)(?:文|述)?|未知|空|不(?:详|适用))\W*",
    re.IGNORECASE,
)
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    error errors exception failed failure fail fails failing unknown internal server log logs detail details see check task
    agent step exit code status process command run test tests build something went wrong please try later message null none
    undefined object occurred returned non zero nonzero result story phase review reviews exceeded exceeds round rounds ended
    without approval approved contact support administrator admin again maximum max limit reached index bounds length out
    system operation request response retry there failing report
    """,
    )
)
_EMPTY_CHINESE = re.compile(
    r"(?:执行|任务|操作|系统|服务器?|内部|网络|发生|未知|出现|处理|构建|测试|请|查看|日志|错误|失败|异常|联系|管理员|稍后|再试|重试|繁忙|审查|评审|轮次?|超过|达到|最大"
    r"|未?通过|了|的|\d+|。|，|\s|[!！:：])+"
)


def is_placeholder(text: str) -> bool:
    """Tell a text that stands where nothing was known: ``N/A``, ``TBD``, ``无``, ``见上``, one character."""
    return len(text) < 40 and _PLACEHOLDER.fullmatch(text) is not None


def is_informative(text: str) -> bool:
    """Tell whether a text says anything about a cause at all."""
    if is_placeholder(text):
        return False
    if CHINESE.search(text):
        return _EMPTY_CHINESE.fullmatch(text) is None
    words = [word for word in keywords(text) if word not in _EMPTY_WORDS and not word.isdigit()]
    return len(words) > 1 or (bool(words) and has_name(text))


def has_name(text: str) -> bool:
    """Tell whether a text names an API, a setting, a file or a product."""
    return _NAME.search(text) is not None or _LATIN_IN_CHINESE.search(text) is not None


def first_name(text: str) -> str:
    """Return the first name of a text, quoted as it stands there; empty when it names nothing."""
    found = re.search(r"(['\"`])[\w$@./:-]{2,}\1", text) or _NAME.search(text)
    return found[0] if found else ""
