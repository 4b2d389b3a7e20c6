"""Takes secrets out of a text before anything else looks at it (SPEC 4.2).

What has a known shape is found by the detectors of ``detect-secrets``, which are imported late: recording needs them, nothing
else does. What has none is found by what stands before it: a name, an option, a program, a header.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

SECRET = "<secret>"  # noqa: S105 - what stands in place of one

_WORD = (
    r"pass(?:word|wort|wd|phrase|code)s?|pwd|secrets?|token|api[_.-]?keys?|credentials?|kennwort|requirepass|masterauth|"
    r"(?:access|secret|private|signing|encryption|account|shared|auth|master|storage|deploy|session|webhook|licen[cs]e|subscription|functions?)"
    r"[_.-]?(?:access[_.-]?)?key|(?:jwt|hmac)[_.-]?key|signature|session[_.-]?id|sessid|connect\.sid|cookie|bearer"
)
_NAME = (
    rf"(?<![A-Za-z0-9_.$-])(?:[A-Za-z0-9_.$-]{{0,200}}?(?:{_WORD})(?:[_.-][A-Za-z0-9_.-]{{0,64}}|[A-Z0-9][A-Za-z0-9]{{0,64}})?"
    rf"|(?:[A-Za-z0-9]{{1,20}}[._-]){{0,6}}(?:pass|auth|_auth|pw|pin|psk|dsn|sas|(?<!utf-8-)sig|otp|clave|senha)"
    rf"|contraseña|mot de passe|密码|口令|密钥|令牌|パスワード|비밀번호)"
)
_QUOTED = r"\"(?:[^\"\\\n]|\\.){1,4000}\"?|'(?:[^'\\\n]|\\.){1,4000}'?|`[^`\n]{1,4000}`?"
_VALUE = rf"{_QUOTED}|[^\s\"'`,;<>|]{{1,4000}}"
# What stands where a secret would, and is none: a variable, a type, a word of the complaint, a sentence.
_VARIABLE = re.compile(
    r"[\"'`\\]*(?:\$\{?\w|<|\{\{|\*{3}|%\(|process\.env|os\.environ|[A-Z]\w*Error\b)|[\"'`]{1,2}(?:[\s,;)\]}]|$)"
)
_HARMLESS = re.compile(
    r"[\"'`\\]*(?:None|null|nil|undefined|true|false|required|missing|invalid|expected|unexpected|keys?|must|should|is|was|not|no|"
    r"cannot|can't|could|has|have|the|an?|in|at|of|on|for|with|field|value|type|str|string|text|varchar|int|Optional|SecretStr|error|failed|expired|incorrect|wrong|"
    r"empty|unknown|unauthorized|denied|rejected|mismatch|called|command|env|getenv|config|settings)(?![\w-])"
    r"|[\"'`][A-Z][a-z]+(?: [\w'-]+){2,}\.",
    re.IGNORECASE,
)
_QUOTE_MARK = r"(?:[\\\"'`\])]|&quot;|&#3[49];)*"
_ASSIGNED = re.compile(
    rf"({_NAME}{_QUOTE_MARK}\s*(?:=>|->|→|:=|==?|[:：|]|,(?=\s*[\"'])|\blautet\b)\s*(?:\\\n\s*|<<-?\w+\n\s*|\w+\(\d+\)\s*|&quot;|&#3[49];|\\+(?=[\"'])|\[?\(?\{{?(?=[\"']))?)"
    rf"({_QUOTED}|[\"'`“‘(\[{{]?[^\s\"'`,;<>|]{{1,4000}})",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"(--?(?:[a-z0-9-]+-)?(?:{_WORD}|(?:store|key)?pass(?:in|out)?|auth|user:pass)(?:[\"']?,\s*(?=[\"'])|[=\s]+))({_QUOTED}|[^\s\"'-][^\s\"']*)",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"(\b(?:(?:password|passphrase|passcode|(?:api|licen[cs]e|activation)[ _-]?key|(?:recovery|backup|activation|verification|one-time)[ _-]?(?:code|password)|otp|pin)\b[\w ]{0,24}?"
    r"|(?<!error )(?:secret|token|access[ _-]?key|credentials?)\b[\w ]{0,24}?\b(?:is|was)\b|(?:密码|口令|密钥|令牌)[为是])\s*[:=]?\s*)"
    r"(\"[^\"\s]{3,}\"|'[^'\s]{3,}'|`[^`\s]{3,}`|(?=[^\s]*[0-9!@#$%^&*])(?=[^\s]*[A-Za-z])[^\s\"'`,;()<>]{6,})",
    re.IGNORECASE,
)
# A column of a table or of a listing, and what somebody typed at a prompt: alone at the end of its line.
_BESIDE = re.compile(
    rf"({_NAME}(?:[ \t]{{2,}}|\t)|\b(?:password|passphrase)\s+for\b[^\n]{{0,100}}?:\s+)([^\s\"'`]+)$",
    re.IGNORECASE | re.MULTILINE,
)
_CAPITALS = re.compile(
    r"(\b[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)[A-Z0-9_]*\s+)"
    r"(?=[^\s]*[0-9])([^\s\"'`,;()<>]{6,})"
)
_MIXED = r"(?=[^\s\"'/]*[0-9])(?=[^\s\"'/]*[A-Za-z])[^\s\"'/:@.,;]{6,}(?![/.]\w)"


def _rule(
    pattern: str, replacement: str = rf"\1{SECRET}", flags: int = re.IGNORECASE
) -> tuple[re.Pattern[str], str]:
    return re.compile(pattern, flags), replacement


_BLOCKS = (
    _rule(r"-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE|PGP)[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", SECRET, re.DOTALL),
    _rule(r"PuTTY-User-Key-File.*", SECRET, re.DOTALL),
    _rule(rf"(\b(?:{_WORD})[\"']?\s*[:=]\s*[|>][+-]?\s*\n\s+)\S.*"),
    # A name and its value, each under a key of its own: Kubernetes, Terraform's state, XML, Pydantic's errors.
    _rule(rf"((?:{_WORD})\w{{0,20}}[\s,{{\"'\\:]{{1,40}}\bvalue\\?[\"']?\s*[:=]\s*)(?:{_VALUE})"),
    _rule(rf"((?:{_WORD})\w{{0,20}}\n[^\n]{{0,200}}\binput_value=)(?:{_QUOTED}|[^\s,\]]+)"),
    # Rows of a table that has such a column, and a row of which nobody knows the columns.
    _rule(rf"(\([^()\n]{{0,400}}(?:{_WORD})[^()\n]{{0,400}}\)\s*VALUES\s*)\([^\n]*", rf"\1({SECRET})"),
    _rule(rf"(^\[SQL:(?=[^\n]{{0,2000}}?(?:{_WORD}))[^\n]*\n(?:[^\n]*\n){{0,3}}?\[parameters: )[^\n]*", rf"\1{SECRET}]", re.IGNORECASE | re.MULTILINE),
    # A listing with such a column.
    _rule(r"(^(?:[\w .]+[,;|\t])*[\w .]*(?:password|passwd|secret|token|api_?key)(?:[,;|\t][\w .]+)*\n)(?:[^\n]*[,;|\t][^\n]*\n?)+", rf"\1{SECRET}\n", re.IGNORECASE | re.MULTILINE),
    _rule(r"(\bFailing row contains )\([^\n]*", rf"\1({SECRET})"),
)  # fmt: skip
_ADDRESSES = (
    _rule(r"(?<=://)[^\s/@\"'<>]{1,400}(?:/[^\s/@\"'<>]{1,400})?@(?=[\w.-])", f"{SECRET}@"),
    _rule(r"(?<![\w/])([\w.-]{1,64}:)[^\s:@/]{1,200}(?=@(?:tcp|udp|unix)?\()"),
    _rule(r"([?&;](?:[\w-]*(?:token|key|sig|signature|secret|password|pass|pwd|auth|jwt|code|credential|session|sid)[\w-]*)=)[^&\s\"'<>#]+"),
    _rule(r"(hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|webhook\.office\.com/\w+|api\.telegram\.org/bot)[/:]?[^\s\"'<>]+", rf"\1/{SECRET}"),
    _rule(r"\b((?:proxy-)?authorization|x-[\w-]*(?:key|token|auth|secret|signature)[\w-]*|(?:private|job|deploy)-token|(?:set-)?cookies?)(\"?'?\s*[:=]\s*).*", rf"\1\2{SECRET}"),
    _rule(r"\b(Bearer|Basic|Digest|Negotiate|ApiKey|AWS4-HMAC-SHA256)(\s+)(?!auth|token|scheme|header|is\b|authentication)[\w.~+/=:-]{6,}.*", rf"\1\2{SECRET}"),
    _rule(rf"(<(?!secret>)([\w:.-]*(?:{_WORD})[\w.-]*)(?:\s[^<>]*)?>)[^<]+"),
)  # fmt: skip
_PROGRAMS = (
    _rule(r"(\b(?:auth|login|logon|credentials?|basic_?auth|authenticate)\s*[=(]\s*\(?\s*(?:\"[^\"\n]*\"|'[^'\n]*'|<[^>\n]*>|\w+)\s*,\s*)(?:\"[^\"\n]+\"|'[^'\n]+')"),
    _rule(r"(\bmachine\s+\S+\s+login\s+\S+\s+password\s+)\S+"),
    _rule(r"(\b(?:mysql\w*|mariadb[\w-]*|mycli)\b.{0,200}?[\s'\"]-p)(?=\S)[^\s'\"]+"),
    _rule(r"((?:^|[\s'\"])-p)(?![0-9.:]+(?:/\w+)?(?:[\s'\"]|$))(?=[A-Z]|[^\s'\"]*[0-9!@#$%^&*])[^\s'\"]{5,}", flags=re.MULTILINE),
    _rule(rf"(\b(?:sshpass|docker login|podman login|az login|redis-cli|htpasswd|smbclient|ldap\w+|https?)\b[^\n]{{0,200}}?\s-[pabwW]\s*)(?:{_QUOTED}|[^\s-]\S*)"),
    _rule(rf"(\bcurl\b[^\n]{{0,400}}?\s(?:-u|--user|-b|--cookie)[=\s]*)(?:{_QUOTED}|[^\s:]*:\S+|\S+=\S+)"),
    _rule(r"(\b(?:sqlplus|rman|impdp|expdp|sqlldr|conn(?:ect)?|log[io]n|target)\s+[\w$]+/)(?=[^\s/]*[0-9])[^\s/@]{5,}"),
    _rule(r"(\b(?:7z|zip|unzip|twine|mosquitto_\w+|snmp\w+)\b[^\n]{0,200}?\s-[pPAX]\s*)[^\s-]\S*"),
    _rule(r"(\blftp\b[^\n]{0,200}?\s-u\s+[^\s,]+,)\S+|(\bhtpasswd\s+(?:-\w+\s+)+\S+\s+\S+\s+)\S+", rf"\1\2{SECRET}"),
    _rule(r"(\b(?:password|passwd|token|secret|api[ _-]?key)\s*\()[^\s()]{4,}(?=\))"),
    _rule(r"(\b(?:with|using|as|is|was)\s+)[^\s\"'`]{6,}(?=\s+(?:as|for) (?:the|a|its|my|our) (?:password|passphrase|token|secret|api[ _-]?key)\b)"),
    _rule(r"(\bjdbc:oracle:thin:\s*)\w+/[^\s@]+(?=@)"),
    _rule(rf"((?<!<)<<<\s*)(?!<|\"?\$|(?:FAILURE|ERROR)!)(?:{_QUOTED}|\S+)"),
    _rule(r"(\b(?:echo|printf)\s)[^|\n]{1,400}(?=\|\s*(?:sudo\s+-S|chpasswd|[\w-]+[^|\n]{0,80}(?:stdin|with-token|login|secret|passwd)))", rf"\1{SECRET} "),
    _rule(r"(\bsend\s+(?:--\s+)?\")[^\"\n]+(?=\\r\")"),
    _rule(r"(\bConvertTo-SecureString\s+(?:-String\s+)?)(?:\"[^\"\n]+\"|'[^'\n]+')"),
    _rule(r"(\bnet use\b[^\n]{0,200}?\\\\\S+\s+)\S+(?=\s+/user)"),
    _rule(rf"(\bset(?:x|env)?\s+(?:-\w+\s+)*[\w./:@-]*(?:{_WORD}|_pass)\w*\s+)(?!to\b|is\b|in\b|for\b|=)\S+"),
    _rule(r"(\bconfig\s+(?:set\s+)?\S*(?:http-basic|token|passw|secret|_auth)\S*)(?:\s+[^\s-]\S*){1,2}", rf"\1 {SECRET}"),
    _rule(rf"(\b(?:\w*(?:{_WORD})|(?<!revision )identified by)[(\s]+)([\"'])[^\"']{{6,}}\2"),
    _rule(r"(\b(?:requirepass|masterauth|wpa_passphrase\s+\S+|AUTH)\s+)(?!<|failed|called|command|required|is\b|error)[\w!@#$%^&*.-]{4,}", flags=0),
    _rule(r"(\b(?:mnemonic|(?:seed|recovery) phrase)\s*(?:is|was)?\s*[:=]?\s*)(?:[a-z]+ ){5,}[a-z]+"),
    _rule(r"(\b(?:otp|(?:one-time|verification|2fa|mfa|totp|security)[ -](?:code|password|pin|token))\b\W{0,4}(?:is\s+)?)[0-9]{4,8}\b(?:\s+[\w!@#$%^&*-]*[0-9][\w!@#$%^&*-]*)?"),
    _rule(rf"(\b(?!PRIMARY|FOREIGN|PARTITION|SORT|UNIQUE|CACHE|DUPLICATE|ROUTING|OBJECT|PUBLIC)(?:[A-Z0-9]+_){{0,5}}KEY=)(?!\$)(?:{_QUOTED}|[^\s\"';,]{{5,}})", flags=0),
    _rule(r"(\b(?:secret|token|pin|key|passwd|pwd)[ \t=:]+(?:[0-9]+ )?)(?=[\w!@#$%^&*.-]*[0-9])(?=[\w!@#$%^&*.-]*[a-z])(?=[\w!@#$%^&*.-]*[A-Z])[\w!@#$%^&*.-]{8,}", flags=0),
)  # fmt: skip
_SHAPES = (
    _rule(r"(?<![\w.*-])([\w.*-]{1,100}:(?:[0-9]{3,5}|\*):[\w*-]+:[\w*.-]+:)\S+"),
    _rule(r"\$(?:apr1|[1567y]|2[abxy]|argon2\w*|scrypt)\$[\w./+=,$-]{8,}|\b(?:pbkdf2|bcrypt|scrypt)\w*\$[\w./+=,$-]{8,}", SECRET),
    _rule(r"\b[\w~.]{3}\dQ~[\w~.-]{20,}", SECRET, 0),
    # Keys of services that detect-secrets has no rule for, or an older form.
    _rule(r"\b(?:(?:sk|pk|rk)[-_]|secret_)(?=[\w-]*[0-9])[\w-]{16,}", SECRET, 0),
    _rule(r"\b(?:gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-|xox[abeoprs]-|xapp-|whsec_|shp(?:at|ca|pa|ss)_|pypi-|dckr_pat_|do[opr]_v1_|dp\.(?:st|pt|ct)\.|"
          r"dapi|lin_api_|ntn_|figd_|gl(?:sa|c)_|hv[sbr]\.|sntry[su]_|sbp_|PMAK-|NRAK-|NRII-|AIza|ya29\.|GOCSPX-|tvly-|ctx7sk-|BSA|r8_|gsk_|xai-|pplx-|sgp_|rubygems_|"
          r"EAAC|SG\.|A3T[A-Z0-9]|A(?:K|S|G|I|RO|NP|BI)IA|LTAI|AKID|AGE-SECRET-KEY-1)[\w.=-]{14,}", SECRET, 0),
    _rule(r"\b(?:(?:hf|npm)_|cio)[A-Za-z0-9]{20,}|\bkey-[0-9a-f]{32}\b|\bpat\w{14}\.[0-9a-f]{20,}", SECRET, 0),
    _rule(r"\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)*", SECRET, 0),
    _rule(r"\b\w{14}\.atlasv1\.[\w-]{20,}", SECRET, 0),
)  # fmt: skip
_RULES = (*_BLOCKS, *_ADDRESSES, *_PROGRAMS, *_SHAPES)
# Letters of full width are read as the plain ones: a name must not hide in them.
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F) if chr(code).isalnum() or chr(code) in "=_-"}
_RANDOM = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_+/-]{24,}={0,2}(?![\w/+-])")
_HEX = re.compile(r"(?<![\w-])(?<!commit )(?:0x)?[0-9a-fA-F]{32,}(?![\w-])")
_SEGMENT = 12
"""Characters that a folder's name has at most on the average; in a key a slash is rarer."""
# The detectors by entropy, by keyword and for addresses stay out: the rules above know what stands beside a name, and an
# address is no secret.
_LEFT_OUT = frozenset({"base", "high_entropy_strings", "ip_public", "keyword", "private_key"})
_CLASSES = (str.isupper, str.islower, str.isdigit)


def without_secrets(text: str) -> str:
    """Return the text with ``<secret>`` in place of every value that is, or may be, one. Lines stay lines."""
    text = text.translate(_WIDE)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    for detector in _detectors():
        for found in sorted(set(detector.analyze_string(text)), key=len, reverse=True):
            if found and len(found) > 5:
                text = text.replace(found, SECRET)
    for pattern in (_OPTION, _ASSIGNED, _CAPITALS, _SAID, _BESIDE):
        text = pattern.sub(_taken_out, text)
    text = _HEX.sub(SECRET, text)
    return _RANDOM.sub(lambda found: SECRET if _is_random(found[0]) else found[0], text)


def _taken_out(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    is_count = value.isdigit() and "tokens" in name.lower()
    if is_count or SECRET in value or not any(map(str.isalnum, value)) or _is_harmless(value):
        return found[0]
    return f"{name}{SECRET}"


def _is_harmless(value: str) -> bool:
    if _VARIABLE.match(value):
        return True
    has_digits = any(map(str.isdigit, value))
    return _HARMLESS.match(value) is not None and not (value[0] in "\"'`" and has_digits)


def _is_random(text: str) -> bool:
    """Tell a key from a name or a path: it changes between capitals, small letters and digits all the time."""
    if text.count("/") * _SEGMENT > len(text):
        return False
    kinds = [next((at for at, kind in enumerate(_CLASSES) if kind(letter)), 3) for letter in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    return {0, 1, 2} <= set(kinds) and changes >= len(text) / 3


@lru_cache(maxsize=1)
def _detectors() -> "Sequence[RegexBasedDetector]":
    # Loading them takes 0.2 s.
    from detect_secrets import plugins
    from detect_secrets.plugins.base import RegexBasedDetector

    names = [found.name for found in iter_modules(plugins.__path__) if found.name not in _LEFT_OUT]
    modules = [import_module(f"{plugins.__name__}.{name}") for name in names]
    kinds = {
        kind: None
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind is not RegexBasedDetector
    }
    return tuple(kind() for kind in kinds)
