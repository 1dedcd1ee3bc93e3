"""`penstock agent`: init, validate, test, run, status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.failures import FAILED
from penstock.cli.options import connection_options, examples, format_option, log_format_option, log_level_option
from penstock.cli.output import show
from penstock.cli.watching import interval_option, watch_option
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_FILE = "agent.toml"


class InOrder(click.Group):
    """Commands in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def file_options(command: Command) -> Command:
    """FILE as an argument or after -c, which means the same."""
    path = click.Path(dir_okay=False, exists=True, path_type=Path)
    decorated: Any = click.argument("argument", metavar="[FILE]", required=False, type=path)(command)
    help_text = f"The agent's file; {DEFAULT_FILE} here if nothing is said."
    decorated = click.option("-c", "--config", "config", metavar="FILE", type=path, help=help_text)(decorated)
    result: Command = decorated
    return result


def _chosen(argument: Path | None, config: Path | None) -> Path:
    found = _named(argument, config) or Path(DEFAULT_FILE)
    if not found.exists():
        raise click.UsageError(f"which file? There is no {DEFAULT_FILE} here; `penstock agent init` writes one")
    return found


def _named(argument: Path | None, config: Path | None) -> Path | None:
    if argument is not None and config is not None and argument != config:
        raise click.UsageError(f"there is one file for an agent, not both {argument} and {config}")
    return config or argument


@click.group(cls=InOrder)
def agent() -> None:
    """Bring logs and events into topics: files that grow, spool directories, syslog, HTTP, TCP, commands."""


@agent.command(
    epilog=examples(
        "penstock agent init agent.toml",
        "penstock agent init shop.toml --tail '/var/log/shop/*.log' --topic shop-logs",
    )
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=DEFAULT_FILE)
@click.option("--tail", "globs", multiple=True, metavar="GLOB", help="Files to follow; repeatable.")
@click.option("-t", "--topic", default="logs", show_default=True, metavar="TOPIC", help="Where their lines go.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@connection_options
def init(file: Path, globs: tuple[str, ...], topic: str, force: bool, connection: Connection) -> None:
    """Write a first file.

    It is valid as it stands and has a comment for everything one may want to change.
    """
    from penstock.cli.agent_starting_file import starting_file
    from penstock.model.errors import PenstockError

    if file.exists() and not force:
        raise PenstockError(f"{file} is there already; --force replaces it")
    text = starting_file(name=_name_for(file), globs=globs, topic=topic, bootstrap=connection.bootstrap)
    file.write_text(text, encoding="utf-8")
    click.echo(f"wrote {file}; `penstock agent run -c {file}` runs it", err=True)


def _name_for(file: Path) -> str:
    plain = "".join(char if char.isalnum() or char in "-_" else "-" for char in file.stem if char.isascii())
    return plain.strip("-_") or "agent"


@agent.command(
    epilog=examples("penstock agent validate -c agent.toml", "penstock agent validate agent.toml --format json")
)
@file_options
@format_option
def validate(argument: Path | None, config: Path | None, style: str) -> None:
    """Check FILE and tell every mistake with its line and column.

    Nothing is opened, listened on or asked; exit code 1 when there are mistakes.
    """
    from penstock.agent.settings import examine
    from penstock.declared.mistakes import text_of

    file = _chosen(argument, config)
    found = examine(text_of(file.read_bytes(), str(file)), file)
    data = [
        {"line": each.line, "column": each.column, "severity": severity, "words": each.words}
        for severity, many in (("error", found.mistakes), ("warning", found.warnings))
        for each in many
    ]
    show(data, style, "\n".join(each.at(str(file)) for each in found.mistakes))
    for each in found.warnings:
        click.echo(f"warning: {each.at(str(file))}", err=True)
    if found.mistakes:
        click.echo(f"{file} has {count('mistake', len(found.mistakes))}", err=True)
        click.get_current_context().exit(FAILED)
    click.echo(f"{file} is fine", err=True)


@agent.command(
    epilog=examples(
        "echo 'a line' | penstock agent test -c agent.toml",
        "echo 'a line' | penstock agent test -c agent.toml --input logs --format json -",
    )
)
@click.argument("sample", metavar="[SAMPLE]", default="-", type=click.Path(allow_dash=True, dir_okay=False))
@click.option(
    "-c",
    "--config",
    "config",
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help=f"The agent's file; {DEFAULT_FILE} here if nothing is said.",
)
@click.option("-i", "--input", "name", metavar="NAME", help="Which input it came through, if there are several.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to print records; JSON as lines.",
)
def test(sample: str, config: Path | None, name: str | None, style: str) -> None:
    """Show what sample lines become, without a broker.

    Every record is printed with its topic, key, time, headers and value. SAMPLE is a file, or - for standard input; its
    lines are events, and nothing is read from the input's own files or ports.
    """
    from penstock.agent.settings import read_agent
    from penstock.cli.agent_trying import show_tried

    settings = read_agent(_chosen(None, config))
    with click.open_file(sample, "rb") as lines:
        show_tried(settings, name, lines, style)


@agent.command(
    epilog=examples(
        "penstock agent run -c agent.toml", "penstock agent run --tail 'logs/*.log' --topic logs -b localhost:9092"
    )
)
@file_options
@click.option("--tail", "globs", multiple=True, metavar="GLOB", help="Without a file: follow these files; repeatable.")
@click.option("-t", "--topic", metavar="TOPIC", help="With --tail: where their lines go.")
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where positions and the spool are kept, in place of the file's.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress, only the log.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to show progress; JSON as lines on standard output.",
)
@log_level_option("info")
@log_format_option
@connection_options
def run(
    argument: Path | None,
    config: Path | None,
    globs: tuple[str, ...],
    topic: str | None,
    state_dir: Path | None,
    quiet: bool,
    style: str,
    log_level: str,
    log_format: str,
    connection: Connection,
) -> None:
    """Run an agent until Ctrl-C or SIGTERM.

    What was read is sent first; a second signal ends it at once. SIGHUP reads FILE again: what changed is stopped and
    started, the rest goes on. With --tail no file is needed; positions are kept in .penstock-agent here.
    """
    from penstock.agent.view.views import view_for
    from penstock.cli.agent_choice import Choice, QuickTail
    from penstock.cli.agent_running import run_agent
    from penstock.server.logs import configure

    named = _named(argument, config)
    if globs and named:
        raise click.UsageError("--tail is for agents without a file; write the paths into the file")
    if bool(globs) != bool(topic):
        raise click.UsageError("--tail GLOB and --topic TOPIC go together")
    quick = QuickTail(globs, topic) if globs and topic else None
    choice = Choice(None if quick else _chosen(argument, config), quick, state_dir, connection, _said_bootstrap())
    settings = choice.load()
    choice.warn()
    view = view_for(style, quiet=quiet)
    # Only now: a live table has its own way to standard error, so that log lines appear above it.
    configure(log_level.upper(), form=log_format)
    run_agent(settings, choice.load, view)


def _said_bootstrap() -> bool:
    source = click.get_current_context().get_parameter_source("bootstrap")
    return source is click.core.ParameterSource.COMMANDLINE


@agent.command(
    epilog=examples(
        "penstock agent status -c agent.toml", "penstock agent status --state-dir .penstock-agent/tail-logs"
    )
)
@file_options
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the agent keeps its state, in place of a file.",
)
@click.option("--files", is_flag=True, help="Every file that it follows, too.")
@format_option
@watch_option
@interval_option
def status(
    argument: Path | None,
    config: Path | None,
    state_dir: Path | None,
    files: bool,
    style: str,
    watch: bool,
    interval_s: float,
) -> None:
    """Show how a running agent is.

    Exit code 3 when none runs there, 10 when something is wrong with it. Without FILE and --state-dir: that of
    agent.toml here, else the one in .penstock-agent here.
    """
    from penstock.cli.agent_status import Wanted, show_status

    named = _named(argument, config)
    if named is not None and state_dir is not None:
        raise click.UsageError("give the file or --state-dir, not both")
    code = show_status(Wanted(named, state_dir, files), style, interval_s if watch else None)
    sys.stdout.flush()
    click.get_current_context().exit(code)
