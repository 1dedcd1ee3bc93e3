"""`penstock completion`: what a shell needs to complete our commands."""

from __future__ import annotations

import click

from penstock.cli.options import examples

WHERE = {
    "bash": 'eval "$(penstock completion bash)"  in ~/.bashrc',
    "zsh": 'eval "$(penstock completion zsh)"  in ~/.zshrc',
    "fish": "penstock completion fish > ~/.config/fish/completions/penstock.fish",
}


@click.command(epilog=examples("penstock completion bash"))
@click.argument("shell", type=click.Choice(list(WHERE)))
def completion(shell: str) -> None:
    """Print the completion script of a shell; standard error says where to put it."""
    from click.shell_completion import get_completion_class

    from penstock.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None, "click knows all three"
    click.echo(found(cli, {}, "penstock", "_PENSTOCK_COMPLETE").source())
    click.echo(f"use it with: {WHERE[shell]}", err=True)
