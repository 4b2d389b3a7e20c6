"""The one table of verbs: what an instruction begins with, and what a complaint says was left undone."""

import re

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
    add adjust align allow append apply assert assign attach avoid batch become break bring build bump cast change choose collect
    commit compare compile compute confirm connect consider consult convert copy correct create cut decode decrease decrement
    default define delete depend derive detect disable discard document downgrade drop emit enable ensure escalate evict
    exclude execute expect expire expose extend extract fall fetch fill find fix flatten force format forward generate get
    give grant group guard hide hold honor honour ignore increase increment index insert inspect install instantiate invoke
    isolate iterate join keep let link list load look lower maintain make map mark match merge migrate minimize mount move
    name narrow normalize normalise notify number observe omit open order override parse patch perform pick place poll
    populate precompute prefer prefix prepare preserve prevent print prune publish pull push put query queue raise rank read
    rebase rebuild recompute record redirect reduce refactor refer refresh regenerate reinstall reject reload rename render
    repeat replace reproduce request require resize resolve restart restore restrict resume retain retry reverse review revert
    rewrite roll rotate round route run sample save scale schedule scope seal secure seed select send separate serialize serve
    shard share shorten show shrink simplify size skip sort spawn specify split squash stage start stash stop store stream
    strip stub submit subscribe substitute supply suppress swap switch sync tag take target throttle throw tighten toggle trace
    track transform treat trigger trim truncate trust try tune turn type unify uninstall unwrap upgrade upload upsert
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

# A verb that is a noun there, as in "Index 3 out of bounds" and "Test failed", begins no instruction.
IMPERATIVE = re.compile(
    r"(?:^|(?<=[;:] )|(?<=, then ))(?:please |then |first,? |simply |just )?(?:always |never |do not |don't )?"
    rf"(?:(?:pre|re|un|de|dis|auto|co)-?)?(?:{_BASES})\b"
    r"(?! (?:\d|error|fail|is\b|are\b|was\b|were\b|has\b|not\b|out\b|of\b|miss|timed?\b|timeout|exception|cycle|conflict|exceed|limit\b|could|cannot))"
    r"(?=\s+\S)(?![:.=(])",
    re.IGNORECASE,
)


def is_imperative(sentence: str) -> bool:
    """Tell whether a sentence, or a clause of it, begins with a verb that commands."""
    return IMPERATIVE.search(sentence) is not None
