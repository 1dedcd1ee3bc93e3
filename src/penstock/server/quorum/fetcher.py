"""Follows the leader of the quorum: one loop that fetches, appends, syncs and fetches again.

While nobody is known to lead it asks one node after the other; each answer says who does. A leader that does not answer
is asked in turn with the others, because they may know a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import INCONSISTENT_CLUSTER_ID, Corrupt, PenstockError, error_of
from penstock.model.ids import METADATA_TOPIC_ID, NO_NODE, Epoch, NodeId, Offset
from penstock.protocol.messages.fetch import FetchRequest
from penstock.quorum.fetching import LogPoint
from penstock.server.loops.duty import duty
from penstock.transport.dial import LinkError, Unreachable

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.protocol.messages.fetch import FetchResponse
    from penstock.quorum.fetching import Wish
    from penstock.quorum.state import ReplicaKey
    from penstock.server.peers import Address, Peers
    from penstock.server.quorum.contacts import Contacts
    from penstock.server.quorum.snapshot_fetcher import SnapshotFetcher

log = logging.getLogger("penstock.quorum")

PURPOSE: Final = "quorum-fetch"
FETCH_VERSION: Final = 18
_WAIT_MAX_MS: Final = 500
_COMPLAIN_EVERY_MS: Final = 10_000.0
_AT_ONCE_BYTES: Final = 256 << 10
"""What can be decoded without holding the loop for long; a larger batch comes all the same."""


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """Times and sizes of the loop."""

    fetch_timeout_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    max_bytes: int

    @property
    def bytes_at_once(self) -> int:
        return min(self.max_bytes, _AT_ONCE_BYTES)

    @property
    def wait_ms(self) -> int:
        """How long the leader may hold a fetch: well below the time after which we would miss it."""
        return min(_WAIT_MAX_MS, max(self.fetch_timeout_ms // 3, 1))


class Follower(Protocol):
    """What the quorum driver does for the loop."""

    def wish(self) -> Wish | None:
        """What to fetch now; None while this node leads or stands for election."""

    def address_of(self, node: NodeId) -> Address | None: ...
    def to_ask(self) -> list[Address]: ...
    def heard(self, epoch: Epoch, leader: NodeId) -> None: ...
    def leader_gone(self, leader: NodeId, epoch: Epoch) -> None:
        """Nobody listens where the leader did."""

    async def idle(self) -> None:
        """Returns when everything heard has been acted on."""

    def take(self, wish: Wish, data: memoryview, high_watermark: Offset) -> None:
        """Appends what the leader sent."""

    async def cut(self, wish: Wish, diverging: LogPoint) -> None: ...
    async def settle(self, within_ms: float) -> None:
        """Syncs what was appended where the next fetch promises that it is on the platter; a hanging disk has time."""


class QuorumFetcher:
    """The loop. `wake` it when who leads, or what this node is, has changed."""

    def __init__(
        self,
        follower: Follower,
        peers: Peers,
        contacts: Contacts,
        snapshots: SnapshotFetcher,
        clock: Clock,
        me: ReplicaKey,
        cluster_id: str,
        settings: FetcherSettings,
    ) -> None:
        self._follower, self._peers, self._contacts, self._snapshots = follower, peers, contacts, snapshots
        self._clock, self._me, self._cluster_id, self._settings = clock, me, cluster_id, settings
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._turn = 0
        self._leader_silent = False
        self._followed: tuple[Epoch, NodeId] | None = None
        self._complained_ms: float | None = None

    def start(self) -> None:
        self._task = duty(self._run(), name="quorum fetcher")

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def stopped(self) -> None:
        """Stops, and returns when nothing of it runs any more."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._follower.idle()
            self._woken.clear()
            wish = self._follower.wish()
            if wish is None:
                await self._woken.wait()
                continue
            if (wish.epoch, wish.leader) != self._followed:
                self._followed, self._leader_silent = (wish.epoch, wish.leader), False
            try:
                progressed = await self._once(wish)
            except (LinkError, PenstockError, ValueError) as failure:
                # A peer that talks nonsense is no better than one that is silent.
                self._complain("the metadata log cannot be fetched: %s", failure)
                progressed = False
            if not progressed:
                await self._pause(self._settings.retry_backoff_ms)

    async def _once(self, wish: Wish) -> bool:
        """One fetch; whether the next may follow at once."""
        to = self._target(wish)
        if to is None:
            return False
        reply = await self._asked(to, wish)
        if reply is None:
            return False
        return await self._take(to, wish, reply)

    def _target(self, wish: Wish) -> Address | None:
        known = self._follower.address_of(wish.leader) if wish.leader != NO_NODE else None
        if known is not None and not self._leader_silent:
            return known
        self._leader_silent = False
        others = self._follower.to_ask()
        if not others:
            return known
        self._turn += 1
        return others[self._turn % len(others)]

    async def _asked(self, to: Address, wish: Wish) -> FetchResponse | None:
        """The reply; None when there is none, or when something else is to be fetched by now."""
        timeout_ms = self._settings.request_timeout_ms + self._settings.wait_ms
        asking = asyncio.ensure_future(
            self._peers.ask(to, self._request(wish), FETCH_VERSION, purpose=PURPOSE, timeout_ms=timeout_ms)
        )
        try:
            while not asking.done():
                waking = asyncio.ensure_future(self._woken.wait())
                try:
                    await asyncio.wait((asking, waking), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waking.cancel()
                if not asking.done() and self._follower.wish() != wish:
                    return None
                self._woken.clear()
            reply: FetchResponse = asking.result()
            return reply
        except LinkError as failure:
            log.debug("no metadata from %s: %s", to, failure)
            self._leader_silent = True
            if isinstance(failure, Unreachable) and to == self._follower.address_of(wish.leader):
                self._follower.leader_gone(wish.leader, wish.epoch)
            return None
        finally:
            asking.cancel()

    def _request(self, wish: Wish) -> FetchRequest:
        part = FetchRequest.FetchPartition(
            current_leader_epoch=wish.epoch,
            fetch_offset=wish.offset,
            last_fetched_epoch=wish.last_epoch,
            log_start_offset=-1,
            partition_max_bytes=self._settings.bytes_at_once,
            replica_directory_id=self._me.directory,
            high_watermark=-1 if wish.high_watermark is None else wish.high_watermark,
        )
        topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[part])
        return FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=FetchRequest.ReplicaState(replica_id=self._me.id),
            max_wait_ms=self._settings.wait_ms,
            max_bytes=self._settings.bytes_at_once,
            topics=[topic],
        )

    async def _take(self, to: Address, wish: Wish, reply: FetchResponse) -> bool:
        if reply.error_code:
            error = error_of(reply.error_code)
            if error is INCONSISTENT_CLUSTER_ID:
                self._complain("%s belongs to another cluster; this node is in cluster %s", to, self._cluster_id)
            else:
                self._complain("%s refuses fetches of the metadata log: %s", to, error.name)
            self._leader_silent = True
            return False
        part = _only_part(reply)
        epoch, leader = Epoch(part.current_leader.leader_epoch), NodeId(part.current_leader.leader_id)
        self._contacts.tell_all(epoch, reply.node_endpoints)
        if epoch >= 0:
            self._follower.heard(epoch, leader)
            await self._follower.idle()
        if part.error_code:
            self._leader_silent = True
            return self._knows_more(wish)
        now = self._follower.wish()
        if now is None or (now.epoch, now.offset, now.leader) != (wish.epoch, wish.offset, leader):
            # The log moved, or another leads: what was fetched no longer fits.
            return True
        if part.snapshot_id.end_offset >= 0:
            point = LogPoint(Offset(part.snapshot_id.end_offset), Epoch(part.snapshot_id.epoch))
            return await self._snapshots.fetch(to, now, point)
        if part.diverging_epoch.end_offset >= 0:
            diverging = LogPoint(Offset(part.diverging_epoch.end_offset), Epoch(part.diverging_epoch.epoch))
            await self._follower.cut(now, diverging)
        else:
            self._follower.take(now, _bytes_of(part), Offset(part.high_watermark))
        await self._follower.settle(self._settings.wait_ms)
        return True

    def _knows_more(self, wish: Wish) -> bool:
        """Whether a refusal told of a leader or an epoch that we did not know."""
        now = self._follower.wish()
        return now is not None and now.leader != NO_NODE and (now.epoch, now.leader) != (wish.epoch, wish.leader)

    async def _pause(self, wait_ms: float) -> None:
        # Not `wait_for`: in Python 3.11 it drops a cancellation that comes together with the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1_000):
                await self._woken.wait()

    def _complain(self, words: str, *values: object) -> None:
        now = self._clock.monotonic_ms()
        if self._complained_ms is None or now - self._complained_ms >= _COMPLAIN_EVERY_MS:
            self._complained_ms = now
            log.warning(words, *values)


def _only_part(reply: FetchResponse) -> FetchResponse.PartitionData:
    parts = [part for topic in reply.responses for part in topic.partitions]
    if len(parts) != 1:
        raise Corrupt("fetch", 0, f"a reply of {len(parts)} partitions to a fetch of one")
    return parts[0]


def _bytes_of(part: FetchResponse.PartitionData) -> memoryview:
    assert part.records is None or isinstance(part.records, bytes | bytearray | memoryview), "it came over the wire"
    return memoryview(part.records or b"")
