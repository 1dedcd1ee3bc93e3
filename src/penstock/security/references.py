"""`${provider:[path:]key}` in configuration: values that stand elsewhere, in a file, a directory or the environment.

As Kafka's: `config.providers=file,env,dir` names them, `config.providers.<name>.class` says which of the three built-in
kinds one is, `.param.allowed.paths` and `.param.allowlist.pattern` bound what it may read. A value is looked through
once: what was read is not looked through again. A provider that is not named is no reference: the text stays.

Two things are stricter. What a named provider does not have is an error, not a password that reads `${file:…}`. And
references that come over the wire are never resolved by this: the shell calls it for files of its own, and for others
only when a super user sent them (CVE-2024-31141).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from penstock.model.config.files import parse_properties
from penstock.model.errors import PenstockError

_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}", re.DOTALL)
_NAMES: Final = "config.providers"
_KAFKA: Final = "org.apache.kafka.common.config.provider."
FILE_CLASS: Final = _KAFKA + "FileConfigProvider"
DIRECTORY_CLASS: Final = _KAFKA + "DirectoryConfigProvider"
ENVIRONMENT_CLASS: Final = _KAFKA + "EnvVarConfigProvider"


class Unresolved(PenstockError):
    """A reference that cannot be followed. Names the property and the reference, never a value."""


class Reading(Protocol):
    """How a shell reads. Both raise OSError; neither is asked for a path that is not allowed."""

    def file(self, path: str) -> str: ...
    def environment(self, name: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Provider:
    """One named provider. Empty `allowed_paths` allow all; `allowlist` None allows every variable."""

    kind: str
    allowed_paths: tuple[str, ...] = ()
    allowlist: re.Pattern[str] | None = None


def providers_of(properties: Mapping[str, str]) -> dict[str, Provider]:
    """The providers that the properties themselves name. Unresolved for a class that is not built in."""
    names = [name.strip() for name in properties.get(_NAMES, "").split(",") if name.strip()]
    return {name: _provider(name, properties) for name in names}


def resolve(properties: Mapping[str, str], providers: Mapping[str, Provider], reading: Reading) -> dict[str, str]:
    """The properties with every reference to a provider replaced by what it stands for."""
    if not providers:
        return dict(properties)
    files: dict[str, Mapping[str, str]] = {}  # every properties file is read once

    def value_of(name: str, found: re.Match[str]) -> str:
        provider = providers.get(found[1])
        if provider is None:
            return found[0]
        try:
            value = _look_up(provider, found[2] or "", found[3], reading, files)
        except (OSError, ValueError) as failed:
            # The words of a parser may quote a line of the file, so only their kind is told.
            raise Unresolved(f"{name}: {found[0]} cannot be read: {type(failed).__name__}") from None
        if value is None:
            raise Unresolved(f"{name}: {found[0]} does not exist, or is not allowed")
        return value

    return {name: _REFERENCE.sub(partial(value_of, name), value) for name, value in properties.items()}


def within(path: str, allowed: tuple[str, ...]) -> bool:
    """Whether an absolute path, with its `.` and `..` done, is one of `allowed` or below one."""
    if not path.startswith("/"):
        return False
    steps = _steps(path)
    return any(steps[: len(bound)] == bound for bound in map(_steps, allowed))


def _provider(name: str, properties: Mapping[str, str]) -> Provider:
    given = properties.get(f"{_NAMES}.{name}.class", "")
    if given not in (FILE_CLASS, DIRECTORY_CLASS, ENVIRONMENT_CLASS):
        raise Unresolved(
            f"{_NAMES}.{name}.class must be {FILE_CLASS}, {DIRECTORY_CLASS} or {ENVIRONMENT_CLASS}: no other is loaded"
        )
    paths = properties.get(f"{_NAMES}.{name}.param.allowed.paths", "")
    pattern = properties.get(f"{_NAMES}.{name}.param.allowlist.pattern")
    try:
        allowlist = None if pattern is None else re.compile(pattern)
    except re.error as wrong:
        raise Unresolved(f"{_NAMES}.{name}.param.allowlist.pattern is no pattern: {wrong}") from None
    return Provider(given, tuple(path.strip() for path in paths.split(",") if path.strip()), allowlist)


def _look_up(
    provider: Provider, path: str, key: str, reading: Reading, files: dict[str, Mapping[str, str]]
) -> str | None:
    if provider.kind == ENVIRONMENT_CLASS:
        if path or (provider.allowlist is not None and provider.allowlist.fullmatch(key) is None):
            return None
        return reading.environment(key)
    if not path or (provider.allowed_paths and not within(path, provider.allowed_paths)):
        return None
    if provider.kind == DIRECTORY_CLASS:
        # One file a key: a key that is a path of its own would lead out of the directory.
        return None if key in ("", ".", "..") or "/" in key else reading.file(f"{path.rstrip('/')}/{key}")
    if path not in files:
        files[path] = parse_properties(reading.file(path))
    return files[path].get(key)


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in ("", "."):
            steps.append(step)
    return steps
