"""The examples at the end of a command's help."""


def examples(*lines: str) -> str:
    """Make an epilog that click leaves as it stands."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
