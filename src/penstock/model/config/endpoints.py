"""Listeners: `NAME://host:port` entries and the security protocol behind each name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT: Final = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)"
_IPV4: Final = r"[0-9]{1,3}(\.[0-9]{1,3}){3}"


class Endpoint(NamedTuple):
    """One listener. `host` is empty for all interfaces, `port` 0 for any free port."""

    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def wildcard(self) -> bool:
        """Whether the host names no address that a peer could dial."""
        return self.host in ("", "0.0.0.0", "::")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def listener_name(entry: str) -> str:
    """The normalised name of an entry, or of what stands before `://`."""
    return entry.partition("://")[0].upper()


def parse_endpoints(entries: Iterable[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The endpoints of a listener list. ValueError says which entry is wrong, or which name stands twice."""
    endpoints = tuple(_parse_endpoint(entry, protocols) for entry in entries)
    names = [endpoint.name for endpoint in endpoints]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"each listener needs a name of its own, but {twice[0]} stands twice")
    return endpoints


def _parse_endpoint(entry: str, protocols: Mapping[str, str]) -> Endpoint:
    found = re.fullmatch(_ENDPOINT, entry)
    if found is None or int(found[3]) > 65_535:
        raise ValueError(f"{entry!r} is not of the form NAME://host:port")
    name = found[1].upper()
    if name not in protocols:
        raise ValueError(f"listener {name} has no security protocol; add it to listener.security.protocol.map")
    return Endpoint(name, found[2], int(found[3]), protocols[name])


def check_distinct_ports(endpoints: Iterable[Endpoint]) -> None:
    """ValueError when two listeners share a port. One IPv4 and one IPv6 address may: they are different sockets."""
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, sharing in by_port.items():
        if len(sharing) == 1 or (len(sharing) == 2 and sorted(map(_family, sharing)) == [4, 6]):
            continue
        names = " and ".join(endpoint.name for endpoint in sharing)
        raise ValueError(f"each listener needs a port of its own, but {names} share {port}")


def _family(endpoint: Endpoint) -> int:
    if ":" in endpoint.host:
        return 6
    return 4 if re.fullmatch(_IPV4, endpoint.host) else 0


def parse_pairs(text: str, name: str) -> dict[str, str]:
    """A `key:value,key:value` property as a dict; the last colon of an entry parts it. ValueError names `name`."""
    pairs: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise ValueError(f"{name}: {entry!r} is not of the form key:value")
        pairs[key.strip()] = value.strip()
    return pairs


def protocol_map(text: str) -> dict[str, str]:
    """listener.security.protocol.map as name → protocol, both normalised."""
    protocols: dict[str, str] = {}
    for name, protocol in parse_pairs(text, "listener.security.protocol.map").items():
        if protocol.upper() not in SECURITY_PROTOCOLS:
            options = ", ".join(SECURITY_PROTOCOLS)
            raise ValueError(f"listener.security.protocol.map: {protocol!r} is not one of {options}")
        protocols[name.upper()] = protocol.upper()
    return protocols
