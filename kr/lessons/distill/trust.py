"""What in a text is a command, an address or an order to its reader, and so not for another agent's prompt (SPEC 4.1).

A lesson is data. What a tool printed can be written by anybody who can make it print: a package's install script, a page,
a test's name. Whatever of it says what to run or whom to obey is left out; what an agent said stays, in quarantine.
"""

import re
from functools import lru_cache
from itertools import pairwise

from kr.naming import digest

_PROGRAMS = (
    r"curl|wget|iwr|iex|invoke-\w+|bash|zsh|dash|fish|pwsh|powershell|cmd|eval|nc|ncat|netcat|ssh|scp|rsync|rm|rmdir|chmod|chown|dd|mkfs|kill|killall|pkill|crontab|base64|"
    r"python[0-9.]*|pip[0-9.]*|pipx|uvx?|poetry|pdm|conda|mamba|npm|npx|pnpm|yarn|bunx?|deno|node|cargo|rustup|gem|bundle|composer|apt|apt-get|dpkg|yum|dnf|brew|apk|snap|choco|"
    r"docker|docker-compose|podman|kubectl|helm|terraform|git|gh|mvn|gradle|\./\w[\w./-]*|systemctl|alembic|flask|rails|dotnet|aws|gcloud|az|psql|mysql|redis-cli|sqlite3|perl|ruby|php|"
    r"sudo|doas|su|env|nohup|xargs|tee|sed|awk|cat|cp|mv|ln|export|openssl|gpg|mise|asdf|nvm|make|cmake|ninja|tox|nox|pytest|vitest|jest|playwright|prisma|rake|mix|sbt"
)
# A program's name with what only a command line has behind it: an option, a path, one of its verbs.
_VERBS = (
    r"install|uninstall|remove|add|update|upgrade|exec|run|start|restart|stop|build|push|pull|clone|fetch|checkout|switch|commit|merge|rebase|reset|stash|init|apply|delete|create|"
    r"config|login|publish|test|ci|get|set|enable|disable|migrate|makemigrations|stamp|revision|heads|generate|dlx|link|audit|rollback|import|export|unlock|force-unlock|worktree|restore|revert|clean|prune|tap|download|compose|sync|lock|x"
)
_COMMAND = (
    rf"(?:^|[\s`'\"“(\[:;>$#|&])(?:{_PROGRAMS})\s+(?:-{{1,2}}[A-Za-z]|[~.]?/[\w.]|https?:|(?:{_VERBS})\b(?!\s+(?:is|was|failed|errors?|returned|exited|did|could|can)\b))"
    r"|\b(?:npx|pnpx|bunx|uvx|iwr|iex)\s+[\w@.(]|\bnpm\s+i\s|`[^`\s]+ (?:[^`]* )?--?[a-z][^`]*`|\b(?:LD_PRELOAD|NODE_OPTIONS|PYTHONSTARTUP|GIT_SSH_COMMAND|core\.(?:hooksPath|sshCommand|pager))\b\s*="
    r"|\bgo\s+(?:run|install|get|mod|build|generate|env|work)\b|\b(?:curl|wget)\s+[\w-]+(?:\.[\w-]+)+"
    r"|\|\s*(?:sudo\s+)?(?:ba|z|da|fi)?sh\b|\|\s*(?:python|perl|ruby|node|iex)\b|&&\s*\w|\$\([^)]|`\s*(?:sudo|npx|uvx|sh|bash|source)\s|(?:^|\s)(?:source|\.)\s+\S+\.(?:sh|bash|env)\b"
    r"|(?-i:(?:^|\s)[A-Z_]{3,}=\S+\s+\./\w)|\bsubprocess\.|\bos\.system\(|\bexec\(|\beval\(|\b(?:child_process|Runtime\.getRuntime)\b|>\s*/(?:etc|dev|tmp)/"
)
_URL = (
    r"\b[a-z][a-z0-9+.-]{1,20}://(?!(?:localhost|127\.|\[::1\]|0\.0\.0\.0)(?![\w.@-]))[^\s\"'`<>)\]]+"
    # Without a scheme it may be a module's path (example.com/shop): then only what is fetched is an address.
    r"|\bwww\.[^\s\"'`<>]+|\b(?:[a-z0-9-]+\.){1,4}[a-z]{2,10}/[^\s\"'`<>)\]]*\.(?:sh|bash|py|ps1|exe|bat|js|zip|t?gz|whl|deb|rpm|pkg|msi)\b"
    r"|\b(?:bit\.ly|t\.co|tinyurl\.com|goo\.gl|is\.gd|git\.io|pastebin\.com|transfer\.sh|gist\.github\w*\.com|raw\.githubusercontent\.com|[\w-]+\.ngrok[\w.-]*)/\S+"
    # What a browser would follow: no scheme, no dots, or only a pointer to it.
    r"|(?<![:\w/])//[a-z0-9-]+\.[a-z]{2,}[^\s\"'`<>)\]]*|\b[\w-]+(?:\[\.\]|\(dot\))\w[^\s\"'`<>)\]]*|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]+)?/[a-z]\S*"
    r"|(?<=\bsee )(?:[a-z0-9-]+\.){1,4}[a-z]{2,10}/\S+|(?<=\bvisit )(?:[a-z0-9-]+\.){1,4}[a-z]{2,10}\b\S*"
    r"|\bhxxps?\b\S*|\bdata:\w+/|\bjavascript:"
)
_INDEX = (
    r"--(?:extra-)?index(?:-url)?\b|--registry\b|--find-links\b|--trusted-host\b|\b(?:extra-)?index-url\s*=|\bregistry\s*=|\b(?:GOPROXY|PIP_\w*INDEX\w*|UV_\w*INDEX\w*|NPM_CONFIG_REGISTRY)\b"
    r"|\[\[?(?:tool\.)?(?:uv|poetry|pdm)[.\w]*(?:index|source)|--source\b"
)
_READER = r"(?:ai|coding|language|llm|claude|gpt|chatgpt|copilot|cursor|gemini|codex)?[\s-]*(?:agents?|assistants?|models?|reader|llms?|bots?|claude|copilot)"
_ORDER = (
    r"\b(?:ignor|disregard|forget|overrid|bypass|supersed|circumvent)\w*\b.{0,60}\b(?:instruct\w*|prompts?|rules?|guidelines?|polic\w+|above|previous\w*|prior|earlier|safety|system|everything|told|guardrails?)\b"
    r"|\b(?:you are (?:now|a|an|the)|act as|pretend|roleplay|from now on|new instructions?|system prompt|developer mode|jailbreak|DAN mode|as an? (?:ai|assistant|agent|language model))\b"
    r"|(?:^|[\s\"'>\]])(?:assistant|system|human|user|developer)\s*[:>]\s|<\|?/?\s*(?:system|im_start|im_end|assistant|user|instructions?)|\[/?INST\]|#{2,}\s*(?:instruction|system|task)"
    rf"|\b(?:dear|hey|attention|note to|message (?:to|for)|instructions? (?:to|for)|for)\s+(?:all\s+|any\s+|the\s+)?{_READER}\b"
    rf"|\b{_READER}\b[^.]{{0,60}}\b(?:must|should|shall|needs? to|ha(?:s|ve) to|please|will|are (?:required|asked|instructed|to)|is (?:required|asked|instructed|to))\b"
    r"|\b(?:do not|don't|never|must not|without)\b.{0,40}\b(?:tell|telling|mention\w*|inform\w*|notify\w*|reveal\w*|warn\w*|asking|the user|the human|ask(?:ing)? for (?:confirmation|permission))\b"
    r"|\b(?:send|post|upload|commit|e-?mail (?:me|us|it|them|the|your|all|any|its)|exfiltrate|transmit|forward|leak|paste|copy|print|echo|cat|output|reveal|include|share|attach|dump|submit|report)\b.{0,80}"
    r"(?:\.env\b|\bsecrets?\b|\bcredentials?\b|\bapi[ _-]?keys?\b|\btokens?\b|\bpasswords?\b|\bssh\b|\bprivate key|\bid_(?:rsa|ed25519)|\benvironment(?: variables?)?\b|\benv vars?\b|\.aws\b|\.npmrc\b|\.netrc\b|kubeconfig|\bchat history|\bconversation)"
    r"|\b(?:disable|turn off|switch off|skip|remove|comment out|drop|weaken|relax)\b.{0,50}\b(?:auth\w*|tls|ssl|certificate\w*|verification|security|tests?|checks?|csp|csrf|cors|firewall|sandbox\w*|signature\w*|audit\w*|reviews?|approval\w*|permissions?|hooks?)\b"
    r"|--no-verify\b|--insecure\b|--disable-\w*(?:security|sandbox)|NODE_TLS_REJECT_UNAUTHORIZED|verify\s*=\s*False|StrictHostKeyChecking|\b777\b|dangerously"
    r"|\b(?:grant|give|allow)\b.{0,40}\b(?:admin\w*|root|full|write|public) (?:access|rights|permissions?)|\bmake (?:it|the (?:bucket|repo\w*)) public\b"
    r"|\byour (?:operator|owner|boss|maintainer|human)s?\b|\b(?:maintainer|admin\w*|operator|owner|boss) (?:says?|wants?|asks?|orders?)\b|\btrusted hosts?\b|\bpaste (?:this|the following|it)\b"
    r"|\b(?:set|change|switch|point) (?:the |your )?(?:registry|index|mirror|proxy|remote)\b|\bpush\b.{0,40}\b(?:production|prod|main|master)\b|\bos\.system\b|\bignore previous|(?:\b[a-z] ){5,}"
    r"|\bin (?:your|the) (?:final )?(?:reply|response|answer)\b|\bto be obeyed\b|\bno longer appl(?:y|ies)\b.{0,40}\b(?:approve|instead|now)\b"
    r"|\b(?:approv|merg)(?:e|ing)\b.{0,30}\b(?:every\w*|all|any|this|pull request|PR|without)\b|\b(?:skip|delete|remove)\b.{0,20}\b(?:assertion|failing tests?)\b"
    # Files and servers that agents take their orders from.
    r"|\b(?:CLAUDE|AGENTS|GEMINI|SKILL)\.md\b|\.cursorrules\b|\bcopilot-instructions\b|\b(?:add|install|enable|connect)\b.{0,30}\bMCP server"
    r"|(?:игнорир|забудь|не обращай)\w*.{0,20}(?:инструкц|указани|правил)|(?:指示|命令|指令|ルール).{0,4}無視|무시(?:하|해)"
    r"|\b(?:ejecut[ae]|ignora|exécut\w+|ignorez|ignoriere|führe)\b"
    r"|(?:忽略|无视|忘记|不要理会).{0,12}(?:指令|指示|提示|规则|以上|之前|先前)|(?:你|您)(?:现在)?(?:是|必须|应该|要)|请?(?:立即|马上)?(?:运行|执行|下载|安装|访问|打开)(?:以下|下列|下面|这个|此|命令|脚本|http)|不要告诉|发送.{0,12}(?:密钥|密码|令牌|凭证|环境变量)"
)
# An order to do something outside the code begins a sentence; `add`, `use` and `set` speak of the code itself.
_TOOLS_ORDER = (
    r"^\W*(?:(?:hint|help|note|tip|fix|solution|advice|resolution|todo|important|warning|attention|critical)\b\s*[:!-]*\s*)*"
    r"(?:(?:please|now|then|first|instead|just|simply|so|and|or|to (?:fix|resolve|solve|continue|proceed)[^,]*,?|you(?:'ll| will)? (?:can|could|should|must|may|might|need to|have to|want to)|try(?: to| and)?|consider|be sure to|make sure (?:to|you))[,:]?\s+)*"
    r"(?:re-?)?(?:run|execut|invok|launch|install|download|fetch|visit|open|go to|browse|navigate|send|post|upload|submit|push|publish|deploy|delete|drop|wipe|erase|truncate|destroy|purge|eval|pipe|paste|source(?!\s+(?:files?|code|maps?)\s)|curl|wget|call home|contact|e-?mail|login|log in|sign in|grant|approv|merge|kill)(?:e|ing|s)?\b(?!\s+(?:is|was|of|failed|error)|[.(:/=-]\S|\(\))"
    r"|\b(?:you (?:can|should|must|need to|have to|'ll need to|may)|you'll need to|please|try)\s+(?:also\s+)?(?:re-?)?(?:run|execut|install|download|visit)\w*\b|\bneed(?:s)? to install\b|\byou (?:meant|want(?:ed)?) to (?:run|execut|install|use|fetch)"
)
# What a tool tells its reader to do with the code, which may be good advice, or an attacker's: it waits for a person.
# Not in capitals: those are SQL's.
_ADVISING = (
    r"[Uu]se|[Aa]dd|[Aa]ppend|[Ii]nstall|[Rr]eplace|[Ss]witch|[Mm]igrate|[Uu]pgrade|[Dd]owngrade|[Uu]pdate|[Ss]et|[Ii]nclude|[Ii]mport|[Cc]all|[Cc]ommit(?! [0-9a-f]{7})|"
    r"[Mm]erge|[Aa]pprove|[Dd]elete|[Rr]emove|[Dd]rop|[Mm]ark|[Ss]kip|[Ww]rite|[Ff]ollow|[Rr]ead|[Dd]ecode|[Vv]isit|[Ss]ee|[Tt]ry|[Ee]nable|[Dd]isable|"
    r"[Pp]ut|[Cc]opy|[Rr]ename|[Cc]hange|[Cc]onfigure|[Cc]reate|[Ee]dit|[Ll]oad|[Mm]ount|[Pp]oint|[Tt]rust|[Aa]ccept|[Aa]llow|[Gg]rant|[Pp]rovide|"
    r"[Ss]pecify|[Pp]ass|[Dd]o|[Mm]ake|[Ee]nsure|[Cc]onsult|[Rr]efer|[Cc]ontact"
)
_ADVICE = (
    r"(?:^|[:;,.!?>(–—]\s+|(?<!find )\b(?:and|or|then|please|simply|just|instead|now|to (?:fix|resolve|solve|continue|proceed) (?:this|it)?,?)\s+|\b(?:you|agents?|developers?) (?:can|could|should|must|may|might|have to|need to|want to)\s+(?:also\s+)?)"
    rf"(?:(?:try|consider|remember) (?:to\s+)?)?(?-i:{_ADVISING})\s+"
    r"(?!(?:of|to|on|is|was|in|by|at|from|with|for|error|errors|failed|fails|failure|cycle|violates|timeout|timed|out|not|and|or|as|access|operation|command|statement|request|response|into|permission)\b|[-=:(]|[`'\"][^`'\"]{1,80}[`'\"] (?:could|can|cannot|can't|did|does|failed|was|is) (?:not|n't|resolve|be\b))[\w`'\"@<{*./-]"
)
# A package put forward in place of another one.
_PACKAGE = (
    r"\b(?:use|try|install|take|prefer|require|add|switch(?:ed)? to|moved? to|renamed to|replaced? (?:it )?(?:by|with)|superseded by|in favou?r of|successor|recommended|alternative|did you mean)\b[^.]{0,60}"
    r"\b(?:instead|packages?|crates?|gems?|librar(?:y|ies)|plugins?|distributions?|forks?|images?)\b"
    r"|\b(?:packages?|crates?|gems?|librar(?:y|ies)|plugins?|distributions?|modules?|dependency)\b.{0,80}\b(?:instead|replace it|replaced by|switch to|moved to|renamed to|superseded by|recommended|did you mean)\b"
    r"|\b(?:unmaintained|deprecated|abandoned|broken)\b.{0,40}\b(?:use|try|switch to|take|install|move to)\b|\bhas moved to\b|\bto be installed\b"
    # A complaint that names a package is followed as readily as advice to take it.
    r"|\b(?:missing|unmet) (?:(?:peer|optional|required|runtime) )?(?:dependency|dependencies|packages?|plugins?|crates?|gems?|extensions?)\b\W+[\w@]"
    r"|\b(?:requires?|needs?|depends? on|wants?)\b (?:a peer of |an? |the )*(?:(?:packages?|plugins?|crates?|gems?|librar(?:y|ies)|extensions?) \S|\S*@\S|\S+ (?:which|but|that|and)\b.{0,30}\binstalled\b|[a-z]+(?:-[a-z]+)*-\w+\W*$)"
)
_INSTALLED = r"\b(?:modules?|packages?|crates?|gems?|plugins?|distributions?|images?|dependenc(?:y|ies))\b"
_GUESS = r"\W*(?:did you mean|perhaps|maybe|the most similar|similar|closest|available)\b"
# Letters of two alphabets in one word are a disguise.
_DISGUISED = r"[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]|[a-z][αενορτυχ]|[αενορτυχ][a-z]"
_PIPED = r"\|\s*(?:sudo\s+)?(?:(?:ba|z|da|fi)?sh|python[0-9.]*|perl|ruby|node|iex)\b|\$\([^)]|\b(?:bash|sh)\s+-c\b|\bbase64\s+-"
# What a tool may say to do after all: it names a flag or a setting of its own, a package in a scope that belongs to a known
# project, a text's encoding, or a whole command that fetches nothing but what the project declares. None of it can name a stranger's.
_OWN_COMMAND = (
    r"(?:npm (?:install|ci|rebuild)|(?:pnpm|yarn|bundle|composer|pod|poetry) install|(?:poetry|pdm|uv|bundle|composer|cargo) (?:lock|update)|uv sync|go mod (?:tidy|download|vendor)|cargo generate-lockfile"
    r"|(?:terraform|tofu) init(?: -upgrade| -reconfigure)?|helm dep(?:endency)? (?:build|update)|mix deps\.get|(?:flutter|dart) pub get|dotnet restore|dbt deps"
    r"|git (?:rebase|merge|cherry-pick|revert|am) --(?:continue|abort)|alembic upgrade head|(?:bin/)?rails db:migrate|(?:python[0-9.]* )?manage\.py (?:makemigrations(?: --merge)?|migrate))"
)
_OWN_SCOPE = r"@(?:angular|apollo|babel|commitlint|emotion|eslint|hookform|jest|mui|nestjs|nuxt|parcel|playwright|prisma|reduxjs|rollup|storybook|stylistic|sveltejs|swc|tailwindcss|tanstack|testing-library|types|typescript-eslint|vitejs|vitest|vue)/[a-z][a-z0-9.-]{1,40}"
_OWN_FLAG = r"(?<![\w-])-{1,2}[A-Za-z][\w-]*(?:[= ](?:true|false|on|off|auto|none|all|[0-9]+)\b)?(?![\w=/-])"
_OWN_SETTING = (
    r"[A-Za-z][\w.]*[ ]?=[ ]?(?:True|False|None|true|false|null|[0-9]+|[\"'][a-z][a-z0-9_-]{0,20}[\"'])(?![\w.])"
    r"|[a-z]\w*_\w+[`'\"]?(?= to (?:allow|enable|permit|accept|change|override) (?:it|this|that|them)\b)|(?:(?<=[`'\"])[a-z]\w*|[a-z]\w*[_.-]\w+)(?:[_.-]\w+)*[`'\"]?(?= (?:option|flag|setting|parameter|argument|keyword|field|attribute)\b)|[\w.]+\(\)(?!\s+instead\b)|(?-i:\$[a-z]\w+)(?=[`'\"])"
    r"|utf-?8(?:-sig)?\b|utf-16\b|latin-?1\b|cp1252\b"
)
_CURE = (
    r"(?<![\w-])(?-i:(?![A-Z]{2}))(?:(?:please|you (?:can|should|must|may|need to|might want to)|try(?: to)?|consider)\s+)?(?:re-?)?"
    r"(?:us(?:e|ing)|add(?:ing)?|set(?:ting)?|pass(?:ing)?|consider|compil(?:e|ing)|build|link|specify(?:ing)?|enabl(?:e|ing)|provide|needs?|give|supply|call(?:ing)?|runn?(?:ing)?|update|upgrade|try|decode|encode|remove|convert)"
    rf"\s+(?:(?:the|an?|this|that|it|them|your|its|with|using|by|to|in|as|lock|file|lockfile|flag|option|keyword|argument|parameter|setting|again|first|also|new|dependencies|project)\s+){{0,5}}?[`'\"]?(?:(?P<command>{_OWN_COMMAND})(?=[`'\".,;)]|$|\s(?:to|before|again|first)\b)|{_OWN_SCOPE}|{_OWN_FLAG}|{_OWN_SETTING})[`'\"]?(?:\s(?:option|flag|setting|parameter|argument|keyword|plugin)\b)?"
)
# Words that nothing of this may have in it: what makes a project less safe is no cure, and a package is not to be taken.
_NO_CURE = (
    r"(?<![a-z])(?:allow|trust\w*|verif\w*|check\w*|skip|ignore|force|disable|insecure|unsafe|dangerous\w*|privileged|root|sudo|auth|password|token|secrets?|credentials?|permissions?|hooks?|shell|legacy|break|yes|quiet|silent|audit|sign\w*|ssl|tls|certs?|certificates?|secur\w+|sandbox|approve|login|push|publish|deploy|hard|delete|purge|destroy|drop|prune|wipe|overwrite|help|verbose|debug|print|inspect|experimental|minimize|details|log|(?:stack|back)?trace|version"
    r"|packages?|modules?|crates?|gems?|librar\w+|distributions?|images?|exec|eval|system|tests?)(?![a-z])|(?<!\w)-(?:[fkyqrvhX]+|e)\b|\bfull\b|\.fail\w*=false"
)
_SENTENCE = r"(?<=[.!?;。！？；])(?<!\.\.\.)\s+|(?<=[。！？；])|\s+(?:->|=>|→)\s+|\n+"
_CLAUSE = r"(?:\w+: )?(?:either|for|if|in|note|once|please|since|to|unless|when|while|you)\b"
"""How what leads to an advice begins."""
_ADDRESS = "<url>"
_REST = 3
"""Words of what is but the rest of a sentence."""


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # On first use: handing out lessons needs but a few of them.
    return re.compile(pattern, re.IGNORECASE)


def dangers(text: str) -> tuple[str, ...]:
    """Tell what of ``command``, ``address``, ``index``, ``package``, ``order`` and ``disguise`` a text holds."""
    rules = (
        ("command", _COMMAND),
        ("address", _URL),
        ("index", _INDEX),
        ("package", _PACKAGE),
        ("order", _ORDER),
        ("disguise", _DISGUISED),
    )
    rest = _without_cures(text)
    return tuple(name for name, pattern in rules if _compiled(pattern).search(rest))


def cures(text: str) -> list[str]:
    """Return what in a tool's words says what to do in one of the shapes that name nothing of a stranger's."""
    told = (" ".join(found[0].split()).strip() for found in _cures(text))
    return [re.sub(r"[`'\"]", "", cure) if sum(map(cure.count, "`'\"")) % 2 else cure for cure in told]


def _cures(text: str) -> list[re.Match[str]]:
    judged = (_NO_CURE, _ORDER, _INDEX, _DISGUISED)
    found = [
        cure
        for cure in _compiled(_CURE).finditer(text)
        if not any(_compiled(pattern).search(cure[0]) for pattern in judged)
    ]
    # A flag or a verb of a command line is that command's.
    calls = [call.span() for call in _compiled(_COMMAND).finditer(text)] if found else []
    return [
        cure
        for cure in found
        if cure["command"] or not any(start < cure.end() and cure.start() < end for start, end in calls)
    ]


def _without_cures(text: str) -> str:
    for found in reversed(_cures(text)):
        text = f"{text[: found.start()]}{text[found.end() :]}"
    return text


def defused(text: str, *, advice: bool = False, cure: bool = True) -> str:
    """Return what of a tool's words may go on: its sentences without those that say what to run or whom to obey.

    Those that say what to do with the code go too, unless ``advice`` keeps them, or what they say is a ``cure`` that names
    nothing of a stranger's. An address that merely stands in a
    complaint becomes ``<url>``. Empty when nothing is left.
    """
    parts = [part for part in _compiled(_SENTENCE).split(text) if part.strip()]
    kept = [part for part in parts if not is_order(part, cure=cure)]
    if _compiled(_INSTALLED).search(text):
        # Another package's name in place of the one that is missing is whose it is that printed it.
        kept = [part for part in kept if not _compiled(_GUESS).match(part)]
    if not advice:
        # The rest of an advice, behind its semicolon, says nothing without it.
        rests = {rest for part, rest in pairwise(parts) if part.endswith(";") and is_advice(part)}
        kept = [
            _before_advice(part) if is_advice(part, cure=cure) else part
            for part in kept
            if not (part in rests and len(part.split()) <= _REST)
        ]
    without = [part for part in kept if not _compiled(_URL).search(part)]
    return " ".join(filter(None, (_compiled(_URL).sub(_ADDRESS, part).strip() for part in without or kept)))


def _before_advice(sentence: str) -> str:
    """Return the complaint that stands before an advice in one sentence; empty where none does."""
    found = _compiled(_ADVICE).search(sentence)
    head = sentence[: found.start()].rstrip(" ,;:(–—-") if found else ""
    is_complaint = len(head.split()) > _REST and not _compiled(_CLAUSE).match(head)
    return head if is_complaint and not is_advice(head) else ""


def is_order(sentence: str, *, cure: bool = True) -> bool:
    """Tell whether a tool's sentence is a command, names an index, or tells its reader what to do outside the code."""
    rest = _without_cures(sentence) if cure else sentence
    return any(
        _compiled(pattern).search(rest) for pattern in (_COMMAND, _INDEX, _ORDER, _TOOLS_ORDER, _DISGUISED)
    )


def is_advice(sentence: str, *, cure: bool = True) -> bool:
    """Tell whether a tool's sentence says what to do with the code, or which package to take; a ``cure`` may stand in it."""
    rest = _without_cures(sentence) if cure else sentence
    return _compiled(_ADVICE).search(rest) is not None or _compiled(_PACKAGE).search(rest) is not None


_HOSTILE = (_ORDER, _INDEX, _DISGUISED, _PIPED)


def is_hostile(text: str) -> bool:
    """Tell a line that no person should have written: an order to its reader, an index, or a command that fetches."""
    if any(_compiled(pattern).search(text) for pattern in _HOSTILE):
        return True
    return bool(_compiled(_URL).search(text) and _compiled(_COMMAND).search(text))


def rules_version() -> str:
    """Name the rules of ``is_hostile``: what was judged by others is judged again. Cheaper than to compile them."""
    return digest("\n".join((*_HOSTILE, _URL, _COMMAND)))[:16]


def addresses(text: str) -> list[str]:
    """Return the addresses that a text names."""
    return [found[0] for found in _compiled(_URL).finditer(text)]


def commands(text: str) -> list[str]:
    """Return the beginnings of the commands that a text names."""
    return [" ".join(found[0].split()) for found in _compiled(_COMMAND).finditer(text)]
