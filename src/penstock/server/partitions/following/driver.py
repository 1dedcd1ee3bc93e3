"""Keeps the partitions that this node follows level with their leaders.

Partitions are spread over loops: `num.replica.fetchers` of them for each leading broker. See `fetcher.py`
for what a loop does, and `intake.py` for what an answer does to a log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.replication.throttle import Throttle
from penstock.server.loops.duty import duty
from penstock.server.partitions.following.fetcher import FollowerFetcher, Lines

if TYPE_CHECKING:
    from penstock.model.errors import StorageFailed
    from penstock.model.ids import NodeId, PartitionKey
    from penstock.model.ports import Clock
    from penstock.server.live_settings import LiveSettings
    from penstock.server.partitions.following.intake import Followed
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.peers import Address

Home = tuple["NodeId", int]
"""Which loop a partition is in: its leader, and the number of the loop."""


class FollowerDriver:
    """Told by the partition driver whom to follow; there is at most one loop for a partition at any time."""

    def __init__(
        self,
        me: NodeId,
        peers: Lines,
        clock: Clock,
        settings: LiveSettings,
        *,
        broker_epoch: Callable[[], int],
        address_of: Callable[[NodeId], Address | None],
        storage_failed: Callable[[StorageFailed], None],
        throttle_rate: Callable[[], int],
    ) -> None:
        self._me, self._peers, self._clock, self._settings = me, peers, clock, settings
        self._broker_epoch, self._address_of = broker_epoch, address_of
        self._storage_failed, self._throttle = storage_failed, Throttle(throttle_rate)
        self._followed: dict[PartitionKey, tuple[Hosted, Home]] = {}
        self._fetchers: dict[Home, FollowerFetcher] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._closed = False
        self._past_bytes_in = 0
        settings.on_change(self._spread_anew)

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def bytes_in(self) -> int:
        """Bytes of batches appended here from leaders, since the start."""
        return self._past_bytes_in + sum(fetcher.bytes_in for fetcher in self._fetchers.values())

    @staticmethod
    def lag_of(following: Followed) -> int:
        """How many committed records a replica here lacks."""
        hosted = following.hosted
        return following.lag(hosted.log.written if hosted.log is not None else 0)

    def held(self) -> dict[PartitionKey, str]:
        """The partitions that are not fetched for now, and why."""
        return {following.key: following.held for following in self.following() if following.held}

    def follow(self, hosted: Hosted) -> None:
        """The partition has a leader that is not this node; called again for each new leader or epoch."""
        if self._closed:
            return
        home = (hosted.state.leader, self._loop_number(hosted.key))
        known = self._followed.get(hosted.key)
        if known is not None and known[1] != home:
            self.leave(hosted)
        if hosted.log is None:
            return  # nothing can be kept of it; a directory comes back only with the node
        self._followed[hosted.key] = (hosted, home)
        fetcher = self._fetchers.get(home)
        if fetcher is None:
            fetcher = self._fetchers[home] = FollowerFetcher(
                self._me,
                *home,
                self._peers,
                self._clock,
                self._settings,
                self._throttle,
                broker_epoch=self._broker_epoch,
                address_of=self._address_of,
                storage_failed=self._storage_failed,
            )
        fetcher.follow(hosted)

    def leave(self, hosted: Hosted) -> None:
        """This node leads the partition, has it no more, or nobody leads it."""
        known = self._followed.pop(hosted.key, None)
        if known is None:
            return
        home = known[1]
        fetcher = self._fetchers[home]
        fetcher.leave(hosted.key)
        if not len(fetcher):
            del self._fetchers[home]
            self._past_bytes_in += fetcher.bytes_in
            ending = duty(fetcher.close(), name="end of a fetcher")
            self._ending[ending] = None
            ending.add_done_callback(lambda ended: self._ending.pop(ended, None))

    def start_moved(self, hosted: Hosted) -> None:
        """The log begins elsewhere, by whoever's doing. Nothing when the partition is not followed."""
        known = self._followed.get(hosted.key)
        if known is not None:
            self._fetchers[known[1]].start_moved(hosted.key)

    async def close(self) -> None:
        """Follows nobody any more. What was fetched is in the logs; what is on its way is dropped."""
        self._closed = True
        for hosted, _ in list(self._followed.values()):
            self.leave(hosted)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def following(self) -> list[Followed]:
        """Every replica here that another broker leads."""
        return [each for fetcher in self._fetchers.values() for each in fetcher.partitions()]

    def _loop_number(self, key: PartitionKey) -> int:
        """Neighbouring partitions of a topic go to different loops."""
        spread = int.from_bytes(key.topic_id[-4:], "big") + key.partition
        return spread % self._settings.number("num.replica.fetchers")

    def _spread_anew(self) -> None:
        """`num.replica.fetchers` may have changed, and what fetches are like."""
        for fetcher in self._fetchers.values():
            fetcher.settings_changed()
        for hosted, home in list(self._followed.values()):
            if home[1] != self._loop_number(hosted.key):
                self.follow(hosted)
