"""``fleet completion``: the script with which a shell completes ``fleet``, ``roles`` and ``roundtable``."""

from __future__ import annotations

import click

__all__ = ["command"]

_PROGRAMS = ("fleet", "roles", "roundtable")
#: Where each shell reads it at its start.
_INSTALLED = {
    "bash": "fleet completion bash > ~/.local/share/bash-completion/completions/fleet",
    "zsh": "fleet completion zsh >> ~/.zshrc   (after compinit)",
    "fish": "fleet completion fish > ~/.config/fish/completions/fleet.fish",
}


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Example: eval "$(fleet completion bash)"',
)
@click.argument("shell", type=click.Choice(list(_INSTALLED)))
def command(shell: str) -> None:
    """Print the script that makes a shell complete commands, options and names of blueprints.

    Evaluate it at the start of the shell, or write it to a file that the shell reads. bash has to be 4.4 or later.
    """
    from click.shell_completion import get_completion_class

    from fleet.cli.parser import group

    complete = get_completion_class(shell)
    if complete is None:  # the choices are click's own
        raise click.UsageError(f"no completion for {shell}")
    click.echo(f"# To keep it: {_INSTALLED[shell]}")
    for program in _PROGRAMS:
        script = complete(group, {}, program, f"_{program.upper()}_COMPLETE")
        # Not `source()`: it starts bash to see how old it is.
        click.echo(script.source_template % script.source_vars())
