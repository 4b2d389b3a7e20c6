"""What every command shares: the common options, the app that they ask for, and how its value is printed.

A command returns a value, and ``emit`` prints it: YAML or JSON for a program on a pipe, a readable view for a person at
a terminal. Messages and progress go to standard error.
"""

import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import click

from kr.errors import KrError, RequestUnreadable
from kr.models import Problem, failure
from kr.requests import LIMIT
from kr.text import one_line, strip_invisible

if TYPE_CHECKING:
    from kr.app import App
    from kr.models import Envelope
    from kr.research.service import Progress

View = Callable[[Any], str]
Format = Literal["yaml", "json", "text"]
F = TypeVar("F", bound=Callable[..., Any])

MOST = 1_000_000
"""The upper bound of options that count rows and calls."""

_FORMATS = get_args(Format)
_LONGEST_CELL = 300
_LONGEST = 2000
_WITHOUT_A_TERMINAL = 100_000


# --- options


@dataclass(slots=True)
class Common:
    """What the common options said so far; a value after the command wins over one before it."""

    config: str | None = None
    kb: str | None = None
    format: Format | None = None
    verbose: bool = False


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value == "":
        raise click.BadParameter("must not be empty.", ctx=ctx, param=param)
    if value is not None and value is not False:
        setattr(ctx.ensure_object(Common), str(param.name), value)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Make one decorator of several parameters of a command, in the order of its help."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _common_option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, callback=_remember, expose_value=False, **settings)


COMMON_OPTIONS = [
    _common_option("--config", metavar="FILE", help="Configuration, not KR_CONFIG or the nearest kr.yaml."),
    _common_option("--kb", metavar="DIR", help="Knowledge base folder."),
    _common_option("--format", type=click.Choice(_FORMATS), help="Default: text at a terminal, else yaml."),
    _common_option("--verbose", "-v", is_flag=True, help="Say on standard error what is being done."),
]
"""What every command takes; the values go to the context's ``Common``."""


class Command(click.Command):
    """A command with the common options behind its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters in the order of the help."""
        own, end = super().get_params(ctx), len(self.params)
        return [*own[:end], *COMMON_OPTIONS, *own[end:]]

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002 - click's signature
        """Return the first sentence of the help, whole."""
        paragraph = " ".join((self.help or "").partition("\n\n")[0].split())
        return paragraph.partition(". ")[0].rstrip(".") + "."


class Group(Command, click.Group):
    """A group of commands."""


def kr_command(
    name: str,
    *examples: str,
    group: click.Group | None = None,
    cls: type[Command] = Command,
    **settings: Any,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function that takes the context first; its ``examples`` end its help."""
    make = click.command if group is None else group.command
    ending = {"epilog": _shown_examples(examples), **settings}

    def add(function: Callable[..., Any]) -> click.Command:
        made: click.Command = make(name, cls=cls, **ending)(click.pass_context(function))
        return made

    return add


def kr_group(name: str, *examples: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Group]:
    """Make a group of commands; its ``examples`` end its help."""
    return click.group(name, cls=Group, epilog=_shown_examples(examples), **settings)


def _shown_examples(lines: Sequence[str]) -> str:
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def schema_option(schema: Callable[[], dict[str, Any]]) -> Callable[[F], F]:
    """Add --schema, which prints the JSON Schema of the request."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            write_out(to_json(schema()))
            ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Print the JSON Schema of the request.",
    )


request_option = click.option(
    "--request",
    "document",
    metavar="FILE|-",
    help="Read a request in YAML or JSON; - is standard input.",
)
limit_option = click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="At most N.")


def some_words(words: Sequence[str]) -> str:
    """Join the words of a search. Raises ``UsageError`` where none has a letter or a digit."""
    if not any(map(str.isalnum, query := " ".join(words))):
        raise click.UsageError("WORDS: say at least one word, with a letter or a digit.")
    return query


def common(ctx: click.Context) -> Common:
    """Return what the common options said; ``KR_FORMAT`` stands in for ``--format``."""
    given = ctx.ensure_object(Common)
    if given.format is None and (wanted := os.environ.get("KR_FORMAT")):
        if wanted not in _FORMATS:
            raise click.UsageError(f"KR_FORMAT: {wanted!r} is not one of {', '.join(_FORMATS)}.")
        given.format = cast("Format", wanted)
    return given


# --- what a command works on


def open_app(
    ctx: click.Context,
    *,
    progress: "Progress | None" = None,
    may_share: bool = False,
    server_seconds: float | None = None,
    only_reads: bool = False,
) -> "App":
    """Build the app that the common options ask for. Messages go to standard error from here on.

    ``may_share``: the server that ``KR_SERVER`` names can do it too, within ``server_seconds``. ``only_reads``: warn where
    there is no knowledge base, since an empty list may mean a mistyped folder.
    """
    from kr.wiring import open_app as build  # heavy

    given = common(ctx)
    configure_logging(verbose=given.verbose)
    progress = progress or TerminalProgress()
    if os.environ.get("KR_SERVER"):
        if may_share:
            from kr.remote import SharedApp  # heavy

            app = build(config=given.config, knowledge_base=given.kb, progress=progress, kind=SharedApp)
            if server_seconds is not None:
                cast("SharedApp", app).server_timeout = server_seconds
            return app
        warn(f"KR_SERVER is set; {ctx.command_path} works on the local knowledge base")
    app = build(config=given.config, knowledge_base=given.kb, progress=progress)
    if only_reads and not (app.store.exists() or app.settings.lessons_file.exists()):
        warn(f"there is no knowledge base at {app.settings.knowledge_base}: `kr init` makes one")
    return app


def is_person() -> bool:
    """Whether a person sits at both ends of the command: what an agent runs has a pipe at one of them.

    This stops carelessness, not intent.
    """
    ends = (sys.stdin, sys.stdout)
    return all(end is not None and end.isatty() for end in ends)


def read_request(source: str) -> bytes:
    """Read a request from a file or standard input (``-``), at most a byte too many. Raises ``RequestUnreadable``."""
    try:
        if source == "-":
            return b"" if sys.stdin is None else sys.stdin.buffer.read(LIMIT + 1)
        with Path(source).open("rb") as file:
            return file.read(LIMIT + 1)
    except OSError as error:
        raise RequestUnreadable(f"{source}: can't be read: {error.strerror}") from error


def answer_request(source: str, answer: "Callable[[bytes], Envelope]") -> "Envelope":
    """Answer the request in a file. One that can't be read has its envelope too; problems of the whole document name the file."""
    try:
        envelope = answer(read_request(source))
    except RequestUnreadable as error:
        return failure({}, Problem(type="validation_error", field="request", message=str(error)))
    if source != "-":
        envelope.errors[:] = [
            replace(it, message=f"{source}: {it.message}") if it.field == "request" else it
            for it in envelope.errors
        ]
    return envelope


# --- messages


class _Plain(logging.Formatter):
    """Writes a message as kr's others read, without what a terminal would obey: names of files may be hostile."""

    def format(self, record: logging.LogRecord) -> str:
        return strip_invisible(f"{record.levelname.lower()}: {record.getMessage()}")


def configure_logging(*, verbose: bool) -> None:
    """Send kr's messages to standard error, all of them or warnings alone; other libraries only warn."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain())
    logging.basicConfig(level=logging.WARNING, force=True, handlers=[handler])
    logging.getLogger("kr").setLevel(logging.INFO if verbose else logging.WARNING)
    # It logs an interrupt that strikes while a connection closes as an error with its traceback, and raises it as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)


def complain(message: str) -> None:
    """Print an error on standard error."""
    _print_message("error", message, "red")


def warn(message: str) -> None:
    """Print a warning on standard error."""
    _print_message("warning", message, "yellow")


def _print_message(kind: str, message: str, shade: str) -> None:
    label = click.style(f"{kind}:", fg=shade, bold=True)
    click.echo(f"{label} {strip_invisible(message)}", err=True, color=colour())


# --- output


def emit(value: Any, ctx: click.Context, view: View, *, is_line: bool = False) -> None:
    """Print ``value`` (nested plain data) in the format that is wanted; ``is_line``: the view on a pipe too, for a shell."""
    given = common(ctx)
    if wants_text(given) or (is_line and given.format is None):
        text = view(_visible(value))
    elif given.format == "json":
        text = to_json(value)
    else:
        from kr.yaml_io import write_yaml  # heavy: PyYAML, which JSON does without

        text = write_yaml(value)
    write_out(text.rstrip("\n"))


def wants_text(given: Common) -> bool:
    """Tell whether a person reads the answer: asked for, or at a terminal."""
    return given.format == "text" or (given.format is None and sys.stdout is not None and sys.stdout.isatty())


def to_json(value: Any) -> str:
    """Write nested plain data as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def write_out(text: str) -> None:
    """Write to standard output. A reader who has gone has seen enough; any other failure is ``KrError``."""
    if sys.stdout is None:  # closed by the caller: nobody wants to know
        return
    if isinstance(sys.stdout, io.TextIOWrapper):  # a C locale must not turn Chinese into a traceback
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()  # what the command did, and its exit status, stand
    except OSError as error:
        _forget_stdout()
        raise KrError(f"standard output can't be written: {error.strerror}") from error


def _forget_stdout() -> None:
    """Let go of standard output, so that what is still buffered does not raise at shutdown."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _visible(value: Any) -> Any:
    """Take out of all texts what would command the terminal, or show it in another order than it stands."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value


def at_most(limit: int | None, rows: list[Any]) -> list[Any]:
    """Cut a list that was asked for with one more than its limit, and say so on standard error."""
    if limit is not None and len(rows) > limit:
        click.echo(f"the first {limit} shown; --limit N shows more", err=True)
    return rows[:limit]


def is_dumb() -> bool:
    """Tell whether the terminal can't move its cursor."""
    return os.environ.get("TERM") == "dumb"


def colour() -> bool | None:
    """Tell click about colours: None lets it see whether a terminal reads; ``NO_COLOR`` and ``TERM=dumb`` forbid them."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def width() -> int:
    """Return the columns of the terminal. Where none reads, nothing is cut or wrapped: as wide as it takes."""
    if sys.stdout is None or not sys.stdout.isatty():
        return _WITHOUT_A_TERMINAL
    from shutil import get_terminal_size  # heavy: it imports three compressors

    return max(get_terminal_size((80, 24)).columns, 40)


def cell(value: object) -> str:
    """Write a value as one visible line; a dash for nothing."""
    if value is None or value == []:
        return "-"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), _LONGEST_CELL)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None) -> str:
    """Lay rows out under their columns, each cell one visible line that wraps; ``wide`` takes the room that is left."""
    from rich.console import Console  # heavy
    from rich.table import Table  # heavy
    from rich.text import Text  # heavy

    laid = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        laid.add_column(Text(column), overflow="fold", ratio=1 if column == wide else None)
    for row in rows:
        laid.add_row(*(Text(cell(value)) for value in row))
    console = Console(file=io.StringIO(), width=width(), color_system=None, force_terminal=False)
    with console.capture() as shown:
        console.print(laid)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def wrapped(label: str, text: str, *, indent: int) -> list[str]:
    """Return ``label`` and ``text`` as lines of at most the terminal's width; what wraps is indented."""
    from rich.cells import cell_len  # heavy
    from rich.console import Console  # heavy
    from rich.text import Text  # heavy

    columns = width()
    room = max(columns - max(indent, cell_len(label)), 20)
    lines = Text(one_line(text, _LONGEST)).wrap(Console(width=columns), room, overflow="fold")
    first, *more = [line.plain.rstrip() for line in lines] or [""]
    return [f"{label}{first}".rstrip(), *(" " * indent + line for line in more)]


def item_lines(title: str, *facts: str) -> list[str]:
    """Return the lines of one item of a list: its id or title, and what is known of it, indented."""
    return [*wrapped("", title, indent=0), *(line for it in facts for line in wrapped("    ", it, indent=4))]


def facts_view(value: dict[str, Any]) -> str:
    """Show a mapping, a line for each key; the text of a report comes last, as it stands. Tables in it are for programs."""
    facts = {name: it for name, it in value.items() if name not in {"report", "text"} and not _is_table(it)}
    columns = max(map(len, facts))
    lines: list[str] = []
    for name, it in facts.items():
        shown = ", ".join(map(str, it)) if isinstance(it, list) else "-" if it is None else str(it)
        lines += wrapped(f"{name.replace('_', ' '):<{columns}}  ", shown or "-", indent=columns + 2)
    text = value.get("report", value.get("text", ""))
    if text is None or text:
        lines += ["", text or "Its text is lost."]
    return "\n".join(lines)


def _is_table(value: object) -> bool:
    rows = value if isinstance(value, list) else [value]
    return any(isinstance(row, dict) for row in rows)


# --- progress


class TerminalProgress:
    """Says on standard error what a research waits for, where a person watches."""

    def __init__(self) -> None:
        self._line = ""

    def asking(self, source: str) -> None:
        """``source`` is being asked."""
        self._show(f"asking {source} …")

    def waiting(self) -> None:
        """Another process researches the same."""
        self._show("waiting for another process that researches the same …")

    def done(self) -> None:
        """Nothing is waited for any more."""
        self._show("")

    def _show(self, line: str) -> None:
        if line != self._line and sys.stderr.isatty() and not is_dumb():
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)
        self._line = line
