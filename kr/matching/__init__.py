"""What answers what: which entry of the cache answers a request. Pure."""


def table(name: str) -> str:
    """Return a word table that is shipped beside the code."""
    # Not by pathlib: to import it costs a tenth of what Python and click cost, and a hit needs it for nothing else.
    with open(f"{__path__[0]}/{name}", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()
