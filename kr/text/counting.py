"""Numbers of things, as a sentence says them."""


def counted(number: float, one: str, many: str | None = None) -> str:
    """Say how many: ``1 lease``, ``2 leases``, ``1.5 calls``; ``many`` where an ``s`` alone doesn't do."""
    return f"{number:.15g} {one if number == 1 else many or one + 's'}"
