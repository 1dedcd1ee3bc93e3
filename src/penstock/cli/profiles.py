"""Profiles: clusters under a name, in one TOML file under $XDG_CONFIG_HOME/penstock.

current = "staging"

[profiles.staging]
bootstrap = "kafka-1:9092,kafka-2:9092"
settings = { request_timeout_ms = "5000" }
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field

from penstock.model.errors import PenstockError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class NoSuchProfile(PenstockError):
    """A profile that was named is not there."""


@dataclass(slots=True)
class Profile:
    bootstrap: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Profiles:
    """All of them, by name, and which one is used when none is named."""

    current: str | None = None
    by_name: dict[str, Profile] = field(default_factory=dict)

    def named(self, name: str) -> Profile:
        if name not in self.by_name:
            there = f"there are {', '.join(sorted(self.by_name))}" if self.by_name else "there is none yet"
            raise NoSuchProfile(f"there is no profile {name!r}; {there} (`penstock profile create {name}` makes it)")
        return self.by_name[name]


def profiles_path() -> str:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "penstock", "profiles.toml")


def current_profile(name: str | None) -> Profile:
    """The named profile, else the current one, else an empty one."""
    profiles = load_profiles()
    chosen = name or profiles.current
    return profiles.named(chosen) if chosen else Profile()


def load_profiles() -> Profiles:
    path = profiles_path()
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    import tomllib

    try:
        content = tomllib.loads(data.decode())
        found = {
            name: Profile(each.get("bootstrap"), {key: str(value) for key, value in each.get("settings", {}).items()})
            for name, each in content.get("profiles", {}).items()
        }
    except tomllib.TOMLDecodeError as wrong:
        from penstock.declared.mistakes import not_toml

        raise PenstockError(not_toml(str(wrong), data.decode()).at(path)) from None
    except (UnicodeDecodeError, AttributeError) as wrong:
        raise PenstockError(f"{path} cannot be read: {wrong}") from None
    current = content.get("current")
    return Profiles(current if current in found else None, found)


def save_profiles(profiles: Profiles) -> str:
    """Writes the file whole, so that nobody reads half of it."""
    from pathlib import Path

    from penstock.whole_files import OWNERS_ALONE, write_whole

    path = profiles_path()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # It names files with credentials, never credentials; who has which is nobody else's business all the same.
    write_whole(Path(path), "\n".join(_lines(profiles)) + "\n", mode=OWNERS_ALONE)
    return path


def _lines(profiles: Profiles) -> list[str]:
    lines = [] if profiles.current is None else [f"current = {_text(profiles.current)}"]
    for name, profile in sorted(profiles.by_name.items()):
        lines += ["", f"[profiles.{_key(name)}]"]
        if profile.bootstrap is not None:
            lines.append(f"bootstrap = {_text(profile.bootstrap)}")
        if profile.settings:
            pairs = ", ".join(f"{_key(key)} = {_text(value)}" for key, value in sorted(profile.settings.items()))
            lines.append(f"settings = {{ {pairs} }}")
    return lines


def _text(text: str) -> str:
    # A JSON string is a TOML string, but for the delete character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)
