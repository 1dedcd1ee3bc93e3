"""Who may be called what in a certificate. A subject is a principal, and a node's is a super user's."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from penstock.model.errors import PenstockError

COMMON_NAME_MAX: Final = 64
_NODE: Final = re.compile(r"node-\d+")
# Nothing that a rule which maps subjects to users could take for the end of a name, nor what looks like something else.
_USER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
_CLUSTER: Final = re.compile(r"[A-Za-z0-9_-]+")
_HOST: Final = re.compile(
    r"(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?\.?"
)
_HOST_MAX: Final = 253


class BadCertificate(PenstockError):
    """What was asked for must not be issued, or a file is not what it should be."""


def node_subject(node_id: int, cluster_id: str) -> x509.Name:
    """`CN=node-1,O=<cluster id>`."""
    if node_id < 0:
        raise BadCertificate(f"{node_id} is no id of a node")
    return _name(f"node-{node_id}", cluster_id)


def client_subject(user: str) -> x509.Name:
    """`CN=<user>`; refused for whatever could pass for a node."""
    if _USER.fullmatch(user) is None or len(user) > COMMON_NAME_MAX:
        raise BadCertificate(
            f"{user!r} cannot be a user's name in a certificate: letters, digits and . _ @ - are allowed, "
            f"at most {COMMON_NAME_MAX} of them, beginning with a letter or digit"
        )
    # Rules may map to lower case.
    if is_node_name(user):
        raise BadCertificate(f"{user!r} is how nodes are called; the clients' authority does not sign nodes")
    return _name(user)


def authority_subject(title: str, cluster_id: str, generation: int) -> x509.Name:
    return _name(title if generation == 1 else f"{title} {generation}", cluster_id)


def is_node_name(common_name: str) -> bool:
    return _NODE.fullmatch(common_name.strip().lower()) is not None


def alternative_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    """DNS names and IP addresses, each once, in the order given."""
    names = [_alternative_name(host) for host in dict.fromkeys(hosts)]
    if not names:
        raise BadCertificate(
            "a node's certificate needs a host name or an address, or nobody can check whom they reached"
        )
    return names


def common_name(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    if _HOST.fullmatch(host) is None or len(host) > _HOST_MAX:
        raise BadCertificate(f"{host!r} is no host name and no address")
    return x509.DNSName(host.rstrip(".").lower())


def _name(common: str, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization is not None:
        if _CLUSTER.fullmatch(organization) is None or len(organization) > COMMON_NAME_MAX:
            raise BadCertificate(f"{organization!r} is no id of a cluster")
        # The most general part stands first in a certificate, and last in its text.
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)
