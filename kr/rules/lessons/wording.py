"""How a lesson is worded: affirmative, without ornaments and repetition, whole sentences (seed 003, step 3)."""

import re

from kr.rules.lessons.columns import columns, cut

_CJK = r"\u3400-\u9fff"
_LABEL = re.compile(
    r"^(?:\W*\[?(?:HIGH|MEDIUM|LOW|CRITICAL|BLOCKER|MAJOR|MINOR|P[0-4]|高|中|低|严重)\]?(?:\s*[:：\-–—|]+\s*|\s*\]\s*|\s+(?=[A-Z@`\u3400-\u9fff]))"
    r"|\W{0,3}(?:severity|issue|problem|bug|error|errors|nit|blocking|review(?:er)?|comment|remark|description|message"
    r"|details?|summary|suggestion|recommendation|resolution|fix|hint|help|tip|note|action|solution|cause"
    r"|问题|描述|建议|修复建议|修复方案|修复|解决方案|解决办法|原因|错误|说明|备注|审查意见|评审意见)\W{0,3}[:：]\s*"
    r"|\W?【[^】]{1,6}】\s*"
    r"|[\w./-]+\.[a-z]{1,5}(?:[:(][0-9]+)(?:[:,][0-9]+)?\)?:?\s+(?:[-–—]\s+)?"
    r"|(?:[A-Z]\w*)?Warning:\s+|\[?Vue warn\]?:\s+|npm (?:ERR!|error)\s+"
    r"|\s*[-*•●❌✗✘×✖⨯>#]+\s+|\s*\(?[0-9]{1,2}[.)、]\s+)",
    re.IGNORECASE,
)
_REPEATED = re.compile(rf"\b([^\W\d_]{{2,}})(?:\s+\1\b)+|([{_CJK}]{{2,6}})\2+", re.IGNORECASE)
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_FENCE = re.compile(r"```\w*")
_LINK = re.compile(r"\[([^\]]+)\]\(https?://[^)\s]+\)")
_MORE_INFO = re.compile(
    r"\s*\(?(?:for (?:further|more) (?:information|details?)|see (?:also )?(?=https?://)|read more|more info(?:rmation)?"
    r"|learn more|consult)\b[^.。]*?(?:https?://\S+|$)\)?",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\s+")
_SENTENCE = re.compile(rf"(?<=[^.][.!?])\s+(?=[A-Z\"'`(\[@<{_CJK}])|(?<=[。！？；])\s*")
_ENDING = re.compile(r"[\s.。;；,，:：、]+$")
_PARENTHESES = re.compile(r"\s*[(（][^()（）]{12,}[)）]")
_CLAUSE = re.compile(r"[,;，；、]\s*|\s+[-–—]+\s+|(?<=[a-z)`'\"]): ")

_DIRECTIVE = re.compile(
    r"(?i:\b(?:must|should|shall|needs?|required?|requires|instead|ensure|make sure|have to|has to|always|avoid|prefer"
    r"|do not|don't|only|use)\b)"
    r"|(?:^|; )(?i:please\s+)?(?i:never|narrow|shorten|raise|add|align|allow|annotate|apply|assert|await|batch|bind|bound|break|bump|cache|call|cancel|cast|catch"
    r"|change|check|clean|clear|close|commit|compare|compute|configure|consider|convert|copy|create|debounce|declare|define"
    r"|delete|depend|disable|document|drop|enable|encode|escape|expect|export|extract|fetch|filter|fix|format|free|generate"
    r"|give|grant|guard|handle|hash|hide|implement|import|include|increase|index|initiali[sz]e|inject|insert|install|join"
    r"|keep|limit|link|load|lock|log|lower|map|mark|memoi[sz]e|migrate|mock|move|name|normali[sz]e|open|pass|paginate|parse"
    r"|persist|pin|place|provide|publish|put|query|quote|raise|read|rebuild|record|reduce|refactor|register|release|remove"
    r"|rename|render|replace|reset|resolve|restart|restore|restrict|retry|return|reuse|rewrite|rotate|run|sanitize|save"
    r"|select|send|serialize|set|show|sort|specify|split|start|stop|store|stub|subscribe|supply|switch|test|throttle|throw"
    r"|treat|trim|truncate|turn|type|unsubscribe|unwrap|update|upgrade|validate|verify|wait|wrap|write)\b"
    r"|需|须|必须|应[该当]?|请|改[用为成]|使用(?!了)|避免|不要|禁止|确保|建议|统一|务必|[切请]勿|采用|[加补][上充]|先.+再|替换|移[到至除]"
)
_ZH_RISK = re.compile(r"^(?!.*(?:须|需|应|请|改)).*存在.{0,12}(?:风险|问题|漏洞|隐患)")
_FACT = re.compile(
    r"(?i:\b(?:not support|only supports?|by default|automatically|deprecated|no longer|replaced by|renamed)\b)"
    r"|不支持|不能|无法|只能|自动|默认|已废弃|不再"
)
_VERBS = re.findall(
    r"\w+",
    "handle check validate verify close release await set call escape use include test cover log catch return reset clear clean"
    " dispose unsubscribe cancel propagate implement declare define register export import specify pass sanitize encode"
    " initialize initialise lock synchronize mock wait assert document limit paginate cache update invalidate rethrow free"
    " filter encrypt hash quote respect follow",
)
_PARTICIPLES = re.findall(
    r"\w+",
    "handled checked validated verified closed released awaited set called escaped used included tested covered logged caught"
    " returned reset cleared cleaned disposed unsubscribed cancelled canceled propagated implemented declared defined registered"
    " exported imported specified passed sanitized sanitised encoded initialized initialised locked synchronized mocked awaited"
    " documented limited paginated cached updated invalidated encrypted hashed quoted configured provided wrapped memoized freed"
    " filtered debounced bounded pinned enforced parameterized annotated translated reused removed persisted flushed committed",
)
_ZH_VERBS = (
    "处理|校验|验证|关闭|释放|设置|配置|添加|增加|加锁|加|使用|调用|检查|判断|判空|捕获|覆盖|注册|声明|定义|引入|导入|转义|过滤|初始化|指定|传入|传递|传"
    "|返回|更新|清理|清除|取消|销毁|解绑|考虑|实现|提供|同步|脱敏|加密|做|进行|写|补充|限制|分页|启用|开启|注入|标注|继承|重置|提交|回滚|等待|绑定|防抖|节流|去重|排序|鉴权|授权|认证|明确|说明|缓存|使用到|暴露|导出"
)
_A = r"(?:a |an |the |any )?"
_AFFIRMATIVE: tuple[tuple[str, str], ...] = (
    (r"no tests? (?:cover|check|exercise|exist for)s? (.+)", r"Add tests for \1"),
    (rf"(?:missing|lacks?|lacking|absent|no|there (?:is|are) no)(?! (?:such|module|space|route|one|longer|qualifying|provider)\b) {_A}(.+)", r"Add \1"),
    (rf"(.+?) (?:is|are) missing {_A}(.+)", r"Add \2 to \1"),
    (r"(.+?) (?:is|are) missing", r"Add \1"),
    (rf"(.+?) (?:lacks?|has no|have no) {_A}(.+)", r"Add \2 to \1"),
    (r"(?:you |we |the author )?(?:forgot|forgets|neglects|failed) to (.+)", r"Remember to \1"),
    (r"(.+?) (?:forgets|forgot|fails|neglects|neglected) to (.+)", r"\1 must \2"),
    (rf"(.+?) (?:does not|doesn't|do not|don't|did not|didn't|never) ({'|'.join(_VERBS)})\b(.*)", r"\1 must \2\3"),
    (rf"(.+?) (?:is|are|was|were|has|have) (?:not|never)(?: been| being)? ((?:\w+ly )?(?:{'|'.join(_PARTICIPLES)}))\b(.*)", r"\1 must be \2\3"),
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
_INNER_ARTICLE = re.compile(r"(?<=[a-z] )(?:The|An?)(?= )")
_ZH_AFFIRMATIVE: tuple[tuple[str, str], ...] = (
    (r"no tests? (?:cover|check|exercise|exist for)s? (.+)", r"Add tests for \1"),
    (r"^(.*?)(?:存在|有)?硬编码(?:了|的)?\s*(.+)", r"\1需要将 \2 移到配置，不要硬编码"),
    (
        rf"(?:并未|尚未|还没有?|没有|没|未能|未|忘记了?|忘了|遗漏了?|漏了?)(?:对)?(?=\s*(?:{_ZH_VERBS})(?!成功|找到|知))",
        "需要",
    ),
    (r"(?:缺少了?|缺失了?|缺乏|欠缺)(?:对|必要的|相应的)?", "需要"),
    (r"(?:忘记了?|忘了)", "需要"),
    (r"(?:遗漏了?|漏掉了?)", "需要补充 "),
)


def plain(text: str) -> str:
    """Make one line without Markdown ornaments, labels and repeated words."""
    text = _LINK.sub(r"\1", _EMPHASIS.sub(r"\2", _FENCE.sub(" ", text)))
    text = _SPACES.sub(" ", _MORE_INFO.sub("", text)).strip()
    for _ in range(4):
        text = _LABEL.sub("", text, count=1).strip()
    return _once(text)


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


def is_telling(sentence: str) -> bool:
    """Tell whether a sentence says what to do."""
    if _ZH_RISK.search(sentence):
        return False
    return _DIRECTIVE.search(sentence) is not None


def is_fact(sentence: str) -> bool:
    """Tell whether a sentence says how a thing behaves: worth knowing as it stands."""
    return _FACT.search(sentence) is not None


def affirmative(sentence: str) -> str:
    """Say what is needed rather than what is missing, where a general rule can."""
    if re.search(rf"[{_CJK}]", sentence):
        for pattern, replacement in _ZH_AFFIRMATIVE:
            sentence = re.sub(pattern, replacement, sentence)
        return re.sub("需要(?:需要)+", "需要", sentence)
    for pattern, replacement in _AFFIRMATIVE:
        found = re.fullmatch(pattern, sentence, re.IGNORECASE)
        if found is not None:
            return _INNER_ARTICLE.sub(lambda article: article[0].lower(), found.expand(replacement))
    return sentence


def fit(text: str, limit: int) -> str:
    """Bring to at most ``limit`` columns: side remarks go first, then whole clauses, then words."""
    while columns(text) > limit and (shorter := _PARENTHESES.sub("", text, count=1)) != text:
        text = shorter
    if columns(text) <= limit:
        return text
    best = ""
    for clause in _CLAUSE.finditer(text):
        if columns(text[: clause.start()]) <= limit:
            best = text[: clause.start()]
    if columns(best) >= limit // 2:
        return best.rstrip()
    shortened = cut(text, limit)
    words = shortened[:-1].rsplit(" ", 1)
    return f"{words[0].rstrip(' ,;:')}…" if len(words) > 1 and len(words[1]) < 20 else shortened
