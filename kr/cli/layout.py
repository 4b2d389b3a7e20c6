"""Tables and wrapped lines for people: within their terminal's width, and with nothing in them that moves it."""

from collections.abc import Iterable, Sequence

_LONGEST_CELL = 300
_LONGEST = 2000
_WITHOUT_A_TERMINAL = 100_000


def width() -> int:
    """Give the columns of the terminal. Where none reads, nothing is cut or wrapped: as wide as it takes (SPEC 6)."""
    import shutil
    import sys

    if sys.stdout is None or not sys.stdout.isatty():
        return _WITHOUT_A_TERMINAL
    return max(shutil.get_terminal_size((80, 24)).columns, 40)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None) -> str:
    """Lay rows out under their columns; texts wrap within theirs. None is shown as a dash.

    The column ``wide`` takes the room that is left. Cells may hold anything: they are shown as one line of visible
    characters.
    """
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    laid = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        laid.add_column(Text(column), overflow="fold", ratio=1 if column == wide else None)
    for row in rows:
        laid.add_row(*(Text(cell(value)) for value in row))
    console = Console(file=io.StringIO(), width=width(), color_system=None, force_terminal=False)
    with console.capture() as shown:
        console.print(laid)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def cell(value: object) -> str:
    """Show a value as one line of visible characters."""
    from kr.text.characters import one_line

    if value is None or value == []:
        return "-"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), _LONGEST_CELL)


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
