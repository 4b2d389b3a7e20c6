"""Tables for people: aligned, readable at 80 columns, plain, and with nothing in them that moves a terminal."""

from collections.abc import Iterable, Sequence

_LONGEST_CELL = 300


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None) -> str:
    """Lay rows out under their columns; texts wrap within theirs. None is shown as a dash.

    The column ``wide`` takes the room that is left, and is cut last. Cells may hold anything: they are shown
    as one line of visible characters.
    """
    import io
    import shutil

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    laid = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        laid.add_column(Text(column), overflow="fold", ratio=1 if column == wide else None)
    for row in rows:
        laid.add_row(*(Text(cell(value)) for value in row))
    width = max(shutil.get_terminal_size((80, 24)).columns, 40)
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as shown:
        console.print(laid)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def cell(value: object) -> str:
    """Show a value as one line of visible characters."""
    from kr.rules.characters import one_line

    if value is None or value == []:
        return "-"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), _LONGEST_CELL)
