"""Options that several commands share, so that they look and behave alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

format_option = click.option(
    "--format", "style", type=click.Choice(["text", "json", "yaml"]), default="text", help="How to print the result."
)
bootstrap_option = click.option(
    "-b",
    "--bootstrap",
    default="localhost:9092",
    envvar="PENSTOCK_BOOTSTRAP",
    show_envvar=True,
    show_default=True,
    help="Brokers to ask first, as host:port, several separated by commas.",
)
log_format_option = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How log lines look."
)


def log_level_option(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default=default,
        show_default=True,
        help="The least a log line must weigh to be written (to standard error).",
    )


def pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Repeated `-c KEY=VALUE` options as a mapping."""
    configs = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not key=value", param_hint="-c")
        configs[name.strip()] = value.strip()
    return configs
