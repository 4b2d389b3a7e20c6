"""Tables for people: aligned, readable at 80 columns, plain, and with nothing in them that moves a terminal."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_LONGEST_CELL = 300


_WITHOUT_A_TERMINAL = 100_000
_GAP = 2
_LEAST_CUT = 12
_LEAST_KEPT = 20
_MOST_OF_OTHERS = 20


def width() -> int:
    """Give the columns of the terminal. Where none reads, nothing is cut or wrapped: as wide as it takes (SPEC 6)."""
    import shutil
    import sys

    if sys.stdout is None or not sys.stdout.isatty():
        return _WITHOUT_A_TERMINAL
    return max(shutil.get_terminal_size((80, 24)).columns, 40)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    wide: str | None = None,
    cut: str | None = None,
    kept: str | None = None,
) -> str:
    """Lay rows out under their columns; texts wrap within theirs. None is shown as a dash.

    The column ``wide`` takes the room that is left, and is cut last. With ``cut`` that column takes the room
    that the others leave, in one line that ends with ``…`` where it has to, and ``kept`` gives way last.
    Cells may hold anything: they are shown as one line of visible characters.
    """
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    laid = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    cells = [[Text(cell(value)) for value in row] for row in rows]
    widths = _widths(columns, cells, cut, kept) if cut is not None else {}
    for column in columns:
        laid.add_column(
            Text(column),
            overflow="ellipsis" if column == cut else "fold",
            no_wrap=column == cut,
            ratio=1 if column == wide else None,
            width=widths.get(column),
        )
    for row in cells:
        laid.add_row(*row)
    console = Console(file=io.StringIO(), width=width(), color_system=None, force_terminal=False)
    with console.capture() as shown:
        console.print(laid)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def _widths(
    columns: Sequence[str], rows: "Sequence[Sequence[Text]]", cut: str, kept: str | None
) -> dict[str, int]:
    """Share the room: others as wide as they need up to a bound, then ``kept``, and ``cut`` what is left."""
    asked = {
        column: max([len(column), *(row[at].cell_len for row in rows)]) for at, column in enumerate(columns)
    }
    found = {name: min(need, _MOST_OF_OTHERS) for name, need in asked.items() if name not in {cut, kept}}
    left = width() - sum(found.values()) - _GAP * (len(columns) - 1)
    if kept is not None:
        found[kept] = min(asked[kept], max(left - min(asked[cut], _LEAST_CUT), _LEAST_KEPT))
        left -= found[kept]
    found[cut] = max(min(asked[cut], left), len(cut))
    return found


def cell(value: object) -> str:
    """Show a value as one line of visible characters."""
    from kr.text.characters import one_line

    if value is None or value == []:
        return "-"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), _LONGEST_CELL)
