"""What kr prints: the answer on standard output, messages and progress on standard error (SPEC 6).

A command returns a value, and ``emit`` prints it. An agent on a pipe sees YAML or JSON and nothing else; a person sees a readable view, made by the command's
own ``view``, within the terminal's width, of text that a terminal can't be tricked with.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kr.errors import OutputFailed
from kr.yaml_io import write_yaml

if TYPE_CHECKING:
    from kr.cli.options import Common

View = Callable[[Any], str]


def wants_text(common: "Common") -> bool:
    """Tell whether a person reads the answer: asked for, or at a terminal."""
    return common.format == "text" or (
        common.format is None and sys.stdout is not None and sys.stdout.isatty()
    )


def emit(value: Any, ctx: click.Context, view: View, *, is_line: bool = False) -> None:
    """Print ``value`` (nested plain data) in the format that is wanted; ``is_line``: the view on a pipe too, for a shell."""
    from kr.cli.options import common  # which warns through this module

    said = common(ctx)
    if wants_text(said) or (is_line and said.format is None):
        text = view(_shown(value))
    elif said.format == "json":
        text = to_json(value)
    else:
        text = write_yaml(value)
    if sys.stdout is None:  # closed by the caller: nobody wants to know
        return
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A C locale must not turn Chinese into a traceback.
        reconfigure(encoding="utf-8", errors="backslashreplace")
    write_out(text.rstrip("\n"))


def at_most(limit: int | None, rows: list[Any]) -> list[Any]:
    """Cut a list that was asked for with one more than its limit, and say so (SPEC 6)."""
    if limit is not None and len(rows) > limit:
        tell_cut(str(limit))
    return rows[:limit]


def tell_cut(shown: str) -> None:
    """Say that a list goes on, where it is no part of the output."""
    click.echo(f"the first {shown} shown; --limit N shows more", err=True)


def write_out(text: str) -> None:
    """Write to standard output. A reader who has gone has seen enough; anything else is ``OutputFailed``."""
    try:
        # Not through click.echo's caller: click answers a closed pipe with exit status 1.
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What the command did, and its exit status, stand.
        _forget_stdout()
    except OSError as error:
        _forget_stdout()
        raise OutputFailed(f"standard output can't be written: {error.strerror}") from error


def _forget_stdout() -> None:
    """Let go of standard output, so that what is still buffered does not raise at shutdown."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(value: Any) -> Any:
    """Take out of all texts what would command the terminal, or show it in another order than it stands."""
    from kr.text import strip_invisible

    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def to_json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=2)


def colour() -> bool | None:
    """Tell click about colours: None lets it see whether a terminal reads; ``NO_COLOR`` and ``TERM=dumb`` forbid them."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"


def complain(message: str) -> None:
    _say("error", message, "red")


def warn(message: str) -> None:
    _say("warning", message, "yellow")


def _say(kind: str, message: str, shade: str) -> None:
    click.echo(f"{click.style(f'{kind}:', fg=shade, bold=True)} {message}", err=True, color=colour())


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
    """Lay rows out under their columns, each cell one visible line that wraps; ``wide`` takes the room that is left."""
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
    from kr.text import one_line

    if value is None or value == []:
        return "-"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), _LONGEST_CELL)


def wrapped(label: str, text: str, *, indent: int) -> list[str]:
    """Give ``label`` and ``text`` as lines of at most the terminal's width, in cells; what wraps is indented."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    from kr.text import one_line

    columns = width()
    room = max(columns - max(indent, cell_len(label)), 20)
    lines = Text(one_line(text, _LONGEST)).wrap(Console(width=columns), room, overflow="fold")
    told = [line.plain.rstrip() for line in lines] or [""]
    return [f"{label}{told[0]}".rstrip(), *(" " * indent + line for line in told[1:])]


def fitted(text: str, width: int) -> str:
    """Cut or pad a text to exactly ``width`` cells."""
    from rich.cells import cell_len, set_cell_size

    from kr.text import one_line

    line = one_line(text)
    return set_cell_size(line, width) if cell_len(line) <= width else set_cell_size(line, width - 1) + "…"


_REFRESH_SECONDS = 0.5


class LineProgress:
    """Keeps one line up to date where somebody watches: ``asking context7 … 3 s``."""

    def __init__(self, *, is_watched: bool | None = None) -> None:
        self._is_watched = _is_watched() if is_watched is None else is_watched
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def asking(self, source: str) -> None:
        self._show(f"asking {source}")

    def waiting(self) -> None:
        self._show("waiting for another process that researches the same")

    def _show(self, what: str) -> None:
        if not self._is_watched:
            return
        stop = self._stop = threading.Event()
        self._thread = threading.Thread(target=_tell, args=(what, stop), name="kr-progress", daemon=True)
        self._thread.start()

    def done(self) -> None:
        if self._stop is not None and self._thread is not None:
            self._stop.set()
            self._thread.join(timeout=_REFRESH_SECONDS)
        self._stop = self._thread = None


def _tell(what: str, stop: threading.Event) -> None:
    began = time.monotonic()
    with progress_line() as show:
        while True:
            show(f"{what} … {time.monotonic() - began:.0f} s")
            if stop.wait(_REFRESH_SECONDS):
                break


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Keep one line on standard error up to date while the block runs; nobody sees it where nobody watches (SPEC 6)."""
    is_watched = _is_watched()

    def show(text: str) -> None:
        if is_watched:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    try:
        yield show
    finally:
        show("")


def _is_watched() -> bool:
    return sys.stderr.isatty() and not is_dumb()
