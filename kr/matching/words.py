"""Words and when two count as the same: one script, inflection, short forms, synonyms, opposites, typing errors (SPEC 3.2)."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from kr.text.stopwords import word_set


class Token(NamedTuple):
    """A word, a run of Chinese, Japanese or Korean characters, or a break between phrases.

    ``at`` counts words; a run or break has the place of the word after it. ``in_name`` marks the words
    of an identifier, ``joint`` those that a hyphen ties to the word before.
    """

    kind: Literal["word", "cjk", "break"]
    text: str
    at: int
    function: bool
    in_name: bool = False
    joint: bool = False


def simplified(text: str) -> str:
    """Return ``text`` in simplified characters and mainland terms, as far as ``traditional.txt`` goes; idempotent."""
    if text.isascii():
        return text
    characters, terms, found = _tables()
    return found.sub(lambda match: terms[match[0]], text.translate(characters))


@cache
def _tables() -> tuple[dict[int, int], dict[str, str], re.Pattern[str]]:
    text = Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = [line for line in lines if "/" not in line]
    characters = str.maketrans("".join(rows[::2]), "".join(rows[1::2]))
    terms = dict(pair.split("/") for line in lines if "/" in line for pair in line.split())
    return characters, terms, re.compile("|".join(sorted(terms, key=len, reverse=True)))


@cache
def pattern(*words: str) -> re.Pattern[str]:
    """Return a pattern that finds the first of ``words`` that fits, in a text that is simplified too."""
    return re.compile("|".join(map(re.escape, map(simplified, words))))


_PLURAL_LOOK = word_set(
    """
    https wss ftps ldaps imaps smtps amqps mqtts coaps rediss
    alias canvas atlas bias pandas christmas ios macos webos chaos kudos cosmos ethos axios nacos helios has does
    """
)
"""Protocols whose last letter says "secure", and other words that are no plurals."""
_PLURALS = word_set("menus submenus gpus cpus tpus apis uris guis clis emojis wikis taxis")
"""Plurals among the many words that end alike: status, analysis."""
_OWN_WORDS = word_set(
    "setting settings string strings thing things nothing something anything everything during morning spring ring"
    " king bring need speed feed seed embed heading headings building buildings meaning listing rating ping"
)
"""Words that only look inflected, or whose inflected form became a thing of its own."""


def singular(word: str) -> str:
    """Take the plural's ``s`` off."""
    if len(word) < 4 or not word.endswith("s") or word in _PLURAL_LOOK or word.endswith("ss"):
        return word
    if word.endswith(("us", "is")) and word not in _PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def bases(word: str, *, is_verb: bool = False) -> Iterator[str]:
    """Yield ``word`` and what it may be a form of (``hiding``: ``hid``, ``hide``), to be held against a table.

    ``is_verb`` tells that a word such as ``setting`` is no thing of its own.
    """
    yield word
    if (word in _OWN_WORDS and not is_verb) or not word.isascii():
        return
    if (one := singular(word)) != word:
        yield one
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < 2:
            continue
        yield rest
        yield rest + "e"
        if len(rest) > 2 and rest[-1] == rest[-2]:
            yield rest[:-1]
        if ending == "ed" and rest[-1] == "i":
            yield rest[:-1] + "y"


_SHORT = """
abbr abbreviation; acct account; addr address; alg algorithm; algo algorithm; alloc allocation; anno annotation
app application; arch architecture; arg argument; arr array; assoc association; async asynchronous; attr attribute
auto automatic; avg average; a11y accessibility; admin administrator; bg background; bldr builder; bool boolean; btn button
buf buffer; calc calculate; cb callback; cert certificate; cfg configuration; char character; chk check; chkpt checkpoint
clr clear; cmd command; cmp compare; col column; cols column; coll collection; comm communication; concat concatenate
cond condition; conf configuration; config configuration; configure configuration; conn connection; const constant
conv conversion; coord coordinate; cred credential; creds credential; ctor constructor; ctrl control; ctx context
cur current; curr current; cwd directory; db database; dbs database; decl declaration; def definition; del delete
dep dependency; deps dependency; dereg deregister; deser deserialize; dest destination; dev development; dict dictionary
diff difference; dim dimension; dir directory; dist distribution; distro distribution; doc documentation
docs documentation; dom document; drv driver; dst destination; dup duplicate; dupe duplicate; elem element; embed embedding
enc encode; env environment; err error; eval evaluate; evt event; exc exception; exe executable; exec execute; expr expression
ext extension; favs favorite; fg foreground; fk foreignkey; fmt format; fn function; freq frequency; func function
fwd forward; gen generate; hw hardware; i18n internationalization; idx index; img image; impl implement; inc increment
incl include; info information; init initialize; inst instance; int integer; iter iterate; js javascript; k8s kubernetes
kbd keyboard; kw keyword; l10n localization; lang language; lat latitude; len length; lib library; lng longitude
mem memory; mgmt management; mgr manager; misc miscellaneous; msg message; msgs message; mult multiple
multi multiple; mut mutable; nav navigation; net network; nr number; ns namespace; num number; obj object; occ occurrence
ops operation; opt option; opts option; org organization; orig original; param parameter; passwd password
perf performance; perm permission; perms permission; pg postgresql; pic picture; pkg package; pk primarykey; plt plot
postgres postgresql; pref preference; prefs preference; prev previous; prio priority; proc process; prod production
props property; pwd password; py python; qty quantity; rand random; rb ruby; rec record
recv receive; refs reference; reg register; regex regexp; rel relative; repl replace; repo repository
repos repository; resp response; ret return; rev revision; rm remove; rng random; sched schedule; sec second
sel select; seq sequence; sess session; sig signature; specs specification; sql sql; src source
srv server; stat statistic; stats statistic; std standard; stmt statement; str string; struct structure;
subdir subdirectory; svc service; sw software; sym symbol; sync synchronous; sys system; tbl table;
tmp temporary; tmpl template; tpl template; ts typescript; tx transaction; txn transaction; txt text;
ui interface; uid identifier; id identifier; ids identifier; unsub unsubscribe; upd update; usr user; util utility
utils utility; val value; vals value; var variable; vars variable; vec vector; ver version; vid video; vol volume
wrt regarding; ws websocket; max maximum; min minimum; dims dimension; hr hour; hrs hour; mins minute; secs second
"""

_ACRONYMS = """
2fa twofactorauthentication; mfa multifactorauthentication; sso singlesignon; ci continuousintegration
cd continuousdelivery; ssr serversiderendering; csr clientsiderendering; ssg staticsitegeneration; sse serversentevent
spa singlepageapplication; pwa progressivewebapp; hmr hotmodulereplacement; rbac rolebasedaccesscontrol; ttl timetolive
cli commandlineinterface; gui graphicaluserinterface; jwt jsonwebtoken; cdn contentdeliverynetwork
gc garbagecollection; io inputoutput; iac infrastructureascode; rls rowlevelsecurity; crd customresourcedefinition
csrf crosssiterequestforgery; xss crosssitescripting; csp contentsecuritypolicy; vm virtualmachine; p2p peertopeer
m2m manytomany; fts fulltextsearch; ml machinelearning; nlp naturallanguageprocessing; cve commonvulnerability
tdd testdrivendevelopment; bdd behaviordrivendevelopment; ddd domaindrivendesign; cqrs commandqueryresponsibilitysegregation
otp onetimepassword; mtls mutualtls; pr pullrequest; mr mergerequest; wal writeaheadlog; lru leastrecentlyused
acl accesscontrollist; iam identityandaccessmanagement; kv keyvalue; rpc remoteprocedurecall; ast abstractsyntaxtree
cdc changedatacapture; etl extracttransformload; poc proofofconcept; os operatingsystem; wysiwyg whatyouseeiswhatyouget
codegen codegeneration; dnd draganddrop; seo searchengineoptimization; gpu graphicsprocessingunit
"""

_IRREGULAR = """
indices index; indexes index; children child; queries query; matrices matrix; vertices vertex; schemata schema;
criteria criterion; built build; sent send; wrote write; written write; chosen choose; hidden hide; hid hide; ran run
threw throw; thrown throw; broken break; broke break; lost lose; kept keep; bound bind; drawn draw; drew draw; fed feed
found find; given give; gave give; gone go; went go; grown grow; grew grow; held hold; known know; knew know; laid lay
led lead; made make; meant mean; met meet; paid pay; said say; saw see; seen see; sold sell; spent spend
stolen steal; stuck stick; taken take; took take; taught teach; told tell; thought think; understood understand
woken wake; woke wake; won win; begun begin; began begin; caught catch; frozen freeze; froze freeze; forgotten forget
overridden override; overrode override; overwritten overwrite; rewritten rewrite; rebuilt rebuild; reran rerun
removal remove; retrieval retrieve; approval approve; renewal renew; disposal dispose; traversal traverse; arrival arrive
referral refer; dismissal dismiss; proposal propose; reversal reverse; withdrawal withdraw; refusal refuse
submission submit; transmission transmit; omission omit; admission admit; conversion convert
inversion invert; expansion expand; suspension suspend; decision decide; division divide
collision collide; exclusion exclude; inclusion include; repetition repeat; analysis analyze; analyses analyze
resolution resolve; evolution evolve; reduction reduce; deduction deduce; introduction introduce; destruction destroy
reception receive; perception perceive; absorption absorb; redemption redeem; assumption assume; consumption consume
resumption resume; retention retain; contention contend; intention intend; recursion recurse; succession succeed
concession concede; acquisition acquire; composition compose; decomposition decompose; definition define; addition add
recognition recognize; competition compete; multiplication multiply; discovery discover; recovery recover
delivery deliver; loss lose; explosion explode; invasion invade; persuasion persuade; erosion erode
synthesis synthesize; choice choose; growth grow; failure fail; exposure expose; deletion delete;
colour color; behaviour behavior; licence license; centre center; analyse analyze; grey gray; catalogue catalog
dialogue dialog; cancelled cancel; cancelling cancel; cancellation cancel; labelled label; labelling label
modelling model; modelled model; programme program; fulfil fulfill; artefact artifact; judgement judgment; cheque check
defence defense; favourite favorite; neighbour neighbor; organisation organization; serialise serialize
registration register; registrations register; truncation truncate; explanation explain; proof prove; maintenance maintain; acceptance accept; performant performance
"""

_SYNONYMS = """
deactivate disable; inactivate disable; disallow disable; activate enable; folder directory; signin login; logon login
signon login; signout logout; logoff logout; signup register; paging pagination; paged pagination; paginate pagination
erase delete; remove delete; huge large; big large; retrieve fetch; photo picture; quit exit; terminate stop; halt stop
maximal maximum; minimal minimum; biggest maximum; largest maximum; smallest minimum; hotkey shortcut
simultaneous concurrent; initially initial; repeated repeat; customize custom; customise custom; customization custom
customizable custom; randomize random; parallelize parallel; parallelization parallel
"""


def _read(*tables: str) -> dict[str, str]:
    pairs = (pair.split() for table in tables for line in table.splitlines() for pair in line.split(";"))
    return {pair[0]: pair[1] for pair in pairs if pair and pair[0] != pair[1]}


SHORT_FORMS = _read(_SHORT, _ACRONYMS, _IRREGULAR)
"""What stands for what, as words in full; a phrase is written as one word."""

SYNONYMS = _read(_SYNONYMS)
"""Words that are interchangeable in a topic, to be looked up by the base form."""

ALTERNATIVES = {
    "auth": ("authentication", "authorization"),
    "dev": ("development", "developer"),
    "ops": ("operations", "operators"),
    "req": ("request", "requirement"),
    "res": ("response", "resource", "result"),
    "desc": ("description", "descending"),
    "pos": ("position", "point"),
    "spec": ("specification", "special"),
    "loc": ("location", "locale"),
    "pub": ("public", "publish"),
    "sub": ("subscribe", "subscription"),
    "temp": ("temporary", "temperature"),
    "prop": ("property", "proportional"),
    "mod": ("module", "modification"),
    "ref": ("reference", "refresh"),
}
"""Short forms that stand for one of several words, as the other topic has it."""


Poles = dict[str, tuple[tuple[int, int], ...]]


def _poles(text: str, start: int = 0) -> Poles:
    found: dict[str, list[tuple[int, int]]] = {}
    for axis, line in enumerate(dict.fromkeys(text.splitlines()), start):
        one, other = line.split("|")
        for word in one.split():
            found.setdefault(word, []).append((axis, 1))
        for word in other.split():
            found.setdefault(word, []).append((axis, -1))
    return {word: tuple(ends) for word, ends in found.items()}


@cache
def _sections() -> tuple[str, str]:
    text = Path(__file__).with_name("opposites.txt").read_text(encoding="utf-8")
    english, _, others = text.partition("[english]\n")[2].partition("[chinese, japanese, korean]\n")
    return english, others


@cache
def english_poles() -> Poles:
    """Return for each word the axes of meaning it lies on, with its end of each: 1 or -1. Axes are numbers."""
    return _poles(_sections()[0])


def poles_of(word: str) -> tuple[tuple[int, int], ...]:
    """Return the axes and ends of an English word in any of its forms."""
    poles = english_poles()
    for base in bases(word):
        if base in poles:
            return poles[base]
    return poles.get(SHORT_FORMS.get(word, ""), ())


def poles_in(run: str) -> list[tuple[int, int, str]]:
    """Return the axes and ends that a run of simplified Chinese, of Japanese or Korean names, each with its word."""
    poles = cjk_poles()
    return [(axis, pole, word) for word in _cjk_pattern().findall(run) for axis, pole in poles[word]]


@cache
def cjk_poles() -> Poles:
    return _poles(simplified(_sections()[1]), start=1000)


@cache
def _cjk_pattern() -> re.Pattern[str]:
    return pattern(*sorted(cjk_poles(), key=len, reverse=True))


_CONFUSABLE = """
model modal; model module; state stage; state static; local locale; content context; content contest; internal interval
render reader; leader loader; trace track trade; flush flash; quota quote; slice slide; style stale; scale scala
share shard shape sharp; store score; clone close; clear clean; click clock; chart chars; month mount mouth; parse pause
point print paint; login logic logon; except expect; accept access; scope scape; script strict; thread threat
signal single; format formal; render sender; params parens; reset reuse; resume resize; device devise; policy police
string strong; mutation mutations; stack stock; watch match; shell shelf; space spare; steam stream; token taken
private privacy; restore restart; revert revere; insert invert; attach attack; contract contrast; worker wonder
prefix postfix; upsert insert; filter filler; principal principle; compliment complement; desert dessert; cache catch; http https; redis rediss; mqtt mqtts; amqp amqps; ldap ldaps
import impact; expose expire; static statis; marker market; border broder; tenant tenet; primary primacy; table tuple
""".replace("\n", ";").split(";")

_DISTINCT = frozenset(
    frozenset((one, other))
    for group in _CONFUSABLE
    for one in group.split()
    for other in group.split()
    if one != other
)
"""Words of the trade that are one typing error apart and still not the same."""

_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return what the inflected forms of an English word share; other words come back as they are."""
    word = SHORT_FORMS.get(word, word)
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    word = singular(word)
    word = SHORT_FORMS.get(word, word)
    word = next((SYNONYMS[base] for base in bases(word) if base in SYNONYMS), word)
    for ending, least, replacement in _BY_LAST_LETTER.get(word[-1], ()):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if len(rest) >= least and not _VOWELS.isdisjoint(rest):
                # "provisioning" is a form of a noun that has a verb's root itself.
                return stem(rest) if rest.endswith("ion") else _tidy(rest + replacement)
    return _tidy(word)


_ENDINGS = (
    ("ification", 3, "ify"), ("ified", 3, "ify"), ("ifier", 4, "ify"), ("atically", 4, ""), ("atic", 4, ""),
    ("ically", 3, "ic"), ("ical", 4, "ic"), ("ability", 4, ""), ("ibility", 4, ""), ("ity", 5, ""), ("ness", 4, ""),
    ("ism", 5, ""), ("ence", 6, ""), ("ance", 6, ""),
    ("ionship", 4, ""), ("ization", 4, "iz"), ("isation", 4, "iz"), ("ational", 4, ""), ("ation", 4, ""),
    ("ional", 4, ""), ("ating", 4, ""), ("ated", 4, ""), ("ator", 4, ""), ("ate", 4, ""), ("ally", 4, "al"),
    ("scription", 2, "scrib"), ("scribing", 2, "scrib"), ("ion", 4, ""), ("ement", 5, ""), ("ment", 6, ""), ("able", 4, ""),
    ("ible", 4, ""), ("ency", 4, ""), ("ancy", 4, ""), ("ingly", 4, ""), ("edly", 4, ""), ("ing", 3, ""),
    ("eed", 99, ""), ("ied", 3, "y"), ("ed", 3, ""), ("ily", 3, "y"), ("ly", 4, ""), ("er", 5, ""), ("or", 6, ""), ("ndent", 4, "nd"), ("rrent", 4, "r"), ("stent", 4, "st"),
    ("potent", 3, "pot"), ("erent", 4, "er"),
)  # fmt: skip

_BY_LAST_LETTER = {
    letter: tuple(row for row in _ENDINGS if row[0][-1] == letter)
    for letter in {row[0][-1] for row in _ENDINGS}
}


def _tidy(root: str) -> str:
    if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "sl":
        root = root[:-1]
    if len(root) > 3 and root.endswith("e"):
        root = root[:-1]
    return root


def is_short_for(one: str, other: str) -> bool:
    """Tell whether one word is an ambiguous short form of the other: ``auth`` of both ``authorization`` and ..."""
    return any(
        stem(full) == stem(long)
        for short, long in ((one, other), (other, one))
        for full in ALTERNATIVES.get(singular(short), ())
    )


def is_near(one: str, other: str) -> bool:
    """Tell whether two words are the same but for a typing error: ``validaton``, ``rewirte``.

    One edit (or two neighbours swapped) in words of five letters or more, two in words of nine or more; the first
    letter and every digit must agree, and opposites and well-known lookalikes stay apart.
    """
    shorter = min(len(one), len(other))
    if shorter < 5 or one[0] != other[0] or abs(len(one) - len(other)) > 2 or shorter > 40:
        return False
    return is_slip(one, other, allowed=2 if shorter >= 9 else 1)


def is_slip(one: str, other: str, *, allowed: int) -> bool:
    """Tell whether at most ``allowed`` typing errors part two words that are not known to be different."""
    # Each error exchanges at most two letters: what that excludes need not load the library.
    if abs(len(one) - len(other)) > allowed:
        return False
    if sum(abs(one.count(letter) - other.count(letter)) for letter in {*one, *other}) > 2 * allowed:
        return False
    if not (one.isalpha() and other.isalpha()) or is_distinct(one, other):
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=allowed) <= allowed


def is_distinct(one: str, other: str) -> bool:
    """Tell whether two similar words are known to mean different things."""
    if frozenset((singular(one), singular(other))) in _DISTINCT:
        return True
    poles = dict(poles_of(one))
    return any(poles.get(axis, pole) != pole for axis, pole in poles_of(other))
