"""Temporary."""


def clean(text: str) -> str:
    return text


def mask_secrets(text: str) -> str:
    return text


def reasons_to_hold(text: str) -> tuple[str, ...]:
    return ()
