"""Word lists of the matcher that say how much a word tells (SPEC 3.2).

Function words carry grammar and are dropped. Light words carry little ("how to *use*", "*guide* to"): they
count, but a topic is not another one because of them.
"""


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
