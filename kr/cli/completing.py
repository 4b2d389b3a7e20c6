"""What the shell completes from the database: framework names, entry ids and revisions (SPEC 6.5).

A key press: it creates nothing, waits for nobody, and says nothing when there is nothing to say.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kr.cli.options import common
from kr.errors import KrError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kr.store.read_only import Completed


def complete_framework(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    """Offer the frameworks of the index, one for each that is equal when folded."""
    return _offered(_once(_looked_up(ctx, "frameworks")), incomplete)


def complete_archived_framework(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    """Offer the frameworks of the archive, one for each that is equal when folded."""
    return _offered(_once(_looked_up(ctx, "archived frameworks")), incomplete)


def complete_entry_id(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    """Offer the ids of live entries, the last used first."""
    return _offered(_looked_up(ctx, "entry ids"), incomplete)


def complete_archived_id(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    """Offer the ids in the archive, the last archived first."""
    return _offered(_looked_up(ctx, "archived ids"), incomplete)


def complete_revision(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    """Offer the revisions of the entry whose id was typed before, the last first."""
    entry_id = ctx.params.get("entry_id")
    if not isinstance(entry_id, str):
        return []
    return _offered(_looked_up(ctx, "revisions", entry_id=entry_id), incomplete)


def complete_phase(
    ctx: click.Context,  # noqa: ARG001 - click's signature
    param: click.Parameter,  # noqa: ARG001 - click's signature
    incomplete: str,
) -> "list[CompletionItem]":
    """Offer the phases of a story."""
    from kr.values import PHASES

    return _offered(PHASES, incomplete)


def _once(names: Iterable[str]) -> Iterable[str]:
    from kr.naming import fold

    return {fold(name): name for name in names}.values()


def _looked_up(ctx: click.Context, what: "Completed", **parameters: str) -> list[str]:
    import os

    from kr.settings import load_settings
    from kr.store.store import Store

    said = common(ctx)
    try:
        settings = load_settings(
            config=said.config,
            knowledge_base=said.kb,
            environ=dict(os.environ),
            cwd=Path.cwd(),
            may_recall=True,
        )
        return Store(settings.database_url, settings.knowledge_base).complete(what, **parameters)
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
