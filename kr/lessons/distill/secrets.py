"""Takes secrets out of a text before anything else looks at it (SPEC 4.2).

A small set of own rules for what is named like a secret, and the detectors of ``detect-secrets`` for the keys of known
services, which are imported late: recording needs them, nothing else does.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

SECRET = "<secret>"  # noqa: S105 - what stands in place of one

_WORD = (
    r"pass(?:word|wort|wd|phrase|code)s?|pwd|secrets?|token|api[_.-]?keys?|credentials?|"
    r"(?:access|secret|private|signing|encryption|account|shared|auth|master|storage|deploy|session|webhook|licen[cs]e|subscription|functions?)"
    r"[_.-]?(?:access[_.-]?)?key|(?:jwt|hmac)[_.-]?key|signature|session[_.-]?id|sessid|connect\.sid|cookie|bearer"
)
_NAME = (
    rf"(?<![A-Za-z0-9])(?:[A-Za-z0-9_.$-]{{0,64}}?(?:{_WORD})(?:[_.-][A-Za-z0-9_.-]{{0,64}}|[A-Z0-9][A-Za-z0-9]{{0,64}})?"
    rf"|(?:[A-Za-z0-9]{{1,20}}[_-]){{0,6}}(?:pass|auth|_auth|pw|pin|dsn|sas|sig|otp)|contraseña|mot de passe|密码|口令|密钥|令牌)"
)
_OPEN = r"[\"'`“‘(\[{]*"
_QUOTED = r"\"(?:[^\"\\\n]|\\.){1,4000}\"?|'(?:[^'\\\n]|\\.){1,4000}'?|`[^`\n]{1,4000}`?"
# What stands where a secret would, and is none: a variable, a type, a word of the complaint.
_HARMLESS = re.compile(
    r"[\"'`]?(?:\$\{?\w|<|\{\{|\*{3}|%\(|(?:None|null|nil|undefined|true|false|required|missing|invalid|expected|unexpected|must|should|is|was|not|no|"
    r"cannot|can't|could|has|have|the|an?|in|at|of|on|for|with|field|value|type|str|string|int|Optional|SecretStr|error|expired|incorrect|wrong|empty|"
    r"unknown|unauthorized|denied|rejected|mismatch|process\.env|os\.environ|env|getenv|config|settings)(?![\w-])|[\"'`]{1,2}(?:[\s,;)\]}]|$))",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"({_NAME}[\"'`\])]*\s*(?:=>|:=|==?|[:：]|,(?=\s*[\"']))\s*{_OPEN[:-1]}?)({_QUOTED}|[^\s\"'`,;<>]{{1,4000}})",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"(--?(?:[a-z0-9-]+-)?(?:{_WORD}|pass|auth|user:pass)(?:[=\s]+))({_QUOTED}|[^\s\"'-][^\s\"']*)",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"(\b(?:(?:password|passphrase|passcode|api[ _-]?key|pin)\b[\w ]{0,24}?"
    r"|(?:secret|token|access[ _-]?key|credentials?)\b[\w ]{0,24}?\b(?:is|was)\b)\s*[:=]?\s*)"
    r"(\"[^\"\s]{3,}\"|'[^'\s]{3,}'|`[^`\s]{3,}`|(?=[^\s]*[0-9!@#$%^&*])(?=[^\s]*[A-Za-z])[^\s\"'`,;()<>]{6,})",
    re.IGNORECASE,
)
_CAPITALS = re.compile(
    r"(\b[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)[A-Z0-9_]*\s+)"
    r"(?=[^\s]*[0-9])([^\s\"'`,;()<>]{6,})"
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE|PGP)[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL), SECRET),
    (re.compile(rf"(\b(?:{_WORD})[\"']?\s*[:=]\s*[|>][+-]?\s*\n\s+)\S.*", re.IGNORECASE), rf"\1{SECRET}"),
    (re.compile(rf"(\b(?:\w*(?:{_WORD})|identified by)[(\s]+)([\"'])[^\"']{{6,}}\2", re.IGNORECASE), rf"\1{SECRET}"),
    (re.compile(r"(\b(?:secret|token|otp|pin|key|passwd|pwd)[ \t=:]+(?:[0-9]+ )?)(?=[\w!@#$%^&*.-]*[0-9])(?=[\w!@#$%^&*.-]*[a-z])(?=[\w!@#$%^&*.-]*[A-Z])[\w!@#$%^&*.-]{8,}"), rf"\1{SECRET}"),
    (re.compile(r"PuTTY-User-Key-File.*", re.DOTALL), SECRET),
    (re.compile(r"(?<=://)[^\s/@\"'<>]{1,400}@"), f"{SECRET}@"),
    (re.compile(r"\b((?:proxy-)?authorization|x-[\w-]*(?:key|token|auth|secret|signature)[\w-]*|(?:set-)?cookie)(\"?'?\s*[:=]\s*).*", re.IGNORECASE), rf"\1\2{SECRET}"),
    (re.compile(r"\b(Bearer|Basic|Digest|Negotiate|ApiKey|AWS4-HMAC-SHA256)(\s+)(?!auth|token|scheme|header|is\b|authentication)[\w.~+/=:-]{6,}.*", re.IGNORECASE), rf"\1\2{SECRET}"),
    (re.compile(r"([?&;](?:[\w-]*(?:token|key|sig|signature|secret|password|pass|pwd|auth|code|credential|session|sid)[\w-]*)=)[^&\s\"'<>#]+", re.IGNORECASE), rf"\1{SECRET}"),
    (re.compile(rf"(<(?!secret>)([\w:.-]*(?:{_WORD})[\w.-]*)(?:\s[^<>]*)?>)[^<]+", re.IGNORECASE), rf"\1{SECRET}"),
    (re.compile(r"(\bmachine\s+\S+\s+login\s+\S+\s+password\s+)\S+", re.IGNORECASE), rf"\1{SECRET}"),
    (re.compile(r"(\b(?:mysql|mysqldump|mariadb|mysqladmin)\b.{0,200}?\s-p)(?=\S)[^\s]+"), rf"\1{SECRET}"),
    (re.compile(r"(\b(?:sshpass|docker login|az login|redis-cli|htpasswd|smbclient)\b.{0,200}?\s-[pab]\s+)\S+"), rf"\1{SECRET}"),
    (re.compile(r"(\bcurl\b.{0,400}?\s(?:-u|--user)[=\s]*)[^\s:]+:\S+"), rf"\1{SECRET}"),
    (re.compile(r"(\b(?:sqlplus|jdbc:oracle:thin:)\s*)\w+/[^\s@]+(?=@)"), rf"\1{SECRET}"),
    (re.compile(r"(?<![\w.*-])([\w.*-]{1,100}:[0-9]{3,5}:[\w*-]+:[\w*.-]+:)\S+"), rf"\1{SECRET}"),
    (re.compile(r"(hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|api\.telegram\.org/bot)[/:]?[^\s\"'<>]+"), rf"\1/{SECRET}"),
    # Keys of services that detect-secrets has no rule for, or an older form.
    (re.compile(r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or|svcacct|admin)?[-_]?[\w-]{16,}"), SECRET),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-|xox[abeoprs]-|xapp-|whsec_|shp(?:at|ca|pa|ss)_|hf_|npm_|pypi-|dckr_pat_|do[opr]_v1_|dp\.(?:st|pt|ct)\.|"
                r"dapi|lin_api_|ntn_|secret_|figd_|gl(?:sa|c)_|hv[sbr]\.|sntry[su]_|sbp_|PMAK-|NRAK-|NRII-|AIza|ya29\.|GOCSPX-|tvly-|ctx7sk-|BSA|r8_|gsk_|xai-|pplx-|sgp_|rubygems_|"
                r"cio|EAAC|SG\.|key-|pat|A3T[A-Z0-9]|A(?:K|S|G|I|RO|NP|BI)IA|LTAI|AKID|AGE-SECRET-KEY-1)[\w.=-]{14,}"), SECRET),
    (re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)*"), SECRET),
    (re.compile(r"\b\w{14}\.atlasv1\.[\w-]{20,}"), SECRET),
)  # fmt: skip
# Letters of full width are read as the plain ones: a name must not hide in them.
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F) if chr(code).isalnum() or chr(code) in "=_-"}
_RANDOM = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_+/-]{24,}={0,2}(?![\w/+-])")
_HEX = re.compile(r"(?<![\w-])(?:0x)?[0-9a-fA-F]{32,}(?![\w-])")
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
    text = _OPTION.sub(_taken_out, text)
    text = _ASSIGNED.sub(_taken_out, text)
    text = _CAPITALS.sub(_taken_out, text)
    text = _SAID.sub(_taken_out, text)
    text = _HEX.sub(SECRET, text)
    return _RANDOM.sub(lambda found: SECRET if _is_random(found[0]) else found[0], text)


def _taken_out(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    bare = value.strip("\"'`()[]{}.,;")
    if not bare or SECRET in value or _HARMLESS.match(value) or (bare.isdigit() and "tokens" in name.lower()):
        return found[0]
    return f"{name}{SECRET}"


def _is_random(text: str) -> bool:
    """Tell a key from a name: it changes between capitals, small letters and digits all the time."""
    kinds = [next((at for at, kind in enumerate(_CLASSES) if kind(letter)), 3) for letter in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    return {0, 1, 2} <= set(kinds) and changes >= len(text) / 3


@lru_cache(maxsize=1)
def _detectors() -> "Sequence[RegexBasedDetector]":
    # Loading them takes 0.2 s. The detectors by entropy, by keyword and for addresses stay out: the rules above know
    # what stands beside a name, and an address is no secret.
    from detect_secrets.plugins import (
        artifactory,
        aws,
        azure_storage_key,
        basic_auth,
        cloudant,
        discord,
        github_token,
        gitlab_token,
        ibm_cloud_iam,
        ibm_cos_hmac,
        jwt,
        mailchimp,
        npm,
        openai,
        pypi_token,
        sendgrid,
        slack,
        softlayer,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    return (
        artifactory.ArtifactoryDetector(),
        aws.AWSKeyDetector(),
        azure_storage_key.AzureStorageKeyDetector(),
        basic_auth.BasicAuthDetector(),
        cloudant.CloudantDetector(),
        discord.DiscordBotTokenDetector(),
        github_token.GitHubTokenDetector(),
        gitlab_token.GitLabTokenDetector(),
        ibm_cloud_iam.IbmCloudIamDetector(),
        ibm_cos_hmac.IbmCosHmacDetector(),
        jwt.JwtTokenDetector(),
        mailchimp.MailchimpDetector(),
        npm.NpmDetector(),
        openai.OpenAIDetector(),
        pypi_token.PypiTokenDetector(),
        sendgrid.SendGridDetector(),
        slack.SlackDetector(),
        softlayer.SoftlayerDetector(),
        square_oauth.SquareOAuthDetector(),
        stripe.StripeDetector(),
        telegram_token.TelegramBotTokenDetector(),
        twilio.TwilioKeyDetector(),
    )
