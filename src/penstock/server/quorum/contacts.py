"""Where the nodes of the quorum listen: what the voter set says, what nodes tell of each other, whom to dial first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.server.peers import Address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.model.ids import Epoch, NodeId
    from penstock.quorum.voters import Voter, VoterSet

_TOLD_MAX: Final = 1_000


class Contacts:
    """Addresses of controllers. `listener_name` is preferred where a node has several."""

    def __init__(self, me: NodeId, bootstrap: Sequence[Address], listener_name: str) -> None:
        self._me, self._bootstrap, self._listener_name = me, bootstrap, listener_name
        self._told: dict[NodeId, tuple[Epoch, Address]] = {}

    def tell(self, epoch: Epoch, node: NodeId, host: str, port: int) -> None:
        """Somebody said in `epoch` where a node listens."""
        known = self._told.get(node)
        if not host or port <= 0 or (known is not None and known[0] > epoch):
            return
        if known is None and len(self._told) >= _TOLD_MAX:
            del self._told[next(iter(self._told))]
        self._told[node] = (epoch, Address(host, port))

    def tell_all(self, epoch: Epoch, endpoints: Iterable[object]) -> None:
        """`node_endpoints` of a reply."""
        for each in endpoints:
            self.tell(epoch, each.node_id, each.host, each.port)  # type: ignore[attr-defined]  # five classes have these

    def address_of(self, node: NodeId, epoch: Epoch, voters: VoterSet) -> Address | None:
        """What was said in this epoch is newer than what the log says."""
        told, voter = self._told.get(node), voters.get(node)
        if told is not None and told[0] == epoch:
            return self._at_own_listener(told[1], voter)
        named = self._endpoint(voter) if voter is not None else None
        return named or (told[1] if told is not None else None)

    def _at_own_listener(self, said: Address, voter: Voter | None) -> Address:
        """Whoever said it may dial another listener of that node than we do, as while controllers move to a new one."""
        points = {} if voter is None else {point.name: Address(point.host, point.port) for point in voter.endpoints}
        return points.get(self._listener_name, said) if said in points.values() else said

    def _endpoint(self, voter: Voter) -> Address | None:
        points = sorted(voter.endpoints, key=lambda point: point.name != self._listener_name)
        return Address(points[0].host, points[0].port) if points else None

    def to_ask(self, epoch: Epoch, voters: VoterSet, own: Address | None) -> list[Address]:
        """Whom to ask who leads: the other voters, then those of the configuration."""
        found = [self.address_of(voter.key.id, epoch, voters) for voter in voters.others(self._me)]
        return [each for each in dict.fromkeys([*found, *self._bootstrap]) if each is not None and each != own]
