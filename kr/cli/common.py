"""What every command shares: the common options, the app that they ask for, and how its value is printed.

A command returns a value, and ``emit`` prints it: YAML or JSON for a program on a pipe, a readable view for a person at
a terminal. Messages and progress go to standard error.
"""

import io
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kr.cli.readable import envelope_view, readable
from kr.errors import KrError
from kr.models import to_plain
from kr.requests import LIMIT
from kr.text import strip_invisible

if TYPE_CHECKING:
    from kr.app import App
    from kr.research.service import Progress

logger = logging.getLogger(__name__)

View = Callable[[Any], list[str]]
"""Makes the lines that a person sees."""
F = TypeVar("F", bound=Callable[..., Any])

_FORMATS = ("yaml", "json", "text")


# --- options


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep a common option in the context's object; a value after the command wins over one before it."""
    if value == "":
        raise click.BadParameter("must not be empty.", ctx=ctx, param=param)
    if value is not None and value is not False:
        ctx.ensure_object(dict)[param.name] = value


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
"""What every command takes; see ``options``."""


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
    name: str, *examples: str, group: click.Group | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function that takes the context first; its ``examples`` end its help."""
    make = click.command if group is None else group.command
    ending = {"epilog": _shown_examples(examples), **settings}

    def add(function: Callable[..., Any]) -> click.Command:
        made: click.Command = make(name, cls=Command, **ending)(click.pass_context(function))
        return made

    return add


def operation(
    name: str, *examples: str, may_share: bool = False, only_reads: bool = False, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function that takes the app and returns what is printed; see ``open_app`` and ``emit``."""

    def add(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def run(ctx: click.Context, /, **given: Any) -> int:
            with open_app(ctx, may_share=may_share, only_reads=only_reads) as app:
                return emit(function(app, **given), ctx)

        return kr_command(name, *examples, **settings)(run)

    return add


def kr_group(name: str, *examples: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Group]:
    """Make a group of commands; its ``examples`` end its help."""
    return click.group(name, cls=Group, epilog=_shown_examples(examples), **settings)


def _shown_examples(lines: Sequence[str]) -> str:
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def request_option(schema: Callable[[], dict[str, Any]]) -> Callable[[F], F]:
    """Add --request, and --schema, which prints the JSON Schema of the request."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            write_out(to_json(schema()))
            ctx.exit()

    shows: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": show}
    return together(
        click.option("--request", "document", metavar="FILE|-", help="Read a request in YAML or JSON."),
        click.option("--schema", help="Print the JSON Schema of the request.", is_flag=True, **shows),
    )


framework_option = click.option("--framework", help="Only what is about this framework.")
identity_options = together(
    click.option("--story-key", help="The story that is worked on, such as 3-1. Default: 0-0."),
    click.option("--session-id", help="The session that the story belongs to. Default: a new one."),
)
question_options = together(
    click.argument("framework", required=False),
    click.argument("question", required=False),
    click.option("--framework-version", help="Version in use. Default: the project's."),
    click.option("--topic", help="What it is about, in a few words. Default: from the question."),
    click.option("--tag", "tags", multiple=True, help="A tag to match by; may be repeated."),
)


def limit_option(default: int | None = None) -> Callable[[F], F]:
    """Add --limit; ``default`` None is no limit. The upper bound is one that every database takes."""
    count = click.IntRange(1, 1_000_000)
    return click.option("--limit", type=count, default=default, show_default=True, help="At most.")


def options(ctx: click.Context) -> dict[str, Any]:
    """Return the common options that were given: ``config``, ``kb``, ``format``, ``verbose``; ``KR_FORMAT`` stands in for ``--format``."""
    given = ctx.ensure_object(dict)
    if "format" not in given and (wanted := os.environ.get("KR_FORMAT")):
        if wanted not in _FORMATS:
            raise click.UsageError(f"KR_FORMAT: {wanted!r} is not one of {', '.join(_FORMATS)}.")
        given["format"] = wanted
    return given


# --- what a command works on


def open_app(
    ctx: click.Context,
    *,
    progress: "Progress | None" = None,
    may_share: bool = False,
    only_reads: bool = False,
) -> "App":
    """Build the app that the common options ask for.

    ``may_share``: the server that ``KR_SERVER`` names can do it too. ``only_reads``: warn where there is no knowledge
    base, since an empty list may mean a mistyped folder.
    """
    from kr.app import App  # heavy

    given, kind = options(ctx), App
    if "verbose" in given:
        logging.getLogger("kr").setLevel(logging.INFO)
    if is_shared := may_share and bool(os.environ.get("KR_SERVER")):
        from kr.remote import SharedApp  # heavy

        kind = SharedApp
    elif os.environ.get("KR_SERVER"):
        logger.warning("KR_SERVER is set; %s works on the local knowledge base", ctx.command_path)
    app = kind.open(given.get("config"), given.get("kb"), progress=progress or show_progress)
    if only_reads and not is_shared and not (app.store.exists() or app.settings.lessons_file.exists()):
        place = app.settings.knowledge_base
        logger.warning("there is no knowledge base at %s: `kr init` makes one", place)
    return app


def is_person() -> bool:
    """Whether a person sits at both ends of the command: what an agent runs has a pipe at one of them.

    This stops carelessness, not intent.
    """
    ends = (sys.stdin, sys.stdout)
    return all(end is not None and end.isatty() for end in ends)


def require_person(command: str) -> None:
    """Raise ``KrError`` where no person is: one is to read what was held back."""
    if not is_person():
        raise KrError(f"{command} works at a terminal alone: a person is to read what was held back")


def read_request(source: str) -> bytes:
    """Read a request from a file or standard input (``-``), at most a byte too many. Raises ``KrError``."""
    try:
        if source == "-":
            return b"" if sys.stdin is None else sys.stdin.buffer.read(LIMIT + 1)
        with Path(source).open("rb") as file:
            return file.read(LIMIT + 1)
    except OSError as error:
        raise KrError(f"{source}: can't be read: {error.strerror}") from error


def given_request(given: dict[str, Any]) -> bytes | dict[str, Any]:
    """Return the request: the ``document`` that is named, or what was typed. Raises ``UsageError`` for a mix, and for half of one."""
    given["tags"] = tuple(filter(str.strip, given["tags"]))
    typed = {name: it for name, it in given.items() if it is not None and it != () and name != "document"}
    if given["document"] is None:
        if not {"framework", "question"} <= typed.keys():
            raise click.UsageError('Give FRAMEWORK and QUESTION (click "How do I …?"), or --request FILE.')
        return typed
    if typed:
        raise click.UsageError(f"{', '.join(typed)} cannot stand beside --request: put it into the document.")
    return read_request(given["document"])


# --- output


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a command gives, and how a person sees it: by a ``view`` of its own, of rows these ``columns`` alone, a ``hint`` below.

    ``status`` is the exit status; None: 1 for a failure. ``is_line``: the view on a pipe too, for a shell.
    """

    value: Any
    view: View | None = None
    columns: str = ""
    hint: str = ""
    status: int | None = None
    is_line: bool = False


def emit(given: Any, ctx: click.Context) -> int:
    """Print an output, a record or nested plain data in the format that is wanted; return the exit status."""
    output = given if isinstance(given, Output) else Output(value=given)
    if is_dataclass(output.value):
        output = replace(output, value=to_plain(output.value))
    value = output.value
    if wants_text() or (output.is_line and "format" not in options(ctx)):
        text = shown(output)
    elif options(ctx).get("format") == "json":
        text = to_json(value)
    else:
        from kr.yaml_io import write_yaml  # heavy: PyYAML, which JSON does without

        text = write_yaml(value)
    write_out(text.rstrip("\n"))
    is_failure = isinstance(value, dict) and value.get("status") == "failure"
    return int(is_failure) if output.status is None else output.status


def shown(output: Output) -> str:
    """Make the readable view of plain data: every key, where the output does not say otherwise."""
    value, names = output.value, output.columns.split()
    rows = [{name: row[name] for name in names} for row in value] if names else value
    plain: View = envelope_view if isinstance(value, dict) and "results" in value else readable
    lines = (output.view or plain)(rows) or ["none"]
    # Texts of others could command the terminal, or show in another order than they stand.
    return strip_invisible("\n".join([*lines, *([output.hint] if output.hint else [])]))


def wants_text() -> bool:
    """Tell whether a person reads the answer: asked for, or at a terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return options(click.get_current_context()).get("format", "text" if is_terminal else None) == "text"


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
    except OSError as error:
        # What is still buffered must not raise at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else what the command did, and its exit status, stand
            raise KrError(f"standard output can't be written: {error.strerror}") from error


# --- progress


def show_progress(step: str) -> None:
    """Say on standard error what a research waits for, where a person watches."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        click.echo(f"\r\x1b[K{f'{step} …' if step else ''}", err=True, nl=False)
