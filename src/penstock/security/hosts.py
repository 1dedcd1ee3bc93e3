"""The address of a client as ACLs and limits spell it."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address


def host_text(address: str) -> str:
    """An address in Java's spelling, which is what a host in an ACL is compared with; ValueError when it is none.

    IPv4 inside IPv6 is IPv4. Other IPv6 addresses have all eight groups, without leading zeros: `::1` is
    `0:0:0:0:0:0:0:1`.
    """
    parsed = ip_address(address)
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = (f"{int.from_bytes(parsed.packed[i : i + 2], 'big'):x}" for i in range(0, 16, 2))
    scope = f"%{parsed.scope_id}" if parsed.scope_id else ""
    return ":".join(groups) + scope
