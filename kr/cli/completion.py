"""``kr completion``: the script that makes a shell complete kr."""

import sys

import click

from kr.cli.options import examples, with_context
from kr.cli.render import write_out

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
