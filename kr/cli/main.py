"""The ``kr`` program: its groups of commands, and what every way out of it has in common."""

import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import click

from kr import __version__
from kr.cli.common import Group
from kr.errors import KrError
from kr.text import strip_invisible

logger = logging.getLogger(__name__)

GROUPS = {
    "Ask": (
        ("research", "research:command", "Answer a question from the cache, or research it once."),
        ("search", "research:search", "Find words in reports, topics, questions and lessons."),
        ("explain", "research:explain", "Show why the cache answers a question, or does not."),
    ),
    "Give back": (
        ("save", "research:save", "Keep what you found out and proved, for whoever asks next."),
        ("rate", "research:rate", "Say whether a report worked, or is wrong."),
        ("review", "research:review", "Show what waits for a person, and let it through or drop it."),
    ),
    "Learn": (
        ("lessons", "lessons:command", "Inject, record, search and edit lessons of earlier failures."),
        ("hook", "lessons:hook", "Answer a Claude Code hook: give lessons, record failures."),
    ),
    "Serve agents": (
        ("mcp", "maintenance:mcp", "Serve an agent over MCP, on standard input and output."),
        ("serve", "maintenance:serve", "Serve a fleet over HTTP and MCP, and people with a page."),
    ),
    "Look after the knowledge": (
        ("entries", "entries:command", "List, show, remove and restore entries."),
        ("archive", "entries:archive", "List and show what left the index, and bring it back."),
        ("versions", "entries:versions", "List the frameworks and versions that a project uses."),
        ("warm", "entries:warm", "List, and research, what the cache lacks for a project."),
        ("export-yaml", "entries:export_yaml", "Write index and archive as YAML files."),
        ("import-yaml", "entries:import_yaml", "Import an existing file-based knowledge base."),
    ),
    "Run workflows": (
        ("workflow", "workflow:command", "Start, run, approve and report workflows made from templates."),
    ),
    "Set up and look after": (
        ("init", "maintenance:init", "Write kr.yaml and create the knowledge base."),
        ("trust", "maintenance:trust", "Trust a project's kr.yaml: allow what it starts, expands and calls."),
        ("stats", "maintenance:stats", "Count what the cache saves, costs and holds."),
        ("doctor", "maintenance:doctor", "Find what is wrong with the knowledge base, and repair it."),
        ("db", "maintenance:db", "Find, check, upgrade, back up and restore the database."),
        ("completion", "maintenance:completion", "Print the script that completes kr in a shell."),
    ),
}
"""The commands by group: name, module and name there, summary."""

_MODULES = {name: where for rows in GROUPS.values() for name, where, _ in rows}
_INSTEAD = {
    "add": "'save' or 'lessons add'",
    "ask": "'research'",
    "inject": "'lessons inject'",
    "list": "'entries list' or 'lessons list'",
    "record": "'lessons record'",
    "remove": "'entries remove'",
    "show": "'entries show'",
}
"""What is meant by a name that is no command and like none."""


class LazyGroup(Group):
    """Groups the commands in the help, and imports one only when it is run."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name in _INSTEAD and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command '{cmd_name}'. Did you mean {_INSTEAD[cmd_name]}?", ctx)
        if cmd_name not in _MODULES:
            return None
        module, _, name = _MODULES[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"kr.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the commands, group by group."""
        width = max(map(len, _MODULES))
        for group, rows in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, _, summary in rows])


_EPILOG = """\b
Examples:
  kr research click "How do I ask for a password without showing it?"
  kr research --request - --format json < request.yaml
  kr init
"""


@click.group(
    cls=LazyGroup,
    commands=dict.fromkeys(_MODULES),  # their names, of which a mistyped one is answered with the nearest
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kr")
def cli() -> None:
    """Answer the questions of coding agents: each is researched once, then answered from the cache for all.

    Output is YAML when standard output is not a terminal, a readable view when it is; --format decides.
    Logs and progress go to standard error. Exit status: 0, 1 for a failure, 2 for a wrong command line.
    """


class _Labelled(logging.Formatter):
    """Begins a message with its level, and takes out what a terminal would obey: names of files may be hostile."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {strip_invisible(record.getMessage())}"


def configure_logging() -> None:
    """Send warnings to standard error, and with --verbose what kr does."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Labelled())
    logging.basicConfig(level=logging.WARNING, force=True, handlers=[handler])
    logging.getLogger("kr").setLevel(logging.WARNING)
    # It logs an interrupt that strikes while a connection closes as an error with its traceback, and raises it as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)


def complain(message: str) -> None:
    """Print an error on standard error."""
    logger.error("%s", message)


class Terminated(BaseException):
    """SIGTERM arrived. Like KeyboardInterrupt it is no Exception, so that nothing but clean-up catches it."""


class _Signals:
    """SIGINT and SIGTERM as exceptions in the main thread.

    The first one is kept: a finalizer may swallow the exception, and the exit status names the signal all the same. A
    second one raises nothing, since the clean-up of the first is under way.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # a background job's shell has it ignored
                signal.signal(number, self._raise)

    def _raise(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status: 128 and the signal's number after a signal."""
    given = sys.argv[1:] if arguments is None else arguments
    # What a locale that knows ASCII alone could not decode is UTF-8 all the same.
    given = [os.fsencode(argument).decode(errors="replace") for argument in given]
    configure_logging()
    signals = _Signals()
    try:
        status = _run(given)
    except (KeyboardInterrupt, Terminated):
        status = 0
    except Exception as error:  # the last line of defence
        if signals.received is None:
            if {"--verbose", "-v"} & set(given):
                raise
            kind = type(error).__name__
            complain(f"unexpected {kind}: {error}\nThis is a bug in kr; --verbose shows where.")
        status = 1
    return status if signals.received is None else 128 + signals.received


def _run(arguments: Sequence[str]) -> int:
    try:
        status: Any = cli.main(args=arguments, prog_name="kr", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
            click.echo(f"Try '{error.ctx.command_path} --help' for help.\n", err=True)
        complain(error.format_message())
        is_hook = list(arguments[:1]) == ["hook"]  # which stops nobody: status 2 would block the agent
        return 0 if is_hook else error.exit_code
    except click.Abort:
        return 128 + signal.SIGINT
    except KrError as error:
        complain(str(error))
        return error.exit_status
    except SystemExit:  # click's answer to a closed pipe: who read the help has seen enough of it
        return 0
    except OSError as error:
        complain(f"{error.filename or 'standard output'}: {error.strerror}")
        return 1
    return status if isinstance(status, int) else 0
