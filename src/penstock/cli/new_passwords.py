"""A password for a user: typed, piped, from a file or from the environment; never an argument that others can see."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.model.secret import Secret

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--password-stdin", "from_stdin", is_flag=True, help="Read the password from standard input."),
    click.option(
        "--password-file",
        "from_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Read the password from this file.",
    ),
    click.option(
        "--password-env", "from_variable", metavar="NAME", help="Take the password from this environment variable."
    ),
]


def password_options(command: Command) -> Command:
    """Adds the ways of giving a password; `read_password` takes what they come to."""
    decorated: Any = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: Command = decorated
    return result


def read_password(user: str, *, from_stdin: bool, from_file: Path | None, from_variable: str | None) -> Secret:
    """The password, asked for at the terminal when no other way is given. A last line break is no part of it."""
    if sum((from_stdin, from_file is not None, from_variable is not None)) > 1:
        raise click.UsageError("--password-stdin, --password-file and --password-env exclude each other")
    if from_variable is not None:
        if from_variable not in os.environ:
            raise click.BadParameter(f"the environment has no {from_variable}", param_hint="--password-env")
        text = os.environ[from_variable]
    elif from_file is not None:
        text = _without_break(from_file.read_text(encoding="utf-8"))
    elif from_stdin:
        text = _without_break(sys.stdin.read())
    elif sys.stdin.isatty():
        text = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise click.UsageError("no terminal to ask at: give --password-stdin, --password-file or --password-env")
    if not text:
        raise click.UsageError("the password is empty")
    return Secret(text)


def _without_break(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
