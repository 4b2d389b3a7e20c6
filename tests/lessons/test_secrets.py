"""Forty shapes of secrets, none of which comes through, and lines of errors that must stay as they are (SPEC 4.2)."""

import pytest

from kr.lessons.distill.secrets import SECRET, without_secrets

# Put together here, so that no scanner takes this file for a leak. Each is (text with {}, secret).
_RANDOM = "Zq8" + "vT3mK9xR2pL7wN4bY6cJ1dF5hG0sA8eU"
_WORDY = "hunter2" + "hunter2"
SHAPES = {
    "environment": ("DB_PASSWORD={}", _WORDY),
    "environment with a blank": ("export POSTGRES_PASSWORD = {}", _WORDY),
    "camel case": ("dbPassword: {}", _WORDY),
    "dotted": ("-Dspring.datasource.password={} failed", _WORDY),
    "npmrc": ("//registry.example/:_authToken={}", "npm-" + _RANDOM),
    "client secret": ("client_secret={}&grant_type=x", "a8f5-" + _WORDY),
    "yaml": ("  api_key: {}", _RANDOM),
    "json": ('{{"password": "{}", "user": "kim"}}', "two words 77"),
    "python keyword": ("connect(host='db', password='{}')", _WORDY),
    "option with a blank": ("mytool --password {} --verbose", _WORDY),
    "option with =": ("mytool --api-token={}", _WORDY),
    "mysql": ("mysql -u root -p{} shop: access denied", _WORDY),
    "redis": ("redis-cli -h db -a {} ping", _WORDY),
    "curl user": ("curl -sS -u admin:{} localhost", _WORDY),
    "URL": ("could not connect to postgresql://shop:{}@db:5432/shop", _WORDY),
    "URL with a token": ("fatal: repository 'https://{}@git.example/shop.git' not found", "x-oauth-" + _WORDY),
    "query": ("GET /files?access_token={}&page=2 403", _WORDY),
    "signed URL": ("https://bucket.example/a.zip?X-Amz-Signature={}&x=1", "ab12" * 16),
    "authorization header": ("Authorization: Bearer {}", _RANDOM),
    "basic authorization": ("> authorization: Basic {}", "c2hvcDpodW50ZXIyaHVudGVyMg=="),
    "own header": ("X-Api-Key: {}", _WORDY),
    "cookie": ("Cookie: theme=dark; sessionid={}", _WORDY),
    "set-cookie": ("Set-Cookie: connect.sid=s%3A{}; Path=/", _WORDY),
    "JWT": ("token rejected: {}", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJraW0ifQ" + ".c2lnbmF0dXJlc2lnbmF0dXJl"),
    "AWS key": ("using key {} in eu-west-1", "AKIA" + "QYLPMN5HFIQR7BBB"),
    "AWS secret": ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "ZZZZZZZKEY"),
    "GitHub": ("remote: {} is not allowed", "ghp" + "_0123456789abcdefghijABCDEFGHIJ012345"),
    "GitLab": ("token {} revoked", "glpat" + "-ABCdef123456GHIjkl78"),
    "Slack": ("slack said no to {}", "xoxb" + "-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx"),
    "Slack hook": (
        "POST https://hooks.slack.com/services/{} 404",
        "T00000000/B00000000/" + "XXXXXXXXabcd12345678XXXX",
    ),
    "Stripe": ("No such charge with {}", "sk" + "_live_51AbCdEfGhIjKlMnOpQrStUv"),
    "OpenAI": ("Incorrect API key provided: {}", "sk" + "-proj-abcdEFGH1234ijklMNOP5678"),
    "Google": ("keyInvalid {}", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    "SendGrid": ("bad key {}", "SG" + ".abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg"),
    "Hugging Face": ("401 for {}", "hf" + "_AbCdEfGhIjKlMnOpQrStUvWxYz"),
    "npm token": ("npm ERR! {}", "npm" + "_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"),
    "PyPI token": ("403 {}", "pypi" + "-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNC0xMjM0"),
    "private key": (
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEA" + "1234\nQwErTzUiOpLkJh12",
    ),
    "connection string": ("Server=db;User Id=sa;Password={};Encrypt=true", _WORDY),
    "Azure": (
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={}",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    ),
    "said": ("login failed with password {} for kim", _WORDY),
    "said in quotes": ("the password is '{}'", "correcthorse"),
    "Chinese": ("数据库密码：{} 不正确", _WORDY),
    "XML": ("<password>{}</password>", _WORDY),
    "netrc": ("machine git.example login kim password {}", "correcthorse"),
    "pgpass": ("localhost:5432:shop:kim:{}", _WORDY),
    "Dockerfile": ("ENV API_TOKEN {}", _WORDY),
    "PHP": ("'db_password' => '{}',", _WORDY),
    "item": ('os.environ["API_KEY"] = "{}"', _WORDY),
    "random alone": ("unexpected value {}", _RANDOM),
    "hex alone": ("unknown key {}", "9f86d081884c7d659a2feaa0c55ad015"),
    "Vault": ("permission denied for {}", "hvs" + ".CAESIJ1234567890abcdefghij"),
    "two lines": ("password=\n{}", _WORDY),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_secret_does_not_come_through(shape: str) -> None:
    text, secret = SHAPES[shape]
    told = without_secrets(text.format(secret))
    assert SECRET in told
    for part in secret.split("\n"):
        assert part not in told


@pytest.mark.parametrize(
    "line",
    [
        "SyntaxError: Unexpected token '<' in JSON at position 0",
        "error TS1005: ';' expected near token: }",
        "TypeError: login() missing 1 required positional argument: 'password'",
        "password: field required",
        "Secret `shop-db` not found in namespace default",
        "psql: error: password authentication failed for user kim",
        "max_tokens=4096 is above the limit",
        "KeyError: 'API_KEY'",
        "The variable DB_PASSWORD is not set",
        "passed=3 failed=1",
        "org.springframework.beans.factory.support.AbstractAutowireCapableBeanFactory",
        "src/components/checkout/PaymentMethodSelector.tsx:142",
        "Field required [type=missing, input_value={'name': 'x'}, input_type=dict]",
        "author = kim",
        "DB_PASSWORD=${DB_PASSWORD} is empty",
        'sqlalchemy.exc.IntegrityError: (psycopg.errors.NotNullViolation) column "status" contains null values',
        "Key (email)=(kim@example.com) already exists.",
        "error[E0432]: unresolved import `serde`",
        "token is expired",
        "mapping values are not allowed here in config.yaml, line 3",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(line: str) -> None:
    assert without_secrets(line) == line
