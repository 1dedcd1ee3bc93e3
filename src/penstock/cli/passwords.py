"""Where commands take passwords from: a file, the environment, a question. Never their arguments, which all can see."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Final

import click

PASSWORD_VARIABLE: Final = "PENSTOCK_PASSWORD"
_INSTEAD: Final = (
    f"arguments are seen by whoever lists processes. Put it into a file and name that by --client-config, "
    f"or set {PASSWORD_VARIABLE}, or be asked for it: give -X username=NAME alone"
)


def keep_off_the_command_line(given: Mapping[str, str], hint: str = "-X") -> None:
    """Refuses a secret among settings that were given as arguments."""
    for name in given:
        if is_secret(name):
            raise click.BadParameter(f"{name} is a secret, and {_INSTEAD}", param_hint=hint)


def is_secret(name: str) -> bool:
    """Whether a setting of a client holds a secret."""
    from dataclasses import fields

    from penstock.client.declaring import secret
    from penstock.client.security_settings import SecuritySettings

    plain = name.replace(".", "_").replace("-", "_")
    return any(each.name == plain and each.metadata["check"] is secret for each in fields(SecuritySettings))


def ask_for_password(given: MutableMapping[str, str]) -> None:
    """The password of a `username` that was given without one: from the environment, or by asking."""
    if "username" not in given:
        return
    # Taken away: what this command starts (an agent's programs, Spark's processes) would inherit it.
    found = os.environ.pop(PASSWORD_VARIABLE, None)
    if found is None and sys.stdin.isatty():
        found = click.prompt(f"Password of {given['username']}", hide_input=True, err=True)
    if found is not None:
        given["password"] = found
