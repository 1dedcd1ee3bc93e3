"""Showing something again and again: `-w`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import click

from penstock.cli.amounts import Seconds
from penstock.cli.output import show

CLEAR = "\x1b[H\x1b[2J"

watch_option = click.option("-w", "--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
interval_option = click.option(
    "--interval",
    "interval_s",
    type=Seconds(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often, with --watch.",
)


async def watch(
    look: Callable[[], Awaitable[tuple[Any, str]]], style: str, interval_s: float, done: Callable[[], bool]
) -> None:
    """Shows (data, text) until `done`: on a terminal in place, else one below the other, JSON as lines."""
    while True:
        data, text = await look()
        if style == "json":
            click.echo(json.dumps(data))
        else:
            if sys.stdout.isatty():
                click.echo(CLEAR, nl=False)
            show(data, style, text)
        sys.stdout.flush()
        if done():
            return
        await asyncio.sleep(interval_s)
