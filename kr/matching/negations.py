"""Marks of negation: general vocabulary, English and Chinese first (SPEC 3.2)."""

from kr.text.stopwords import phrases, word_set

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
