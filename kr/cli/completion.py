"""``kr completion``: the script for a shell, and what a key press, which waits for nobody, completes from the database (SPEC 6.5)."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from kr.cli.options import common, examples, with_context
from kr.cli.output import write_out
from kr.errors import KrError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kr.store.lookup import Completed


_KEY_PRESS = 0.2
"""Seconds that a key press waits for the database at most."""
SHELLS = ("bash", "zsh", "fish")
_MENDED = {
    # click's script for fish takes what stands between the first two commas: ids may hold more of them.
    'string split "," ': 'string split --max 1 "," ',
    # Its script for zsh, autoloaded, offers nothing the second time that Tab is pressed.
    "[[ $zsh_eval_context[-1] == loadautofunc ]]": '[[ $funcstack[1] == "_kr" ]]',
}


@click.command(
    "completion",
    epilog=examples(
        "kr completion bash > ~/.local/share/bash-completion/completions/kr",
        'kr completion zsh > "${fpath[1]}/_kr"',
        "kr completion fish > ~/.config/fish/completions/kr.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@with_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print the script that completes commands, options, framework names and entry ids in SHELL.

    Names and ids come from the knowledge base of the folder that you are in.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell}: kr has no completion for this shell.")
    source = kind(ctx.find_root().command, {}, "kr", "_KR_COMPLETE").source()
    if sys.stdout is not None:
        for found, better in _MENDED.items():
            source = source.replace(found, better)
        write_out(source)


Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _offering(what: "Completed", *, folded: bool = False) -> Complete:
    """Complete by what the database holds; ``folded``: one name for each that is equal when folded."""

    def complete(
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG001 - click's signature
        incomplete: str,
    ) -> "list[CompletionItem]":
        entry_id = ctx.params.get("entry_id")
        named = {"entry_id": entry_id} if isinstance(entry_id, str) else {}
        names = _looked_up(ctx, what, **named)
        return _offered(_once(names) if folded else names, incomplete)

    return complete


complete_framework = _offering("frameworks", folded=True)
complete_archived_framework = _offering("archived frameworks", folded=True)
complete_entry_id = _offering("entry ids")
complete_archived_id = _offering("archived ids")
complete_revision = _offering("revisions")


def complete_phase(
    ctx: click.Context,  # noqa: ARG001 - click's signature
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    from kr.models import PHASES

    return _offered(PHASES, incomplete)


def _once(names: Iterable[str]) -> Iterable[str]:
    from kr.slugs import fold

    return {fold(name): name for name in names}.values()


def _looked_up(ctx: click.Context, what: "Completed", **parameters: str) -> list[str]:
    from kr.settings import load_settings
    from kr.store import lookup
    from kr.store.engine import Store

    said = common(ctx)
    try:
        settings = load_settings(
            config=said.config,
            knowledge_base=said.kb,
            environ=dict(os.environ),
            cwd=os.getcwd(),
        )
        with Store(settings.database_url, settings.knowledge_base, timeout=_KEY_PRESS) as store:
            if not store.exists():
                return []
            with store.read() as tx:
                return lookup.complete(tx, what, **parameters)
    except (KrError, OSError):
        # A wrong configuration or a database that can't be read is told by the command itself, not by Tab.
        return []


def _offered(names: Iterable[str], incomplete: str) -> "list[CompletionItem]":
    """Keep what begins as typed, in any case; names that a shell would break at a line end are left out."""
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(name)
        for name in names
        if name.casefold().startswith(incomplete.casefold()) and name.isprintable()
    ]
