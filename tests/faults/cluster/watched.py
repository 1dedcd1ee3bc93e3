"""A cluster whose nodes have an admin page, and what the pages say: who claims to be ready, and who goes on."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.compat.cluster import ClusterNode, Host, PenstockCluster, loopback_host
from tests.compat.processes import free_ports
from tests.patience import Patience, within

LEADER = "kafka_server_raftmetrics_current_leader"
APPLIED = "kafka_server_brokermetadatametrics_last_applied_record_offset"
# A node that others are ahead of for so long is not about to catch up.
FROZEN_S = 20.0
ANSWER_S = 3.0


class Told(NamedTuple):
    """What a node says: whether it is ready, up to which metadata record it has acted, and who leads the quorum."""

    ready: bool
    applied: int
    leader: int = -1


class WatchedCluster(PenstockCluster):
    """Nodes whose admin page listens beside them."""

    # Faults last a few seconds, and some of them have to outlast a session.
    stretch_max = 3.0

    def __init__(
        self,
        home: Path,
        nodes: int = 3,
        *,
        roles: Mapping[int, str] | None = None,
        properties: Mapping[str, str] | None = None,
        host: Callable[[int], Host] = loopback_host,
    ) -> None:
        self._admin_ports: dict[int, int] = {}
        super().__init__(home, nodes, roles=roles, properties=properties, host=host)

    def properties(self, node: ClusterNode) -> dict[str, str]:
        return {**super().properties(node), "penstock.admin.listener": f"{node.host.address}:{self.admin_port(node)}"}

    def admin_port(self, node: ClusterNode) -> int:
        if node.node_id not in self._admin_ports:
            (self._admin_ports[node.node_id],) = free_ports(1)
        return self._admin_ports[node.node_id]

    def told(self, node: ClusterNode, *, timeout_s: float = ANSWER_S) -> Told:
        """OSError when it does not answer."""
        try:
            status, _ = self._page(node, "/readyz", timeout_s)
            numbers = self.numbers(node, timeout_s=timeout_s)
        except http.client.HTTPException as broken:
            raise ConnectionError(f"node {node.node_id}: {broken!r}") from broken
        return Told(status == 200, int(numbers.get(APPLIED, -1)), int(numbers.get(LEADER, -1)))

    def numbers(self, node: ClusterNode, *, timeout_s: float = ANSWER_S) -> dict[str, float]:
        """Its page of metrics, by name and labels."""
        _, page = self._page(node, "/metrics", timeout_s)
        samples = (line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def _page(self, node: ClusterNode, path: str, timeout_s: float = ANSWER_S) -> tuple[int, str]:
        link = http.client.HTTPConnection(node.host.address, self.admin_port(node), timeout=within(timeout_s))
        try:
            link.request("GET", path)
            reply = link.getresponse()
            return reply.status, reply.read().decode()
        finally:
            link.close()

    def reasons(self, node: ClusterNode) -> list[str]:
        """Why it is not ready, as it says."""
        found: list[str] = json.loads(self._page(node, "/readyz")[1])["reasons"]
        return found


@dataclass
class _Seen:
    applied: int
    goal: int
    patience: Patience


class FrozenWatch:
    """Finds a node that says that it is ready while the others' metadata moves and its own does not.

    It is told what the nodes that nothing is wrong with say; a node behind the furthest of them gets a deadline to
    reach what that one had, and a new one whenever it does.
    """

    def __init__(self, frozen_s: float = FROZEN_S) -> None:
        self._frozen_s = frozen_s
        self._behind: dict[int, _Seen] = {}

    def look(self, told: Mapping[int, Told]) -> list[str]:
        """A sentence for each node that is ready and frozen."""
        furthest = max((each.applied for each in told.values()), default=-1)
        for node_id in [*self._behind]:
            if node_id not in told:
                del self._behind[node_id]
        found = []
        for node_id, each in told.items():
            seen = self._behind.get(node_id)
            if not each.ready or each.applied >= furthest or (seen and each.applied >= seen.goal):
                self._behind.pop(node_id, None)
            elif seen is None:
                self._behind[node_id] = _Seen(each.applied, furthest, Patience(self._frozen_s))
            elif seen.patience.over():
                found.append(
                    f"node {node_id} says that it is ready and stands at metadata offset {each.applied}; "
                    f"others were at {seen.goal} for {self._frozen_s:.0f} s and are at {furthest}"
                )
        return found
