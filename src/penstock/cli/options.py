"""Options that several commands share, so that they look and behave alike everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.amounts import config_amount

Command = TypeVar("Command", bound=Callable[..., Any])

format_option = click.option(
    "--format", "style", type=click.Choice(["text", "json", "yaml"]), default="text", help="How to print the result."
)
log_format_option = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How log lines look."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
act_option = click.option(
    "-y", "--yes", "--execute", "act", is_flag=True, help="Do it. Without this only the plan is printed."
)

_CONNECTION_OPTIONS = [
    click.option(
        "-b",
        "--bootstrap",
        envvar="PENSTOCK_BOOTSTRAP",
        show_envvar=True,
        metavar="HOST:PORT",
        help="Brokers to ask first, several separated by commas; else the profile's, else localhost:9092.",
    ),
    click.option(
        "--profile",
        envvar="PENSTOCK_PROFILE",
        show_envvar=True,
        metavar="NAME",
        help="The profile to use in place of the current one.",
    ),
    click.option(
        "-X", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the client library; repeatable."
    ),
    click.option(
        "--client-config",
        envvar="PENSTOCK_CLIENT_CONFIG",
        show_envvar=True,
        type=click.Path(),
        metavar="FILE",
        help="A client.properties as Kafka's own tools take it: TLS, logins, addresses.",
    ),
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="The folder of a cluster that `penstock dev --secure` runs; .penstock is found without it.",
    ),
    click.option("-v", "--verbose", count=True, help="Say on standard error what goes on; twice for more."),
]


def connection_options(command: Command) -> Command:
    """Adds what says whom to speak to and how; a command is given what that comes to as `connection`."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any,
        bootstrap: str | None,
        profile: str | None,
        settings: tuple[str, ...],
        client_config: str | None,
        data_dir: str | None,
        verbose: int,
        **rest: Any,
    ) -> Any:
        from penstock.cli.connection import connect

        given = pairs(settings, "-X")
        if client_config is not None:
            given["client_config"] = client_config
        return command(*arguments, connection=connect(bootstrap, profile, given, verbose, data_dir), **rest)

    decorated: Any = wrapped
    for option in reversed(_CONNECTION_OPTIONS):
        decorated = option(decorated)
    result: Command = decorated
    return result


def log_level_option(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default=default,
        show_default=True,
        help="The least a log line must weigh to be written (to standard error).",
    )


def examples(*commands: str) -> str:
    """The end of a command's help: commands that work as they stand. Tests run them."""
    lines = "\n".join(f"  $ {command}" for command in commands)
    return f"\b\n{'Example' if len(commands) == 1 else 'Examples'}:\n{lines}"


def examples_of(command: click.Command) -> list[str]:
    lines = (command.epilog or "").splitlines()
    return [line.removeprefix("  $ ") for line in lines if line.startswith("  $ ")]


def pairs(given: tuple[str, ...], hint: str = "-c") -> dict[str, str]:
    """Repeated `-c KEY=VALUE` options as a mapping; times and sizes as brokers read them."""
    configs = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not key=value", param_hint=hint)
        configs[name.strip()] = config_amount(name.strip(), value.strip(), hint)
    return configs
