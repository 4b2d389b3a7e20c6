"""Numbers of things as a sentence says them, and the size of a text in a model's tokens."""

CHARACTERS_PER_TOKEN = 4
"""What SPEC 3.7 reckons with. Measured on kr's own reports: see ``tokens_of``."""


def counted(number: float, one: str, many: str | None = None) -> str:
    """Say how many: ``1 lease``, ``2 leases``, ``1.5 calls``; ``many`` where an ``s`` alone doesn't do."""
    return f"{number:.15g} {one if number == 1 else many or one + 's'}"


def tokens_of(text: str) -> int:
    """Estimate how many tokens a text costs its reader: a quarter of its characters, rounded up (SPEC 3.7)."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
