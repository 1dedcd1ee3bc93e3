"""`--add-scram MECHANISM=[name=…,password=…]`: the first users of a cluster, as the storage tool of Kafka reads them.

Two keys are ours: `password-file=PATH` and `password-env=NAME`, because what stands on a command line is seen by every
user of the machine.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.certificates.users import scram_record as made
from penstock.model.secret import Secret
from penstock.security.scram.keys import (
    BY_NAME,
    ITERATIONS_DEFAULT,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    RANDOM_BYTES,
    Mechanism,
    credential_of,
    salt_of,
)

if TYPE_CHECKING:
    from penstock.metadata.records import VersionedRecord

_ARGUMENT: Final = re.compile(r"\s*([^=\[\]]+?)\s*=\s*\[(.*)\]\s*", re.DOTALL)
_SECRETS: Final = ("password", "password-file", "password-env", "saltedpassword")
_KEYS: Final = ("name", "salt", "iterations", *_SECRETS)


def scram_record(argument: str) -> VersionedRecord:
    """The record of one `--add-scram`; ValueError says what is wrong with it, and never repeats a password."""
    found = _ARGUMENT.fullmatch(argument)
    if found is None:
        raise ValueError("expected MECHANISM=[name=NAME,password=PASSWORD]")
    mechanism = BY_NAME.get(found[1])
    if mechanism is None:
        raise ValueError(f"{found[1]!r} is no mechanism; take {' or '.join(BY_NAME)}")
    given = _pairs(found[2])
    if not given.get("name"):
        raise ValueError("the name of the user is missing: name=NAME")
    iterations = _iterations(given.get("iterations"))
    salt = _decoded(given["salt"], "salt") if "salt" in given else salt_of(secrets.token_bytes(RANDOM_BYTES))
    credential = credential_of(mechanism, _salted(mechanism, given, salt, iterations), salt, iterations)
    return made(given["name"], mechanism, credential)


def _pairs(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in text.split(","):
        key, equals, value = pair.strip().partition("=")
        key = key.strip()
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            # Whatever follows a comma may be the rest of a password.
            raise ValueError(f"a part between commas has none of the keys {known}; values cannot have commas")
        if not equals:
            raise ValueError(f"{key} has no value: {key}=…")
        if key in given:
            raise ValueError(f"{key} stands twice")
        given[key] = _unquoted(value.strip())
    return given


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


def _iterations(text: str | None) -> int:
    if text is None:
        return ITERATIONS_DEFAULT
    if not (text.isascii() and text.isdigit()) or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise ValueError(f"iterations is a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)


def _salted(mechanism: Mechanism, given: Mapping[str, str], salt: bytes, iterations: int) -> bytes:
    ways = [key for key in _SECRETS if key in given]
    if len(ways) != 1:
        raise ValueError(f"give one of {', '.join(_SECRETS)}, not {' and '.join(ways) or 'none'}")
    (way,) = ways
    if way == "saltedpassword":
        if "salt" not in given:
            raise ValueError("saltedpassword needs the salt that it was made with: salt=BASE64")
        return _decoded(given[way], way)
    password = _password(way, given[way])
    if not password:
        raise ValueError(f"{way} gives an empty password")
    return mechanism.derive(password.reveal(), salt, iterations).run()


def _password(way: str, value: str) -> Secret:
    if way == "password-env":
        if value not in os.environ:
            raise ValueError(f"the environment has no {value}")
        return Secret(os.environ[value])
    if way == "password-file":
        try:
            text = Path(value).read_text(encoding="utf-8")
        except OSError as cause:
            raise ValueError(f"{value}: {cause.strerror}") from None
        return Secret(text.removesuffix("\n").removesuffix("\r"))
    return Secret(value)


def _decoded(text: str, key: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"{key} is not base64") from None
