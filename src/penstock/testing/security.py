"""`broker(secure=True)`, `cluster(secure=True)`: certificates, the first user, and what its clients are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.certificates.client_files import ADMIN, MECHANISM
from penstock.certificates.cluster_secrets import overridden
from penstock.certificates.local import LocalSecurity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.certificates import ClientFiles
    from penstock.certificates.node_settings import Ports
    from penstock.metadata.records import VersionedRecord


class EmbeddedSecurity:
    """Of one cluster, in `security/` of its data directory. The same for all its nodes."""

    def __init__(self, data_dir: str) -> None:
        self._local = LocalSecurity(Path(data_dir))
        self.cluster_id = ""

    @property
    def files(self) -> ClientFiles:
        return self._local.admin

    def prepare(self, node_ids: Iterable[int]) -> None:
        self.cluster_id = self._local.prepare_nodes(node_ids, self.cluster_id or None)
        self._local.secrets.make()

    def settings(self, node_id: int, ports: Ports, overrides: Mapping[str, str]) -> dict[str, str]:
        return overridden(self._local.settings(self.cluster_id, node_id, ports), overrides)

    def first_user(self) -> list[VersionedRecord]:
        """Its files name no address before the ports are known."""
        return self._local.first_user([])

    def reach(self, bootstrap: str) -> None:
        assert self._local.reach(bootstrap.split(",")), "the first user's files were written before"

    def client_settings(self, bootstrap: str) -> dict[str, Any]:
        """Keywords for Penstock's own clients."""
        return {
            "bootstrap_servers": bootstrap,
            "username": ADMIN,
            "password": self._password(),
            "cafile": str(self.files.trusted),
        }

    def librdkafka_settings(self, bootstrap: str) -> dict[str, str]:
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.files.trusted),
            "sasl.mechanism": MECHANISM,
            "sasl.username": ADMIN,
            "sasl.password": self._password(),
        }

    def _password(self) -> str:
        password = self.files.password()
        assert password is not None, "the first user's files were written before"
        return password.reveal()
