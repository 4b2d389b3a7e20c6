"""Shapes of secrets, none of which comes through, and lines of errors that must stay as they are (SPEC 4.2)."""

import pytest

from kr.guard import clean, mask_secrets
from tests.support.secret_shapes import SHAPES


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_secret_does_not_come_through(shape: str) -> None:
    text, secret = SHAPES[shape]
    masked = mask_secrets(clean(text.format(secret)))
    for part in secret.split("\n"):
        assert part not in masked


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
        "Field error in object 'user' on field 'password': rejected value [null]; codes [NotBlank]",
        "PASS src/app2.test.js",
        '{"type":"missing","loc":["body","user"],"input":"kim"}',
        "password: Optional[str] = None",
        "invalid value 'many' for '--jobs <N>': invalid digit found in string",
        "routing_key='orders.created' has no queue bound",
        "ticket=SHOP-1234 is closed",
        "open app.key: no such file or directory",
        "shop:latest@sha256:1234567890 is not found",
        "ssh-keygen -R db.example",
        "AUTH LOGIN is not supported by the server",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(line: str) -> None:
    assert mask_secrets(line) == line
