"""Lines for people within the width of their terminal: hostile texts in one line, wrapped by cells."""

from kr.cli.table import width

_LONGEST = 2000


def wrapped(label: str, text: str, *, indent: int) -> list[str]:
    """Give ``label`` and ``text`` as lines of at most the terminal's width; what wraps is indented.

    Width is counted in cells: a Chinese letter takes two.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    from kr.text.characters import one_line

    columns = width()
    room = max(columns - max(indent, cell_len(label)), 20)
    lines = Text(one_line(text, _LONGEST)).wrap(Console(width=columns), room, overflow="fold")
    told = [line.plain.rstrip() for line in lines] or [""]
    return [f"{label}{told[0]}".rstrip(), *(" " * indent + line for line in told[1:])]


def fitted(text: str, width: int) -> str:
    """Cut or pad a text to exactly ``width`` cells."""
    from rich.cells import cell_len, set_cell_size

    from kr.text.characters import one_line

    line = one_line(text)
    return set_cell_size(line, width) if cell_len(line) <= width else set_cell_size(line, width - 1) + "…"
