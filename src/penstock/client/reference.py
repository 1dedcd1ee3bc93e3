"""The client's settings, methods and errors as Markdown, from their source: `python -m penstock.client.reference`.

`docs/reference/client.md` is this text; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any, Final

from penstock.client import errors
from penstock.client.declaring import INT32_MAX
from penstock.client.method_reference import method_sections
from penstock.client.security_settings import SecuritySettings
from penstock.client.settings import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    ProducerSettings,
    kafka_name,
)

_INTRODUCTION: Final = """\
# The client's settings, methods and errors

This page is printed from the source of `penstock.client` by `python -m penstock.client.reference`; do not edit it by
hand. [A guide](../guides/client.md) shows the client at work.

Settings are keywords: `Producer(bootstrap_servers="localhost:9092", linger_ms=20)`. Kafka's own name with underscores
in place of dots is accepted as well: `enable_idempotence=False` is `idempotence=False`. Names and defaults are the same
for `penstock.blocking`; editors and type checkers know them. `-X NAME=VALUE` sets one for a command of `penstock`. A
name that does not exist or a value that cannot be raises `BadSetting`, which says what was probably meant.
"""

_OWN_NAME: Final = "-"
_NUMBER: Final = "a whole number from "


def reference_page() -> str:
    """The whole page, ending in a newline."""
    common = {setting.name for setting in fields(CommonSettings)}
    security = {setting.name for setting in fields(SecuritySettings)}
    lines = [_INTRODUCTION, *_section("Settings of all clients", CommonSettings, security)]
    lines += _section("Security settings of all clients", SecuritySettings, set())
    for title, settings in (("Producer", ProducerSettings), ("Consumer", ConsumerSettings), ("Admin", AdminSettings)):
        lines += _section(f"Settings of a {title}".replace("a A", "an A"), settings, common)
    return "\n".join([*lines, *method_sections(), *_errors(), ""])


def _section(title: str, settings: type[SecuritySettings], left_out: set[str]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| setting | Kafka's name | default | allowed | what it does |"
    yield "|---|---|---|---|---|"
    for setting in fields(settings):
        if setting.name not in left_out:
            name = kafka_name(setting)
            yield _row(
                f"`{setting.name}`",
                name if name == _OWN_NAME else f"`{name}`",
                f"`{_default(setting)}`",
                _allowed(setting),
                setting.metadata["says"],
            )
    yield ""


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(setting: Field[Any]) -> str:
    if setting.name == "acks":
        return "'all'"
    if isinstance(setting.default, tuple):
        return repr(",".join(setting.default))
    return repr(setting.default)


def _allowed(setting: Field[Any]) -> str:
    """What the check itself says when it is given something that nobody could mean."""
    try:
        setting.metadata["check"](object())
    except ValueError as wrong:
        words = str(wrong)
    else:
        raise AssertionError(f"{setting.name} takes anything")
    if words.startswith(_NUMBER):
        low, _, high = words.removeprefix(_NUMBER).partition(" to ")
        words = f"at least {low}" if int(high) == INT32_MAX else f"{low} to {high}"
    return words.replace("'", "`")


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "All are in `penstock.client.errors`. `ClientError` is the root; it has `why`, `where`, `error` (the"
    yield "protocol's code, if a broker named one) and `retriable` (whether the same call may succeed later).\n"
    yield "| error | when |"
    yield "|---|---|"
    for found in _all_errors():
        yield _row(f"`{found.__name__}`", " ".join((found.__doc__ or "").split()))


def _all_errors() -> list[type[errors.ClientError]]:
    return [
        found
        for found in vars(errors).values()
        if isinstance(found, type)
        and issubclass(found, errors.ClientError)
        and found is not errors.ClientError
        and found.__module__ == errors.__name__
    ]


if __name__ == "__main__":
    print(reference_page(), end="")
