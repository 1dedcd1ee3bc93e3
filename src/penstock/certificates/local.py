"""A secured cluster on this machine alone, as `penstock dev --secure` and the test kit have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.certificates.client_files import ADMIN
from penstock.certificates.cluster import SecuredCluster
from penstock.certificates.node_settings import MECHANISMS, Ports, listeners, security_settings
from penstock.certificates.users import scram_records

if TYPE_CHECKING:
    from penstock.metadata.records import VersionedRecord

HOST: Final = "127.0.0.1"
HOSTS: Final = (HOST, "localhost", "::1")
SECURITY: Final = "security"
KNOWN_NODES: Final = 16
"""So many nodes are super users from the beginning, whether they are there or not: only the cluster's authority could
sign another one, and what nodes are told at their start does not change when one is added."""


class LocalSecurity(SecuredCluster):
    """What is in the folder `security` beside the data of a cluster."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.absolute() / SECURITY)

    def prepare_nodes(self, node_ids: Iterable[int], cluster_id: str | None = None) -> str:
        """Whatever is missing of the certificates of these nodes; answers with the cluster's id, a new one if there
        is none yet."""
        from random import SystemRandom

        from penstock.server.formatting import new_cluster_id

        chosen = cluster_id or self.cluster_id() or new_cluster_id(SystemRandom())
        self.prepare(chosen, dict.fromkeys(node_ids, HOSTS), now=datetime.now(UTC))
        return chosen

    def settings(self, cluster_id: str, node_id: int, ports: Ports) -> dict[str, str]:
        """What makes a node a secured one, listeners included."""
        known = range(1, KNOWN_NODES + 1)
        paths = {"key_store": self.directory.node(node_id), "trust_store": self.directory.trusted}
        return {
            "listeners": listeners(HOST, ports),
            **security_settings(cluster_id, known, admin=ADMIN, **paths),
            **self.secrets.settings(),
        }

    def first_user(self, bootstrap: Sequence[str]) -> list[VersionedRecord]:
        """The records of `admin`, whose files are written here, for a cluster that is formatted next."""
        return scram_records(ADMIN, self.invite(bootstrap), MECHANISMS)
