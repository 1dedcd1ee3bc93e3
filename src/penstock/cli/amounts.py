"""Times and sizes on the command line: `7d` where something takes milliseconds, `1GiB` where it takes bytes."""

from __future__ import annotations

from typing import Any, Final

import click

from penstock.declared.amounts import duration_of, plain_amount, size_of, unit_of

_WORDS: Final = {"ms": "milliseconds"}

_TIME: Final = "7d, 12h, 15m, 90s or 500ms"
_SIZE: Final = "1GiB, 64MB or 512K"


def config_amount(name: str, value: str, hint: str) -> str:
    """The value of a config as a broker reads it."""
    plain = plain_amount(name, value)
    if plain is None:
        unit = unit_of(name)
        expected = f"bytes, or a size such as {_SIZE}"
        if unit != "bytes":
            expected = f"whole {_WORDS.get(str(unit), unit)}, or a time such as {_TIME}"
        raise click.BadParameter(f"{name}={value}: expected {expected}", param_hint=hint)
    return plain


class Seconds(click.FloatRange):
    """A number of seconds, or a time such as 15m."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not _is_number(value):
            duration_ms = duration_of(value)
            if duration_ms is None:
                self.fail(f"{value!r} is no time: expected seconds, or something like {_TIME}", param, ctx)
            value = duration_ms / 1_000
        return super().convert(value, param, ctx)


class Bytes(click.IntRange):
    """A number of bytes, or a size such as 64MB."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not _is_number(value):
            size = size_of(value)
            if size is None:
                self.fail(f"{value!r} is no size: expected bytes, or something like {_SIZE}", param, ctx)
            value = size
        return super().convert(value, param, ctx)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
