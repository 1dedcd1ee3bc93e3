"""Whether followers that are behind come nearer: what each had at the last scrapes is remembered, only for those."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.model.ids import NodeId, Offset, PartitionKey
    from penstock.model.ports import Clock
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.neighbours import Neighbours

STILL_MS: Final = 60_000.0

Seen = dict[tuple["PartitionKey", "NodeId"], tuple["Offset", float]]
"""The end of each follower that is behind, and since when it has been there."""


class FollowerWatch:
    """Costs nothing between scrapes, and nothing for followers that are in sync."""

    __slots__ = ("clock", "neighbours", "seen")

    def __init__(self, clock: Clock, neighbours: Neighbours) -> None:
        self.clock, self.neighbours = clock, neighbours
        self.seen: Seen = {}

    def look(self) -> Look:
        return Look(self)


class Look:
    """One scrape: every partition that lacks replicas in sync is looked `at`, then `still` counts."""

    __slots__ = ("_now", "_seen", "_watch")

    def __init__(self, watch: FollowerWatch) -> None:
        self._watch, self._now = watch, watch.clock.monotonic_ms()
        self._seen: Seen = {}

    def at(self, hosted: Hosted) -> None:
        state, neighbours, before = hosted.state, self._watch.neighbours, self._watch.seen
        for node, follower in state.followers.items():
            if node in state.isr or follower.end >= state.end or not neighbours.is_alive(node):
                continue
            end, since = before.get((hosted.key, node), (follower.end, self._now))
            self._seen[hosted.key, node] = (follower.end, since if end == follower.end else self._now)

    def still(self) -> int:
        """How many followers have lacked the same records for a minute, although their brokers are alive."""
        self._watch.seen = self._seen
        return sum(1 for _, since in self._seen.values() if self._now - since >= STILL_MS)
