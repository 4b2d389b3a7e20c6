"""``kr completion``: the script that completes commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from kr.cli.common import kr_command, write_out

SHELLS = ("bash", "zsh", "fish")


@kr_command(
    "completion",
    "kr completion bash > ~/.local/share/bash-completion/completions/kr",
    'kr completion zsh > "${fpath[1]}/_kr"',
    "kr completion fish > ~/.config/fish/completions/kr.fish",
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(ctx: click.Context, /, shell: str) -> None:
    """Print the script that completes commands and options in SHELL."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell}: kr has no completion for this shell.")
    write_out(kind(ctx.find_root().command, {}, "kr", "_KR_COMPLETE").source())
