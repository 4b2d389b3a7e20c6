"""How a lesson is worded: affirmative, without ornaments and repetition, whole sentences (seed 003, step 3)."""

import re

from kr.lessons.columns import columns, cut
from kr.lessons.distill.empty import CHINESE, is_informative
from kr.lessons.distill.verbs import DUTIES, PARTICIPLES, begins_with_order, is_imperative, is_no_noun

_CJK = r"\u3400-\u9fff"
_LABEL = re.compile(
    r"^(?:\W*\[?(?:HIGH|MEDIUM|LOW|CRITICAL|BLOCKER|MAJOR|MINOR|P[0-4]|高|中|低|严重)\]?(?:\s*[:：\-–—|]+\s*|\s*\]\s*|\s+(?=[A-Z@`\u3400-\u9fff]))"
    r"|\W{0,3}(?:severity|issue|problem|bug|error|errors|nit|blocking|review(?:er)?|comment|remark|description|message"
    r"|details?|steps?|summary|suggestion|recommendation|resolution|fix|hint|help|tip|note|action|solution|cause"
    r"|问题|描述|建议|修复建议|修复方案|修复|解决方案|解决办法|原因|错误|说明|备注|审查意见|评审意见)(?:\W{0,3}[:：]|\s+[-–—]\s)\s*"
    r"|\W?【[^】]{1,6}】\s*"
    r"|\[[a-z][\w.:@/ -]{1,30}\]\s+|internal server error:\s+|(?:ERROR )?[0-9]{4} \([0-9A-Z]{5}\):\s+"
    r"|[\w./-]+\.[a-z]{1,5}(?:[:(][0-9]+)(?:[:,][0-9]+)?\)?:?\s+(?:[-–—]\s+)?"
    r"|(?:fatal|(?:fatal )?error):\s+|(?:psql|docker|curl|go):\s+(?:\([0-9]+\)\s+)?|(?:[A-Z]\w*)?Warning:\s+|[ew]:\s+(?=\S+:\d)|\[?Vue warn\]?:\s+|npm (?:ERR!|error)\s+(?:(?:engine|notsup|404|code)\s+)?|remote:\s+(?:error:\s+)?"
    r"|##\[\w+\]|[\u3400-\u9fff]{1,6}(?:失败|错误|报错|异常|出错)[：:]\s*(?=[A-Za-z@\"'`\[])|\s*[-*•●❌✗✘×✖⨯>#❯]+\s+|(?-i:x\s+(?=[A-Z]))|\s*\(?[0-9]{1,2}[.)、]\s+)",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"\b([^\W\d_]{2,})(?:\s+\1\b)+|([\u3400-\u4e0c\u4e0e-\u9fff]{2,6})\2+", re.IGNORECASE)
# What stands in backticks is code, and so are `2**16`, `src/**/*.ts`, `**kwargs` and `__init__`.
_EMPHASIS = re.compile(
    r"(`[^`\n]*`)|(?<![A-Za-z0-9_/*)\].])(?:\*\*(?=[^\s/*])((?:(?!\*\*).)+?)(?<=[^\s/])\*\*"
    r"|__(?=\S)((?:(?!__).)*?[^\w\n](?:(?!__).)*?)(?<=\S)__)(?![A-Za-z0-9_/*(])"
)
_FENCE = re.compile(r"```\w*")
_LINK = re.compile(r"\[([^\]]+)\]\(https?://[^)\s]+\)")
_MORE_INFO = re.compile(
    r"\s*->\s*\[Help \d+\]|[.;]?\s*See the (?:report|log)s? at\b.*|;\s*if you choose to ignore\b.*|\s*Does the file exist\?"
    r"|\s*\(?(?:for (?:further|more) (?:information|details?)|see (?:also )?(?=https?://)|read more|more info(?:rmation)?"
    r"|learn more|consult)\b[^.。]*?(?:https?://\S+|$)\)?(?: for (?:more|further) (?:details?|info\w*)\b\.?)?",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\s+")
# A question mark after a blank, or after its like, is an operator: `a ?? [b]`.
_SENTENCE = re.compile(
    rf"(?:(?<=[^.]\.)|(?<=[^\s.?!][!?])|(?<=[a-z][!?]{{2}}))(?<!\be\.g\.)(?<!\bi\.e\.)\s+(?=[A-Z\"'`(\[@<{_CJK}])|(?<=[。！？；])\s*"
)
_ENDING = re.compile(r"[\s.。;；,，:：、]+$")
_PARENTHESES = re.compile(r"\s*[(（](?!e\.g|如|例如)[^()（）]{12,}[)）]")
_CLAUSE = re.compile(r"[,;，；、]\s*|\s+[-–—]+\s+|(?<=[a-z)`'\"]): ")

_MODAL = re.compile(
    r"\b(?:must|should|shall|needs?|required?|requires|instead|ensure|make sure|have to|has to|always|avoid|prefer|do not|don't|only"
    r"|(?<!in )(?<!of )(?<!the )use(?! of\b| case))\b",
    re.IGNORECASE,
)
_ZH_DIRECTIVE = re.compile(
    r"需|须|必须|应[该当]?|请(?!求)|改[用为成]|使用(?!了)|避免|不要|禁止|确保|不?建议|统一|务必|[切请]勿|采用|[加补][上充]|先.+再|替换|移[到至除]|升级|降级|换成"
    r"|(?:^|[，,；;])\s*(?:把|将|给|为|对|在|由|用|让|开启|启用|关闭|返回|缩小|放大|缩短|延长|拆分|合并|建立|增加|减少|提取|封装|删除|去掉|添加|设置|配置|调用|检查|校验)(?![^，,；;]*[后时][^，,；;再]*(?:会|将|就|不))"
)
_RISK = r"(?:存在|有).{0,12}(?:风险|问题|漏洞|隐患)"
_ZH_RISK = re.compile(rf"^[^，,；;]*{_RISK}|^[^需须应请改]*[，,；;][^，,；;]*{_RISK}[^，,；;]*$")
_ZH_ORDER = re.compile(
    r"(?:^|[，,；;：:。]\s*)(?:建议|最好|应[该当]?|需要?|必须|请|可以?|记得|务必|改[用为成]|换成|统一|[^，,；;：:。]{0,60}(?:应[该当]|必须|需要?(?!要)|最好|可以用|改[用为成]|换成|放[到进]|移[到至]))"
    r"|(?:^|[，,；;]\s*)(?:把|将|给|在).{2,}(?:[加换移放改升降补]|设[置为]|使用|添加)"
)
_ORDER = re.compile(
    r"(?:[;:,]|\s[-–—]+|\b(?:so|and|then)) (?:please |just |better )?(?:use|add|set|wrap|move|replace|make sure|switch|await|catch|prefer|remove|install|upgrade|pin|raise|configure|declare|define)\b (?!is\b|are\b|of\b|for\b|failed\b)"
    r"|\b(?:should|must|needs? to|ha(?:s|ve) to) (?:be|use|have|call|return|not|never|go|move|come|run|stay|live|take|pass|set|await|state|check|handle)\b"
    r"|^should be\b|\bis the (?:right|better|best|correct|proper) (?:place|way|choice|tool|call|type|option)\b|\binstead of\b",
    re.IGNORECASE,
)
_AIMED = re.compile(r"^to [a-z]+ [^:,]{1,80}, (?:please |you (?:must|should|need to) )?", re.IGNORECASE)
_ASKED = re.compile(
    r"please,? (?!see\b|note\b|check\b|try\b|refer\b|contact\b|visit\b|report\b|wait\b|be\b|do\b|file\b|open\b|consult\b|review\b|read\b|find\b|retry\b)[a-z]+ (?:the|a|an|your|all|its|it)\b",
    re.IGNORECASE,
)
_THOUGHT = re.compile(
    r"\b(?:i|we) (?:first |at first |initially |once )?(?:thought|considered|assumed|were tempted|was tempted)\b"
    r"|(?:想法|做法|思路|方案|写法|观点)(?:是|其实|本身)*(?:不[对行可好]|错|有问题)"
    r"|(?:尝试|试)(?:[过了着]|[把将用]).*(?:没有?效果|无效|不行|没用|没有解决|未解决|失败)",
    re.IGNORECASE,
)
_AGAINST = re.compile(
    r"\b(?:can|could|may|might|tempting)\b.*?\b(?:but|however|although|though)\b(?! (?:only|not) )"
    r"|(?:可以|能够|也许|或许|可能|尽管|虽然).*?(?:但是?|然而|却|不过)",
    re.IGNORECASE,
)
_ZH_NOT = re.compile(r"(?:不|没)(?:应该?|要|能|可以?|建议|推荐|需要?)")
_ERROR_HEAD = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Warning|Failure|Fault)|E\d+)\b")
_PROHIBITION = re.compile(
    r"^(?:please )?(?:never|don't|do not|avoid|stop|(?:[^.,;]{0,40})(?:must|should) (?:not|never))\b|^(?:这里)?(?:不要|禁止|避免|切勿|请?勿|不能|不应该?)",
    re.IGNORECASE,
)
_ZH_CLAUSE = re.compile(r"[，,；;]\s*")
_FACT = re.compile(
    r"(?i:\b(?:not support|only supports?|by default|automatically|deprecated|no longer|replaced by|renamed)\b)"
    r"|不支持|不能|无法|只能|自动|默认|已废弃|不再"
)
_EXCEPTION = re.compile(
    r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Fault|Violation|Panic|Warning)|[A-Z]\w*(?:NotFound|Timeout))(?:[:：]\s*(.+))?",
    re.DOTALL,
)
_ZH_VERBS = (
    "处理|校验|验证|关闭|释放|设置|配置|添加|增加|加锁|加|使用|调用|检查|判断|判空|捕获|覆盖|注册|声明|定义|引入|导入|转义|过滤|初始化|指定|传入|传递|传"
    "|返回|更新|清理|清除|取消|销毁|解绑|考虑|实现|提供|同步|脱敏|加密|做|进行|写|补充|限制|分页|启用|开启|注入|标注|继承|重置|提交|回滚|等待|绑定|防抖|节流|去重|排序|鉴权|授权|认证|明确|说明|缓存|使用到|暴露|导出"
)
_ZH_OUTCOME = re.compile(rf"[，,；;]?\s*(?:从而|以致|因此|所以)?(?:会|将)?(?=(导致|造成|引起|引发|{_RISK}))")
# What follows what is missing comes of it, unless it says what for, what more or what else to do.
_ZH_ELSE = re.compile(
    r"，(?!(?:[^，]*(?:需|必须|应[该当]?|请(?!求)|建议|避免|防止|确保|以便|用于|否则|才能|改[用为]|不要|禁止|因为|由于))|[以并且再来而但同然]|从而|尤其|例如|比如|包括|如)"
    r"(?=[^，]*(?:会|不|没|无|可|能|将|失|漏|错|空|丢|崩|慢|抛|报|泄|死锁|重复|冲突|异常|阻塞|溢出|超时|攻击|null|NPE))\s*(\S)"
)
_ZH_IN_LOOP = re.compile(
    r"^(.{0,40}?)(?:在)?(for ?循环|循环|遍历)(内|中|里面?|体内)(?:反复|重复|频繁|直接|逐条|逐个)?(?=(?:调用|查询|访问|请求|创建|查|发送|打开|执行|连接))"
)
_A = r"(?:a |an |the |any )?"
_AFFIRMATIVE: tuple[tuple[str, str], ...] = (
    (r"no tests? (?:cover|check|exercise|exist for)s? (.+)", r"Add tests for \1"),
    (rf"(?:missing|lacks?|lacking|absent|no|there (?:is|are) no)(?! (?:such|module|space|route|one|longer|qualifying|provider|need|more|further|results?|matching|match)\b)(?!.*\b(?:matches|is|are|was|were|can|could|will|has|have|exists?|found|available|allowed|given|returned|fits?)\b) {_A}(.+)", r"Add \1"),
    (rf"(.+?) (?:is|are) missing {_A}(.+)", r"Add \2 to \1"),
    (r"(.+?) (?:is|are) missing", r"Add \1"),
    (rf"(.+?) (?:lacks?|has no|have no) {_A}(.+)", r"Add \2 to \1"),
    (r"(?:(?:you|we|the author) )?(?:have )?(?:likely |probably )?(?:forgot|forgotten|forgets|neglects) to (.+)", r"Remember to \1"),
    (r"(.+?) (?:forgets|forgot|neglects|neglected) to (.+)", r"\1 must \2"),
    (rf"(.+?) (?:does not|doesn't|do not|don't|did not|didn't|never) ({'|'.join(DUTIES)})\b(.*)", r"\1 must \2\3"),
    (rf"(.+?) (?:is|are|was|were|has|have) (?:not|never)(?: been| being)? ((?:\w+ly )?(?:{'|'.join(PARTICIPLES)}))\b(.*)", r"\1 must be \2\3"),
    (r"unhandled (.+)", r"Handle \1"),
    (r"(?:unused|dead) (.+)", r"Remove unused \1"),
    (r"unescaped (.+)", r"Escape \1"),
    (r"unvalidated (.+)", r"Validate \1"),
    (r"unclosed (.+)", r"Close \1"),
    (r"(.+?) (?:is|are) hard-?coded(.*)", r"Move \1 to configuration: hard-coded\2"),
    (r"hard-?coded (.+)", r"Move hard-coded \1 to configuration"),
    (r"duplicated? (?!key|entry)(.+)", r"Extract duplicated \1 to one place"),
    (r"(?:possible |potential )?sql injection (.+)", r"Bind parameters: SQL injection \1"),
    (r"(?:possible |potential )?(?:xss|cross-site scripting) (.+)", r"Escape output: XSS \1"),
    (r"(?:possible |potential )?n\+1 (?:query|queries|select|problem)? ?(.+)", r"Fetch in one query: N+1 \1"),
    (r"(?:possible |potential )?race condition (.+)", r"Serialize access: race condition \1"),
    (r"(?:possible |potential )?(memory|resource|connection|listener) leak (.+)", r"Release what is acquired: \1 leak \2"),
)  # fmt: skip
_LINK_OR_BRACKET = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|`[^`]*`|\"[^\"]*\"|<[^<>]*>|: ")
_DANGLING = re.compile(
    r"(?<=.)[;,.—–-]+ (?:if|when|unless|while|because|since|although|instead of)\b[^;,]*$", re.IGNORECASE
)
_SHORT_TAIL = 20
_MEANT = re.compile(
    r"\b(?:by design|on purpose|intention\w*|deliberate\w*|as (?:intended|expected|designed|required))\b|故意|有意|设计如此|(?:不是|并非|不再)(?:没|未|缺|忘)|没有(?:必要|问题|关系)|没必要|(?:不|无)需",
    re.IGNORECASE,
)
_INNER_ARTICLE = re.compile(r"(?<=[a-z] )(?:The|An?)(?= )")
_ZH_AFFIRMATIVE: tuple[tuple[str, str], ...] = (
    (r"^(.*?)(?:存在|有)?硬编码(?:了|的)?\s*(.+)", r"\1需要将 \2 移到配置，不要硬编码"),
    (
        rf"(?:并未|尚未|还没有?|没有|没|未能|未|忘记了?|忘了|遗漏了?|漏了?)(?:对)?(?=\s*(?:{_ZH_VERBS}|(?:remove|close|await|commit|rollback|clear|release|unlock|flush|dispose|unsubscribe|catch|return|join|cancel|shutdown)\b)(?!成功|找到|知))",
        "需要",
    ),
    (rf"(?:并未|尚未|没有|未)(?=[在对为给][^，,。；;]{{1,40}}(?:{_ZH_VERBS}))", "需要"),
    (r"(?:缺少了?|缺失了?|缺乏|欠缺)(?:对|必要的|相应的)?", "需要"),
    (r"(?:忘记了?|忘了)", "需要"),
    (r"(?:遗漏了?|漏掉了?)", "需要补充 "),
)


def plain(text: str) -> str:
    """Make one line without Markdown ornaments, labels and repeated words."""
    text = _LINK.sub(r"\1", _EMPHASIS.sub(_unadorned, _FENCE.sub(" ", text)))
    text = _SPACES.sub(" ", _MORE_INFO.sub("", text)).strip()
    for _ in range(4):
        text = _LABEL.sub("", text, count=1).strip()
    return _once(text)


def _unadorned(found: re.Match[str]) -> str:
    return found[1] or found[2] or found[3] or ""


def sentences(text: str) -> list[str]:
    """Split into sentences, without their final marks; the same sentence once."""
    parts = (ended(part) for part in _SENTENCE.split(text))
    return list(dict.fromkeys(part for part in parts if part))


def ended(text: str) -> str:
    """Take off final marks, but those that belong to the text (``pip install .``)."""
    return text.strip() if text.rstrip().endswith((" .", "...")) else _ENDING.sub("", text).strip()


def _once(text: str) -> str:
    text = _REPEATED.sub(lambda found: found[1] or found[2], text)
    parts = text.split(": ")
    return ": ".join(part for at, part in enumerate(parts) if not at or part != parts[at - 1])


def spoken(first: str, second: str) -> str:
    """Put one sentence after another; ``sentences`` left a question or an exclamation its mark."""
    return f"{first}{' ' if first.endswith(('?', '？', '!', '！')) else '. '}{second}"


def is_telling(sentence: str) -> bool:
    """Tell whether a sentence says what to do. A clause that does so goes before one that tells of a risk."""
    if _ZH_RISK.search(sentence):
        clauses = [part for part in _ZH_CLAUSE.split(sentence) if not _ZH_RISK.search(part)]
        return any(_ZH_DIRECTIVE.search(clause) for clause in clauses)
    return (
        _MODAL.search(sentence) is not None
        or _ZH_DIRECTIVE.search(sentence) is not None
        or is_imperative(sentence)
    )


def is_order(sentence: str) -> bool:
    """Tell whether a sentence is an instruction in its author's own words: it commands, or says what should be."""
    if is_rejected(sentence):
        return False
    if CHINESE.search(sentence):
        return _ZH_ORDER.search(sentence) is not None and _ZH_RISK.search(sentence) is None
    is_command = begins_with_order(sentence) and is_no_noun(sentence)
    return (
        is_command
        or is_aimed(sentence)
        or _ASKED.match(sentence) is not None
        or _ORDER.search(sentence) is not None
    ) and not _ERROR_HEAD.match(sentence)


def is_aimed(sentence: str) -> bool:
    """Tell whether a sentence says what to do for an aim: ``To begin anew, first issue X()``."""
    told = _AIMED.sub("", sentence)
    return told != sentence and begins_with_order(told) and is_no_noun(told)


def is_rejected(sentence: str) -> bool:
    """Tell whether a sentence names what could be done, or was thought of, only to speak against it."""
    if _THOUGHT.search(sentence):
        return True
    against = _AGAINST.search(sentence)
    if against is None:
        return False
    told = _ZH_NOT.sub("", sentence[against.end() :])
    return not (_ZH_ORDER.search(told) or begins_with_order(told.lstrip(" ,:")) or _ORDER.search(told))


def is_prohibition(sentence: str) -> bool:
    """Tell whether a sentence says what not to do, and no more."""
    return _PROHIBITION.match(sentence) is not None and _ORDER.search(_PROHIBITION.sub("", sentence)) is None


def stated(sentence: str) -> str:
    """Word a sentence that no rule knows: as it stands, for what is no error may be an instruction in words that no table has.

    An exception that says nothing is empty.
    """
    found = _EXCEPTION.fullmatch(sentence)
    return "" if found is not None and (found[2] is None or not is_informative(found[2])) else sentence


def is_fact(sentence: str) -> bool:
    """Tell whether a sentence says how a thing behaves: worth knowing as it stands."""
    return _FACT.search(sentence) is not None


def affirmative(sentence: str) -> str:
    """Say what is needed rather than what is missing, where a general rule can."""
    if _MEANT.search(sentence):
        return sentence
    if CHINESE.search(sentence):
        return _zh_affirmative(sentence)
    if _MODAL.search(sentence):
        return sentence
    for pattern, replacement in _AFFIRMATIVE:
        found = re.fullmatch(pattern, sentence, re.IGNORECASE)
        if found is not None:
            return _INNER_ARTICLE.sub(lambda article: article[0].lower(), found.expand(replacement))
    return sentence


def _zh_affirmative(sentence: str) -> str:
    told = _ZH_IN_LOOP.sub(r"\1避免在\2\3", sentence)
    for pattern, replacement in _ZH_AFFIRMATIVE:
        told = re.sub(pattern, replacement, told)
    told = re.sub("需要(?:需要)+", "需要", told)
    if told == sentence or "否则" in told:
        return told
    needed = told.find("需要")
    outcome = _ZH_OUTCOME.search(told, needed + 2) if needed >= 0 else None
    if outcome is None:
        return _otherwise(told, needed) if needed >= 0 else told
    head, _comma, condition = (
        told[: outcome.start()].partition("，")
        if "，" in told[needed : outcome.start()]
        else (told[: outcome.start()], "", "")
    )
    will = "会" if outcome[1] in {"导致", "造成", "引起", "引发"} else ""
    return f"{head}，否则{condition}{will}{told[outcome.end() :]}"


def _act_first(text: str) -> str:
    """Put ``Instead of this, do that`` the other way round."""
    for comma in re.finditer(", ", text) if text.startswith("Instead of ") else ():
        act = text[comma.end() :]
        if begins_with_order(act):
            return f"{act[:1].upper()}{ended(act[1:])}, instead of {text[11 : comma.start()]}"
    return text


def _otherwise(told: str, needed: int) -> str:
    outcome = _ZH_ELSE.search(told, needed)
    if outcome is None:
        return told
    blank = " " if outcome[1].isascii() else ""
    return f"{told[: outcome.start()]}，否则{blank}{told[outcome.start(1) :]}"


def tail_of_chain(text: str, limit: int) -> str:
    """Take the useless head off a long chain of ``context: context: cause``, until the rest fits; what tells nothing is no rest.

    What stands in brackets or quotes is no link of a chain.
    """
    while columns(text) > limit:
        link = next((found.end() for found in _LINK_OR_BRACKET.finditer(text) if found[0] == ": "), 0)
        if not link or not is_informative(text[link:]) or len(text) - link < _SHORT_TAIL:
            break
        text = text[link:]
    return text


def fit(text: str, limit: int) -> str:
    """Bring to at most ``limit`` columns: side remarks go first, then whole clauses, then words.

    What to do stays before what it replaces, and a condition does not stay without it.
    """
    if columns(text) > limit:
        text = _act_first(text)
    while columns(text) > limit and (shorter := _PARENTHESES.sub("", text, count=1)) != text:
        text = shorter
    if columns(text) <= limit:
        return text
    best = ""
    for clause in _CLAUSE.finditer(text):
        if columns(text[: clause.start()]) <= limit:
            best = text[: clause.start()]
    best = _DANGLING.sub("", best)
    if columns(best) >= limit // 2:
        return best.rstrip()
    shortened = cut(text, limit)
    words = shortened[:-1].rsplit(" ", 1)
    return f"{words[0].rstrip(' ,;:')}…" if len(words) > 1 and len(words[1]) < 20 else shortened
