"""Where the authorities and certificates of a cluster are, in one directory.

cluster-ca/   the authority that signs nodes
clients-ca/   the authority that signs clients
nodes/        node-1.pem and so on: a key with its certificate
clients/      USER.pem
ca.pem        what everybody trusts who speaks to nodes: a copy of cluster-ca/ca.pem
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from penstock.certificates.authority import (
    CERTIFICATES,
    Authority,
    Role,
    create_authority,
    load_certificates,
    open_authority,
)
from penstock.certificates.files import write_private
from penstock.certificates.issuing import issued_by
from penstock.certificates.subjects import BadCertificate
from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.stores import read_file


@dataclass(frozen=True, slots=True)
class CertificateDirectory:
    """The paths, and what is at them now."""

    path: Path

    @property
    def trusted(self) -> Path:
        return self.path / "ca.pem"

    def authority_at(self, role: Role) -> Path:
        return self.path / f"{role.value}-ca"

    def node(self, node_id: int) -> Path:
        return self.path / "nodes" / f"node-{node_id}.pem"

    def client(self, user: str) -> Path:
        return self.path / "clients" / f"{user}.pem"

    def has(self, role: Role) -> bool:
        return (self.authority_at(role) / CERTIFICATES).exists()

    def open(self, role: Role) -> Authority:
        if not self.has(role):
            raise BadCertificate(
                f"{self.path} has no {role.value} authority; `penstock cert create-ca --dir {self.path}` makes it"
            )
        return open_authority(self.authority_at(role))

    def create(self, cluster_id: str, *, now: datetime) -> list[Authority]:
        """Makes the authorities that are missing; none when both are there."""
        made = [
            create_authority(self.authority_at(role), role, cluster_id, now=now) for role in Role if not self.has(role)
        ]
        self.publish()
        return made

    def publish(self) -> None:
        """Copies what the cluster's authority has everybody trust to `ca.pem`, if that is not the same yet."""
        current = (self.authority_at(Role.CLUSTER) / CERTIFICATES).read_bytes()
        if not self.trusted.exists() or self.trusted.read_bytes() != current:
            write_private(self.trusted, current)

    def authority_of(self, certificate: x509.Certificate) -> Authority:
        """Who issued it; `BadCertificate` when nobody here did."""
        for role in Role:
            if self.has(role):
                authority = self.open(role)
                if any(issued_by(certificate, each) for each in authority.trusted):
                    return authority
        subject = certificate.subject.rfc4514_string()
        raise BadCertificate(f"{subject} was issued by no authority in {self.path}")

    def files(self) -> list[Path]:
        """All files with certificates: the authorities' first, then nodes, then clients."""
        authorities = [self.authority_at(role) / CERTIFICATES for role in Role if self.has(role)]
        return [*authorities, *self.issued_files()]

    def issued_files(self) -> list[Path]:
        return [path for folder in ("nodes", "clients") for path in sorted((self.path / folder).glob("*.pem"))]

    def issued(self, role: Role) -> Iterator[x509.Certificate]:
        """What nodes or clients have, as far as it is kept here."""
        folder = "nodes" if role is Role.CLUSTER else "clients"
        for path in sorted((self.path / folder).glob("*.pem")):
            yield leaf_of(path)


def leaf_of(path: Path) -> x509.Certificate:
    """The first certificate of a PEM file: that of whoever has the file."""
    try:
        return load_certificates(read_file(str(path)), path)[0]
    except BadTls as refusal:
        raise BadCertificate(str(refusal)) from None
