"""A cluster whose nodes run different releases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.compat.cluster import ClusterNode, PenstockCluster

TODAY = None
"""The code of this tree, in place of a folder with that of a release."""


class MixedCluster(PenstockCluster):
    """Three nodes, if not said otherwise; `code` says what each of them runs when it is started next."""

    def __init__(
        self, home: Path, release: Path, properties: Mapping[str, str] | None = None, *, nodes: int = 3
    ) -> None:  # fmt: skip
        super().__init__(home, nodes, properties=properties)
        self.release = release
        self.changes = self.kills = 0
        self.code: dict[int, Path | None] = dict.fromkeys(self.nodes, release)

    def command(self, node: ClusterNode) -> list[str]:
        return [*self._as(self.code[node.node_id]), *super().command(node)]

    def format_command(self, node: ClusterNode, voters: str) -> list[str]:
        return [*self._as(self.code[node.node_id]), *super().format_command(node, voters)]

    @staticmethod
    def _as(release: Path | None) -> list[str]:
        return [] if release is TODAY else ["env", f"PYTHONPATH={release}"]

    def change(self, node_id: int, to: Path | None, *, by_kill: bool = False) -> None:
        """One node ends, cleanly or by kill -9, and comes back with other code."""
        node = self.nodes[node_id]
        self.changes += 1
        self.kills += by_kill
        if by_kill:
            node.kill()
        else:
            assert node.stop() == 0, f"node {node_id} did not stop cleanly:\n{self.last_words()}"
        self.code[node_id] = to
        self.start(node_id)

    def assert_runs(self, node_id: int) -> None:
        """The process has mapped the package from where it should."""
        node = self.nodes[node_id]
        words = Path(f"/proc/{node.pid}/environ").read_bytes().split(b"\0")
        found = [word for word in words if word.startswith(b"PYTHONPATH=")]
        wanted = self.code[node_id]
        assert (f"PYTHONPATH={wanted}".encode() in found) == (wanted is not TODAY), f"node {node_id} runs with {found}"
