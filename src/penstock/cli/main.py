"""The entry point. Command groups are imported only when they are chosen, so `penstock --help` stays quick."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, NoReturn

import click

from penstock.cli.failures import FAILED, INTERRUPTED, OK, TRACEBACK_VARIABLE, explain
from penstock.model.version import VERSION

COMMANDS = {
    "dev": ("penstock.cli.dev:dev", "Run a node on this machine, with nothing to set up."),
    "server": ("penstock.cli.server:server", "Run, format and check a node from a configuration file."),
    "cert": ("penstock.cli.cert:cert", "Make, renew and show certificates of nodes and clients."),
    "user": ("penstock.cli.user:user", "Add, list and delete users, and change their passwords."),
    "acl": ("penstock.cli.acl:acl", "Allow and deny, list the rules, and explain decisions."),
    "token": ("penstock.cli.token:token", "Lend a login to programs for a time: delegation tokens."),
    "quota": ("penstock.cli.quota:quota", "Limit what users, client ids and addresses may take."),
    "topic": ("penstock.cli.topic:topic", "List, create, describe, change and delete topics."),
    "produce": ("penstock.cli.produce:produce", "Send records, from standard input or the command line."),
    "consume": ("penstock.cli.consume:consume", "Print records from anywhere in topics."),
    "tail": ("penstock.cli.consume:tail", "Print the last records of topics and those to come."),
    "group": ("penstock.cli.group:group", "See consumer groups and their lag, move or forget their positions."),
    "txn": ("penstock.cli.txn:txn", "See transactions; find those that hang, and abort them."),
    "cluster": ("penstock.cli.cluster:cluster", "See brokers, controller and health; change brokers' defaults."),
    "agent": ("penstock.cli.agent:agent", "Bring logs and events from files and the network into topics."),
    "pipeline": ("penstock.cli.pipeline:pipeline", "Run flows from topics to tables and topics on Spark."),
    "lake": ("penstock.cli.lake:lake", "See, query, compact and audit lake tables."),
    "console": ("penstock.cli.console:console", "Show clusters in a browser, and change them there."),
    "sim": ("penstock.cli.sim:sim", "Run a whole cluster under a seed, in virtual time, and hurt it."),
    "doctor": ("penstock.cli.doctor:doctor", "Say in words what is wrong, and what to try."),
    "bench": ("penstock.cli.bench:bench", "Measure any Kafka-compatible cluster, or two side by side."),
    "generate": ("penstock.cli.generate:generate", "Print files for systemd and Prometheus."),
    "profile": ("penstock.cli.profile:profile", "Keep addresses and settings of clusters under names."),
    "completion": ("penstock.cli.completion:completion", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = COMMANDS.get(name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as wrong:
            from penstock.model.closest import closest

            # Of groups that are loaded click knows the names and does it by itself.
            near = closest(args[0], COMMANDS)
            if near is None or not wrong.message.startswith("No such command"):
                raise
            raise click.UsageError(f"{wrong.message} Did you mean {near!r}?", ctx=wrong.ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever read our output, such as `head`, has had enough; nobody is left to tell, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(OK)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="penstock")
def cli() -> None:
    """Penstock: a Kafka-compatible event-streaming platform that installs with pip."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and turns what went wrong into a sentence and an exit code."""
    try:
        code = cli.main(args=arguments, prog_name="penstock", standalone_mode=False)
    except click.exceptions.Abort as aborted:
        interrupted = isinstance(aborted.__cause__, KeyboardInterrupt)
        click.echo("penstock: stopped" if interrupted else "penstock: nothing was changed", err=True)
        sys.exit(INTERRUPTED if interrupted else FAILED)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except Exception as failure:
        if os.environ.get(TRACEBACK_VARIABLE) == "1":
            raise
        code, words = explain(failure)
        click.echo(f"penstock: {words}", err=True)
        sys.exit(code)
    # Our commands return nothing; click returns the code of a command that left early, such as --help.
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
