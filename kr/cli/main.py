"""The ``kr`` program: its groups of commands, and what every way out of it has in common."""

import importlib
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, MappingProxyType
from typing import Any

import click

from kr import __version__
from kr.cli.options import common_options, shows
from kr.cli.output import colour, complain
from kr.errors import KrError, NotInstalled


@dataclass(frozen=True, slots=True)
class Listed:
    """A command as the help lists it, without importing it. ``where``: its module in ``kr.cli``, and its name there."""

    group: str
    name: str
    where: str
    summary: str

    def load(self) -> click.Command:
        module, _, name = self.where.partition(":")
        command: click.Command = getattr(importlib.import_module(f"kr.cli.{module}"), name)
        return command


_GROUPS = {
    "Ask": (
        ("research", "research:command", "Answer a question from the cache, or research it once."),
        ("search", "entries:search_everything", "Find words in reports, topics, questions and lessons."),
        ("explain", "knowledge:explain", "Show why the cache answers a question, or does not."),
    ),
    "Give back": (
        ("save", "findings:save", "Keep what you found out and proved, for whoever asks next."),
        ("rate", "findings:rate", "Say whether a report worked, or is wrong."),
        ("review", "findings:review", "Show what waits for a person, and let it through or drop it."),
    ),
    "Learn": (
        ("lessons", "lessons:command", "Inject, record, search and edit lessons of earlier failures."),
        ("hook", "hook:command", "Answer a Claude Code hook: give lessons, record failures."),
    ),
    "Serve agents": (
        ("mcp", "serve:mcp", "Serve an agent over MCP, on standard input and output."),
        ("serve", "serve:serve", "Serve a fleet over HTTP and MCP, and people with a page."),
    ),
    "Look after the knowledge": (
        ("entries", "entries:command", "List, show, search, remove and restore entries."),
        ("archive", "entries:archive", "List and show what left the index, and bring it back."),
        ("versions", "knowledge:versions", "List the frameworks and versions that a project uses."),
        ("warm", "knowledge:warm", "List, and research, what the cache lacks for a project."),
        ("export-yaml", "knowledge:export_yaml", "Write index and archive as YAML files."),
        ("import-yaml", "knowledge:import_yaml", "Import an existing file-based knowledge base."),
    ),
    "Run workflows": (
        ("workflow", "workflow:command", "Start, run, approve and report workflows made from templates."),
    ),
    "Set up and look after": (
        ("init", "init:init", "Write kr.yaml and create the knowledge base."),
        ("trust", "trust:trust", "Let what a project's kr.yaml starts, expands and calls take effect."),
        ("stats", "stats:stats", "Count what the cache saves, costs and holds."),
        ("doctor", "maintenance:doctor", "Find what is wrong with the knowledge base, and repair it."),
        ("db", "maintenance:db", "Find, check, upgrade, back up and restore the database."),
        ("completion", "completion:command", "Print the script that completes kr in a shell."),
    ),
}
COMMANDS = tuple(Listed(group, *row) for group, rows in _GROUPS.items() for row in rows)


class Commands(click.Group):
    """Groups the commands in the help, and imports one only when it is run: start-up time is a feature."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [listed.name for listed in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        return next((listed.load() for listed in COMMANDS if listed.name == cmd_name), None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            names = self.list_commands(ctx)
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        width = max(len(listed.name) for listed in COMMANDS)
        for group, listed in _GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, _, summary in listed])


_EPILOG = """\b
Examples:
  kr research click "How do I ask for a password without showing it?"
  kr research --request - --format json < request.yaml
  kr init
"""


@click.group(
    cls=Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@shows("--version", text=lambda _: f"kr, version {__version__}", help="Show the version and exit.")
@common_options
def cli() -> None:
    """Answer the questions of coding agents: each is researched once, then answered from the cache for all.

    Output is YAML when standard output is not a terminal, a readable view when it is; --format decides.
    Logs and progress go to standard error. Exit status: 0, 1 for a failure, 2 for a wrong command line.
    """


class Terminated(BaseException):
    """SIGTERM arrived. Like KeyboardInterrupt it is no Exception, so that nothing but clean-up catches it."""


class _Signals:
    """SIGINT and SIGTERM as exceptions in the main thread.

    What arrived is kept (``received``): a finalizer or a native module may swallow the exception, or make another of
    it, and the exit status tells the signal all the same.
    """

    _EXCEPTIONS: Mapping[int, type[BaseException]] = MappingProxyType(
        {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}
    )
    _ONE_EVENT_SECONDS = 1.0

    def __init__(self) -> None:
        self.received: int | None = None
        self._at = 0.0

    def install(self) -> None:
        for number in self._EXCEPTIONS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # a background job's shell has it ignored
                signal.signal(number, self._raise)

    def _raise(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is not None and now - self._at < self._ONE_EVENT_SECONDS:
            return  # sent to the process and to its group: the clean-up is under way
        self.received, self._at = number, now
        raise self._EXCEPTIONS[number]


def main(arguments: Sequence[str] | None = None) -> int:
    signals = _Signals()
    try:
        signals.install()
        status = _run(arguments)
    except (KeyboardInterrupt, Terminated):
        status = 0  # told below
    except Exception as error:  # the last line of defence
        if signals.received is None:
            if {"--verbose", "-v"} & set(sys.argv[1:] if arguments is None else arguments):
                raise
            complain(
                f"unexpected {type(error).__name__}: {error}\nThis is a bug in kr; --verbose shows where."
            )
        status = 1
    return status if signals.received is None else 128 + signals.received


_ONLY_SHOWN = frozenset({"--help", "-h", "--version"})


def _run(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    stdout = sys.stdout
    try:
        status: Any = cli.main(args=arguments, prog_name="kr", standalone_mode=False, color=colour())
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except SystemExit:
        # So click leaves when a pipe is closed, standard output replaced: who read a help has seen enough of it.
        if sys.stdout is not stdout and not _ONLY_SHOWN.isdisjoint(given):
            return 0
        raise
    except click.Abort:
        return 128 + signal.SIGINT
    except KrError as error:
        complain(f"{error}{_remedy(error)}")
        return error.exit_status
    except OSError as error:
        complain(f"{error.filename or 'standard output'}: {error.strerror}")
        return 1
    return status if isinstance(status, int) else 0


def _remedy(error: KrError) -> str:
    if not isinstance(error, NotInstalled):
        return ""
    from kr.extras import how_to_install

    return f". This installs it: {how_to_install(error.extra)}"


def _show_usage(error: click.ClickException) -> None:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.\n", err=True)
    complain(error.format_message())
