"""The one table of verbs: what an instruction begins with, and what a complaint says was left undone."""

import re
from collections.abc import Mapping

_DUTIES = re.findall(
    r"\S+",
    """
    annotate await:awaited bind:bound bound:bounded cache call cancel:cancelled catch:caught check clean cleanup clear close commit
    configure cover declare debounce dispose document encode encrypt enforce escape export filter flush follow free:freed
    handle hash implement import include initialize initialise inject invalidate limit lock log:logged memoize mock paginate
    parameterize pass persist pin:pinned propagate provide quote register release remove reset:reset respect rethrow:rethrown
    return reuse sanitize sanitise set:set specify synchronize test translate unsubscribe:unsubscribed update use validate
    verify wait wrap:wrapped
    """,
)
"""Verbs whose omission is a fault, each with its participle where that is not regular."""
_OTHERS = re.findall(
    r"\w+",
    """
    add acquire activate block concatenate duplicate hardcode interpolate leak log mutate nest swallow rely adjust align allow append apply assert assign attach avoid batch become break bring build bump cast change choose collapse collect
    commit compare compile complete compute confirm connect consider consult convert copy correct create cut decode decrease decrement
    default define delete depend derive detect disable discard document downgrade drop emit enable ensure escalate evict
    exclude execute expect expire expose extend extract fall fetch fill find finish fix flatten force format forward generate get
    give grant group guard handle hide hold identify import honor honour ignore increase increment index insert inspect install instantiate integrate invoke issue
    isolate iterate join keep let link list load look lower maintain make map mark match merge migrate minimize mount move
    name narrow normalize normalise notify number observe omit open order override parse patch perform pick place poll
    populate precompute prefer prefix prepare preserve prevent print prune publish pull push put query queue raise rank read
    rebase rebuild recompute recreate record redirect reduce refactor refer refresh regenerate reinstall reject reload rename render rerun
    repeat replace reproduce request require rescan resize resolve restart restore restrict resume retain retry reverse review revert
    rewrite roll rotate round route run sample save scale schedule scope seal secure seed select send separate serialize serve
    shard share shorten show shrink simplify size skip sort spawn specify split squash stage start stash stay stop store stream
    strip stub submit subscribe substitute supply suppress swap switch sync tag take target throttle throw tighten toggle trace
    track transform transpile treat trigger trim truncate trust try tune turn type unify uninstall unwrap upgrade upload upsert
    visit warm watch whitelist widen withdraw write yield
    """,
)
DUTIES = tuple(word.partition(":")[0] for word in _DUTIES)
_BASES = "|".join(sorted({*DUTIES, *_OTHERS}, key=len, reverse=True))


def _participle(verb: str) -> str:
    base, _, irregular = verb.partition(":")
    if irregular:
        return irregular
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if re.search(r"[^aeiou]y$", base) else f"{base}ed"


PARTICIPLES = (*map(_participle, _DUTIES), "cleaned up", "defaulted")

_IRREGULAR: dict[str, str] = dict(
    pair.split(":")
    for pair in re.findall(
        r"\S+",
        "built:build rebuilt:rebuild made:make wrote:write rewrote:rewrite ran:run reran:rerun bound:bind chose:choose kept:keep sent:send took:take"
        " gave:give got:get drew:draw withdrew:withdraw found:find held:hold hid:hide broke:break brought:bring threw:throw overrode:override"
        " rethrew:rethrow led:lead became:become began:begin froze:freeze",
    )
)
_SAME = frozenset({"set", "put", "cut", "cast", "split", "let", "read", "reset"})
# They tell of the search for a fix, not of the fix.
_NO_FIX = frozenset({"try", "find", "inspect", "observe", "detect", "reproduce", "confirm", "verify", "compare", "look", "get", "expect", "wait", "fix", "resolve"})  # fmt: skip


def _forms(base: str, ending: str) -> tuple[str, ...]:
    if base.endswith("e") and not base.endswith("ee"):
        return (f"{base[:-1]}{ending}",)
    if ending == "ed" and re.search(r"[^aeiou]y$", base):
        return (f"{base[:-1]}ied",)
    # A doubled consonant more than there is in the language does no harm.
    return (f"{base}{ending}", f"{base}{base[-1]}{ending}")


def _table(ending: str) -> dict[str, str]:
    bases = (*DUTIES, *_OTHERS)
    return {form: base for base in bases for form in _forms(base, ending)}


_PAST = {**_table("ed"), **_IRREGULAR, **{verb: verb for verb in _SAME}}
_GERUNDS = _table("ing")


def imperative(told: str, *, is_past: bool = False) -> str:
    """Turn ``adding X and setting Y``, or ``added X and set Y``, into ``add X and set Y``; empty when it begins otherwise."""
    table = _PAST if is_past else _GERUNDS
    first, space, rest = told.partition(" ")
    base = _base(first.lower(), table)
    if not space or not base or base in _NO_FIX:
        return ""
    return base + space + _ALSO.sub(lambda found: found[1] + _base(found[2], table, found[2]), rest)


def _base(word: str, table: Mapping[str, str], default: str = "") -> str:
    prefix = re.match(r"(?:re|un|de|auto)-?(?=[a-z])", word)
    if word in table or prefix is None:
        return table.get(word, default)
    bare = table.get(word[prefix.end() :])
    return prefix[0] + bare if bare else default


_ALSO = re.compile(r"(\b(?:and|then|or) (?:then |also )?)([a-z]+)(?=[ ,])")

_DETERMINED = r"(?:the|a|an|your|all|it|its|this|these|those|any|each|every|one|both|only)\b"
# They are nouns as well: "Request method 'POST' not supported" commands nothing.
_NOUNS = (
    "process|test|index|map|build|call|request|default|group|match|type|query|connect|write|read|open|load|commit|release|cache|lock|log|hash"
    "|document|filter|export|import|insert|delete|list|queue|order|record|route|scope|size|sort|start|store|stream|tag|target|trace|transform"
    "|trigger|update|upload|watch|return|register|throw|listen|dial|spawn|exec|stat|print|push|pull|merge|patch|link|limit|mock|name|number|display|render|share|stub|tune|view|escape|complete|issue"
)
_FINITE = r"(?:is|are|was|were|has|have|had|did|does|do|not|fail\w*|cannot|can't|could|already|timed|exceed\w*|returned|returns|expected|errors?|received|must|missing)"
_NO_NOUN = (
    rf"(?!(?:{_NOUNS})\b(?! {_DETERMINED})(?:(?!\b(?:after|before|until|when|while|if|because|so|that|which|what|once|unless|where|instead)\b)[^,;:.])*"
    rf"\b{_FINITE}\b)"
)

# A verb that is a noun there, as in "Index 3 out of bounds" and "Test failed", begins no instruction.
IMPERATIVE = re.compile(
    r"(?:^|(?<=[;:] )|(?<=, then ))(?:please |then |first,? |simply |just |better,? |instead,? )?(?:always |never |do not |don't )?"
    rf"{_NO_NOUN}(?:(?:pre|re|un|de|dis|auto|co)-?)?(?:{_BASES})\b"
    r"(?! (?:\d|error|fail|is\b|are\b|was\b|were\b|has\b|not\b|out\b|of\b|miss|timed\b|time out\b|timeouts?\b(?!\s*[=:]| to\b| of\b| on\b| for\b| in\b)"
    r"|exception|cycle|conflict|exceed|limit\b|could|cannot))"
    r"(?=\s+\S)(?![:.=(])",
    re.IGNORECASE,
)


def is_imperative(sentence: str) -> bool:
    """Tell whether a sentence, or a clause of it, begins with a verb that commands."""
    return IMPERATIVE.search(sentence) is not None


def begins_with_order(sentence: str) -> bool:
    """Tell whether a sentence itself begins with a verb that commands."""
    found = IMPERATIVE.search(sentence)
    return found is not None and found.start() == 0


def is_no_noun(sentence: str) -> bool:
    """Tell whether what an order begins with can't be a noun there (``Write by goroutine 8``)."""
    return _AMBIGUOUS.match(sentence) is None or _OF_A_NAME.match(sentence) is not None


_AMBIGUOUS = re.compile(rf"(?:please )?(?:{_NOUNS})\b(?! {_DETERMINED})", re.IGNORECASE)
_OF_A_NAME = re.compile(
    r"(?:[Pp]lease |[Ff]irst )?(?:[Rr]eturn|[Cc]all|[Ii]mport|[Ee]xport|[Rr]egister|[Tt]hrow|[Ii]ssue) (?=\S*(?:[\w>\]]\(|[a-z]\.[A-Za-z]|[a-z][A-Z]|[A-Z]\w*<|`))\S+(?: (?!of\b)|$)"
)
