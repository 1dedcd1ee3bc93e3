"""Everything that a cluster needs to be a secured one, in its directory: made where it is missing, kept where it is.

Only what is missing needs the key of an authority, so that may be taken away once the cluster is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from penstock.certificates.authority import Role, fingerprint_of, load_certificates
from penstock.certificates.client_files import ClientFiles, new_password
from penstock.certificates.cluster_secrets import FILE as SECRETS
from penstock.certificates.cluster_secrets import ClusterSecrets
from penstock.certificates.directory import CertificateDirectory, leaf_of
from penstock.certificates.issuing import issue_node, renew, write_issued
from penstock.model.secret import Secret

RENEWED_BEFORE: Final = timedelta(days=30)


class SecuredCluster:
    """The certificates of a cluster's nodes, what they alone know, and the files of its first user."""

    def __init__(self, path: Path) -> None:
        self.directory = CertificateDirectory(path)
        self.admin = ClientFiles(path)
        self.secrets = ClusterSecrets(path / SECRETS)

    def prepare(self, cluster_id: str, hosts: Mapping[int, Sequence[str]], *, now: datetime) -> None:
        """Authorities and a certificate for each node, by the names and addresses it is reached at.

        A node's certificate that ends within a month is renewed, if the authority's key is still here.
        """
        if any(not self.directory.has(role) for role in Role):
            self.directory.create(cluster_id, now=now)
        self.directory.publish()
        for node_id, names in hosts.items():
            path = self.directory.node(node_id)
            if not path.exists():
                authority = self.directory.open(Role.CLUSTER)
                write_issued(issue_node(authority, node_id, names, now=now), path)
            elif leaf_of(path).not_valid_after_utc - now < RENEWED_BEFORE and self._can_sign():
                write_issued(renew(self.directory.open(Role.CLUSTER), leaf_of(path), now=now), path, replace=True)

    def cluster_id(self) -> str | None:
        """Of the authorities, when they are there: whoever was killed before the nodes were formatted goes on."""
        return self.directory.open(Role.CLUSTER).cluster_id if self._can_sign() else None

    def invite(self, bootstrap: Sequence[str]) -> Secret:
        """The password of the first user of a cluster that is not formatted yet, and the files that have it."""
        password = self.admin.password() or new_password()
        self.admin.write(bootstrap, password)
        return password

    def reach(self, bootstrap: Sequence[str]) -> bool:
        """The first user's files name these addresses from now on. False when they are gone, and the password too."""
        password = self.admin.password()
        if password is not None:
            self.admin.write(bootstrap, password)
        return password is not None

    @property
    def fingerprint(self) -> str:
        """Of the authority that signs nodes, for people who are given its certificate over some wire."""
        return fingerprint_of(load_certificates(self.directory.trusted.read_bytes(), self.directory.trusted)[-1])

    def _can_sign(self) -> bool:
        return self.directory.has(Role.CLUSTER) and (self.directory.authority_at(Role.CLUSTER) / "ca.key").exists()
