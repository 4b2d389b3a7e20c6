"""Options that every command takes, before and after its name (SPEC 6)."""

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import click

from kr.cli.output import warn
from kr.errors import RequestUnreadable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kr.app import App
    from kr.cli.completion import Complete
    from kr.envelopes import Envelope
    from kr.research.progress import Progress


class Typed(click.ParamType[str]):
    """Text from the command line: UTF-8 whatever the locale says, which in a C locale knows ASCII alone."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 - click's signature
        text = str(value)
        return text if text.isascii() else os.fsencode(text).decode(errors="replace")


def read_request(source: str) -> bytes:
    """Read a request from a file or standard input (``-``): at most a byte too many. Raises ``RequestUnreadable``."""
    from kr.fields import LIMIT  # the help, and a key press, need no reader

    try:
        if source == "-":
            return b"" if sys.stdin is None else sys.stdin.buffer.read(LIMIT + 1)
        with open(source, "rb") as file:  # noqa: PTH123 - pathlib is not loaded for a hit
            return file.read(LIMIT + 1)
    except OSError as error:
        raise RequestUnreadable(f"{source}: can't be read: {error.strerror}") from error


def is_person() -> bool:
    """Whether a person sits at both ends of the command: what an agent runs has a pipe at one of them.

    This stops carelessness, not intent.
    """
    ends = (sys.stdin, sys.stdout)
    return all(end is not None and end.isatty() for end in ends)


def answer_request(source: str, answer: "Callable[[bytes], Envelope]") -> "Envelope":
    """Answer the request in a file, which problems of the whole document name; one that can't be read has its envelope too (SPEC 3.1)."""
    try:
        envelope = answer(read_request(source))
    except RequestUnreadable as error:
        from kr.envelopes import Problem, failure

        return failure({}, Problem(type="validation_error", field="request", message=str(error)))
    if source != "-":
        envelope.errors[:] = [
            replace(it, message=f"{source}: {it.message}") if it.field == "request" else it
            for it in envelope.errors
        ]
    return envelope


class Group(click.Group):
    """A group whose help says the first sentence of each command's, whole."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, _first_sentence(it.help or "")) for name, it in found if it is not None]
            )


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


class File(click.ParamType[str]):
    """The name of a file or folder, as it was typed. click's own types ask gettext at import, which loads ``locale``."""

    name = "path"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - the same
        incomplete: str,
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def completes(name: str) -> "Complete":
    """Complete by the function ``complete_{name}`` of ``kr.cli.completion``, which is imported at a key press."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from kr.cli import completion

        found: list[CompletionItem] = getattr(completion, f"complete_{name}")(ctx, param, incomplete)
        return found

    return complete


TEXT = Typed()
FILE = File()
MOST = 1_000_000
"""The largest number that counts of rows and calls may be: no more can be meant."""

request_option = click.option(
    "--request",
    "document",
    type=FILE,
    metavar="FILE|-",
    help="Read a request (YAML or JSON) from a file, or from standard input.",
)
Format = Literal["yaml", "json", "text"]
_FORMATS = get_args(Format)
F = TypeVar("F", bound=Callable[..., Any])


class Common:
    """What the common options said so far; a value after the command wins over one before it."""

    def __init__(
        self,
        *,
        config: str | None = None,
        kb: str | None = None,
        format: Format | None = None,  # noqa: A002 - the option's name
        verbose: bool = False,
    ) -> None:
        self.config = config
        self.kb = kb
        self.format = format
        self.verbose = verbose


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    common = ctx.ensure_object(Common)
    if value is not None and value is not False:
        setattr(common, str(param.name), value)


def shows(*names: str, text: Callable[[click.Context], str], help: str) -> Callable[[F], F]:  # noqa: A002 - click's name
    """Make an option that prints something and ends; click's own would load ``locale`` for a hit (see ``File``)."""

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
        if value and not ctx.resilient_parsing:
            click.echo(text(ctx), color=ctx.color)
            ctx.exit()

    return click.option(*names, is_flag=True, is_eager=True, expose_value=False, callback=show, help=help)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Make one decorator of several parameters of a command, in the order of its help."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


_add_common = together(
    click.option(
        "--config",
        type=FILE,
        metavar="FILE",
        help="Configuration file. Default: KR_CONFIG, or the nearest kr.yaml or config.yaml upwards.",
    ),
    click.option("--kb", type=FILE, metavar="DIR", help="Knowledge base folder."),
    click.option(
        "--format",
        type=click.Choice(_FORMATS),
        help="Output format. Default: KR_FORMAT, else text at a terminal, else YAML.",
    ),
    click.option("--verbose", "-v", is_flag=True, help="Report on standard error what is being done."),
    shows("-h", "--help", text=click.Context.get_help, help="Show this message and exit."),
)


def examples(*lines: str) -> str:
    """Make the end of a help, which click leaves as it stands."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def schema_option(name: str) -> Callable[[F], F]:
    """Add --schema, which prints the JSON Schema of the request: the function ``name`` of ``kr.server.schemas``."""

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
        if not value or ctx.resilient_parsing:
            return
        from kr.cli.output import to_json, write_out
        from kr.server import schemas

        write_out(to_json(getattr(schemas, name)()))
        ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Print the JSON Schema of the request.",
    )


_COMMON = frozenset(vars(Common()))


def common_options(function: F) -> F:
    """Add --config, --kb, --format and --verbose; their values go to the context's ``Common``."""
    function = _add_common(function)
    for parameter in getattr(function, "__click_params__", []):
        if parameter.name in _COMMON:
            parameter.callback, parameter.expose_value = _remember, False
    return function


def with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the common options, and hand the context over. A command that returns nothing ends with status 0."""
    return common_options(click.pass_context(function))


def common(ctx: click.Context) -> Common:
    """Give what the common options of a command, and of ``kr`` before it, said together; ``KR_FORMAT`` stands in."""
    said = ctx.ensure_object(Common)
    if said.format is None and (wanted := os.environ.get("KR_FORMAT")):
        if wanted not in _FORMATS:
            raise click.UsageError(f"KR_FORMAT: {wanted!r} is not one of {', '.join(_FORMATS)}.")
        said.format = cast("Format", wanted)
    return said


def open_app(
    ctx: click.Context,
    *,
    progress: "Progress | None" = None,
    may_share: bool = False,
    hurry: float | None = None,
    only_reads: bool = False,
) -> "App":
    """Build the app that the common options ask for; logging goes to standard error from here on.

    ``may_share``: the server of ``KR_SERVER`` does it as well (SPEC 8), which has ``hurry`` seconds.
    ``only_reads``: it says so where nothing is, as an empty list may mean a mistyped folder.
    """
    from kr.cli.output import LineProgress
    from kr.wiring import open_app as build

    said = common(ctx)
    progress = progress or LineProgress()
    configure_logging(verbose=said.verbose)
    is_shared = bool(os.environ.get("KR_SERVER"))
    if is_shared:
        if may_share:
            from kr.remote import SharedApp

            app = build(config=said.config, knowledge_base=said.kb, progress=progress, kind=SharedApp)
            cast("SharedApp", app).hurry = hurry
            return app
        warn(f"KR_SERVER is set; {ctx.command_path} works on the local knowledge base")
    app = build(config=said.config, knowledge_base=said.kb, progress=progress)
    if only_reads:
        _tell_where_nothing_is(app)
    return app


def _tell_where_nothing_is(app: "App") -> None:
    from kr.transfer import INDEX

    base = app.settings.knowledge_base
    if not (app.store.exists() or app.lessons_file.exists() or (base / INDEX).exists()):
        warn(f"there is no knowledge base at {base}: `kr init` makes one")


def tell_nearest(framework: str, known: set[str]) -> None:
    from kr.slugs import did_you_mean

    if framework not in known and (hint := did_you_mean(framework, known)):
        warn(hint)


def start_logging(ctx: click.Context) -> None:
    configure_logging(verbose=common(ctx).verbose)


def configure_logging(*, verbose: bool) -> None:
    """Send kr's messages to standard error, all of them or warnings alone; other libraries only warn."""
    for level in (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        logging.addLevelName(level, logging.getLevelName(level).lower())  # as kr's other messages read
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING, force=True)
    logging.getLogger("kr").setLevel(logging.INFO if verbose else logging.WARNING)
    # It logs an interrupt that strikes while a connection closes as an error with its traceback, and raises it as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
