"""What a console is told when it starts, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final

from penstock.model.errors import PenstockError

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*")


class ConsoleRefused(PenstockError):
    """The console does not start like this; the sentence says what to change."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A cluster under the name that viewers know it by, with the keywords that each kind of client takes."""

    name: str
    admin: Mapping[str, Any] = field(repr=False)
    consumer: Mapping[str, Any] = field(repr=False)
    producer: Mapping[str, Any] = field(repr=False)

    @property
    def bootstrap(self) -> str:
        servers = self.admin["bootstrap_servers"]
        return servers if isinstance(servers, str) else ",".join(servers)


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`hosts` are names that browsers may call the console by, beside those of the loopback."""

    clusters: tuple[ClusterAddress, ...]
    host: str = "127.0.0.1"
    port: int = 8080
    base_path: str = ""
    hosts: tuple[str, ...] = ()
    read_only: bool = False
    every_ms: int = 5_000
    """How often the least of a cluster is looked at; what is dearer in proportion."""

    def __post_init__(self) -> None:
        if not self.clusters:
            raise ConsoleRefused("the console was given no cluster to look at; name one with --bootstrap")
        names = [each.name for each in self.clusters]
        if len(set(names)) < len(names):
            raise ConsoleRefused(f"two clusters have one name: {', '.join(names)}; name each differently")
        if not is_prefix(self.base_path):
            raise ConsoleRefused(
                f"{self.base_path!r} is no path to serve below; write it as /kafka, without a slash at its end"
            )
        if not is_loopback(self.host):
            raise ConsoleRefused(
                f"on {self.host} whoever reaches this address could read and change the cluster, because nobody logs"
                " in; listen on 127.0.0.1 and put a proxy that asks for a login in front"
            )

    @property
    def known_hosts(self) -> frozenset[str]:
        """Names that a request may be addressed to. Another is that of a site whose name server points here."""
        return frozenset((*LOOPBACK_NAMES, self.host.lower(), *(name.lower() for name in self.hosts)))


def is_prefix(path: str) -> bool:
    """Whether a text can stand before all paths of the console: nothing, or `/a/b`."""
    return _PREFIX.fullmatch(path) is not None and ".." not in path


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
