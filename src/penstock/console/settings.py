"""What a console is told when it starts, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, Final, Literal

from penstock.model.errors import PenstockError

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
LoginBy = Literal["none", "kafka", "oidc", "proxy"]
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
class WarehouseAddress:
    """A directory of tables, with settings as people write them."""

    directory: str
    catalog: str = ""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    catalog_settings: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """A client of an identity provider. `issuer` is its address without `/.well-known/…`."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scope: str = "openid profile"
    name: str = "single sign-on"


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`hosts` are names that browsers may call the console by, beside those of the loopback."""

    clusters: tuple[ClusterAddress, ...]
    host: str = "127.0.0.1"
    port: int = 8080
    base_path: str = ""
    hosts: tuple[str, ...] = ()
    read_only: bool = False
    login: LoginBy = "none"
    oidc: OidcSettings | None = None
    proxy_header: str = "X-Forwarded-User"
    proxy_from: tuple[str, ...] = ("127.0.0.1/32", "::1/128")
    certfile: str | None = None
    keyfile: str | None = None
    behind_tls: bool = False
    """Whether somebody in front speaks TLS to browsers."""
    audit_log: str | None = None
    """A file that gets a line for each login, look at records and change."""
    warehouses: tuple[WarehouseAddress, ...] = ()
    agents: tuple[str, ...] = ()
    """Addresses of the admin ports of agents."""
    history: bool = True
    """Whether the past is kept in a topic of each cluster, beside the memory."""
    every_ms: int = 5_000
    """How often the least of a cluster is looked at; what is dearer in proportion."""

    def __post_init__(self) -> None:
        self._check_clusters()
        if not is_prefix(self.base_path):
            raise ConsoleRefused(
                f"{self.base_path!r} is no path to serve below; write it as /kafka, without a slash at its end"
            )
        if (self.login == "oidc") != (self.oidc is not None):
            raise ConsoleRefused(
                "a login by oidc needs --oidc-issuer and --oidc-client-id, and no other login has them"
            )
        for network in self.proxy_from:
            self._check_network(network)
        if not is_loopback(self.host):
            self._check_beyond_loopback()

    def _check_clusters(self) -> None:
        if not self.clusters:
            raise ConsoleRefused("the console was given no cluster to look at; name one with --bootstrap")
        names = [each.name for each in self.clusters]
        if len(set(names)) < len(names):
            raise ConsoleRefused(f"two clusters have one name: {', '.join(names)}; name each differently")

    def _check_network(self, network: str) -> None:
        try:
            ip_network(network, strict=False)
        except ValueError:
            raise ConsoleRefused(f"{network!r} is no address or network that a proxy comes from") from None

    def _check_beyond_loopback(self) -> None:
        if self.login == "none":
            raise ConsoleRefused(
                f"on {self.host} whoever reaches this address could read and change the cluster, because nobody logs"
                " in; listen on 127.0.0.1, or choose --login kafka, oidc or proxy"
            )
        if self.certfile is None and not self.behind_tls:
            raise ConsoleRefused(
                f"on {self.host} logins would go over the network as they are; give --certfile and --keyfile, or"
                " --behind-tls when a proxy in front speaks TLS"
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
