"""Prints the reference page of the command line from the commands themselves: `python -m penstock.cli.reference`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from penstock.cli.main import cli
from penstock.cli.options import examples_of

HEAD = """\
# Command line

This page is printed from the commands by `python -m penstock.cli.reference`; do not edit it by hand.

Data goes to standard output, words to standard error, so `penstock topic list --format json | jq .` just works. Errors
are sentences; `PENSTOCK_TRACEBACK=1` shows where one came from. What a flag says comes before the environment, that
before the profile, and that before the default. When the reader of a pipe goes away, such as `head`, a command ends
quietly with 0. Where something takes bytes or a time, `64MB` and `7d` will do: units are `B`, `KB`, `MB`, `GB` and `TB`
and stand for powers of 1024 as Kafka's own defaults do (`MB`, `MiB` and `M` are 1048576 bytes), and `ms`, `s`, `m`, `h`
and `d`. [A guide](../guides/command-line.md) shows the commands at work.

| exit code | meaning |
|--:|---|
| 0 | done |
| 1 | failed, or not confirmed |
| 2 | the command makes no sense as it was written |
| 3 | a topic, partition, group, transactional id, profile or running agent is not there |
| 4 | not allowed |
| 5 | no broker answers |
| 10 | the cluster, or an agent, is not healthy (`cluster health`, `doctor`, `agent status`) |
| 11 | another agent with the same name and machine id has taken over (`agent run` with `exactly_once`) |
| 130 | stopped by Ctrl-C; what only ends that way (a node, an agent, `tail`, `--watch`) ends with 0 |

| variable | meaning |
|---|---|
| `PENSTOCK_BOOTSTRAP` | the default of `-b/--bootstrap` |
| `PENSTOCK_PROFILE` | the default of `--profile` |
| `XDG_CONFIG_HOME` | where `penstock/profiles.toml` lies; `~/.config` if not set |
| `PENSTOCK_PURE` | `1` takes the pure-Python kernels although compiled ones are there |
| `PENSTOCK_TRACEBACK` | `1` shows tracebacks |
"""


def reference_page() -> str:
    context = click.Context(cli, info_name="penstock")
    return "\n".join([HEAD, *_commands(cli, context)])


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    """The sections of a command and of those below it; a group that does nothing by itself only by its members."""
    if isinstance(command, click.Group):
        if command.invoke_without_command:
            yield from _section(command, context)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None, f"{name} is listed"
            yield from _commands(member, click.Context(member, parent=context, info_name=name))
        return
    yield from _section(command, context)


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## `{context.command_path}`\n"
    yield f"{_help(command)}\n"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    yield "| option | default | meaning |\n|---|---|---|"
    yield from (_row(option) for option in command.params if isinstance(option, click.Option))
    yield ""
    shown = "\n".join(f"$ {example}" for example in examples_of(command))
    yield f"```console\n{shown}\n```\n"


def _help(command: click.Command) -> str:
    """The help as Markdown; what click is told not to wrap stands as it is."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    parts = []
    for paragraph in paragraphs:
        plain, *fixed = paragraph.split("\b\n")
        parts += [plain.strip(), *(f"```text\n{block.rstrip()}\n```" for block in fixed)]
    return "\n\n".join(part for part in parts if part)


def _row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if not option.is_flag and not option.count:
        names += f" {_cell(_value(option))}"
    default = "required" if option.required else _default(option)
    return f"| {names} | {default} | {_cell(option.help or '')} |"


def _value(option: click.Option) -> str:
    """What stands for the value. Spelled here, because releases of click spell it differently."""
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    if option.metavar:
        return option.metavar
    return (
        "NUMBER"
        if isinstance(option.type, (click.IntRange, click.FloatRange))
        else "DIR"
        if isinstance(option.type, click.Path)
        else "TEXT"
    )


def _default(option: click.Option) -> str:
    plain = isinstance(option.default, (str, int)) and not option.is_flag and not option.count
    return f"`{option.default}`" if plain else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(reference_page(), end="")
