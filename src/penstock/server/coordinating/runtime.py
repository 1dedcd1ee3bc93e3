"""Runs one kind of coordinator on a node: which shards live here, who asks them, and when they look at the clock.

Whoever leads a partition of the coordinator's topic coordinates the keys that belong to it. The runtime follows the
published image: a partition that this node begins to lead is loaded at once, in slices; one that it leads no longer is
dropped; one that it goes on to lead in another epoch keeps its shard, which is told.
A partition with an empty log costs an entry in a table, and a shard without deadlines costs nothing as time passes.

Nothing here knows what is coordinated: a `Kind` says where it lives, a `Shard` decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from penstock.coordinators.decision import Decision, Moment
from penstock.model.errors import INVALID_TXN_STATE, NONE, NOT_COORDINATOR, NOT_LEADER_OR_FOLLOWER, Refused
from penstock.replication.verifying import committer_told
from penstock.server.coordinating.chores import Chores
from penstock.server.coordinating.home import Home
from penstock.server.coordinating.kind import S
from penstock.server.coordinating.promise import told
from penstock.server.loops.duty import on_duty
from penstock.transport.deadline import Deadline

if TYPE_CHECKING:
    from penstock.coordinators.decision import ProducerEpoch
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.errors import ErrorCode, StorageFailed
    from penstock.model.ids import Epoch, NodeId, Offset, Uuid
    from penstock.model.ports import Clock
    from penstock.replication.verifying import VerifyMode
    from penstock.server.coordinating.home import Asker
    from penstock.server.coordinating.kind import Kind
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.producing.transactions import Transactions

T = TypeVar("T")

_NEVER: Final = 1 << 62
_NO_SEQUENCE: Final = -1
_AGAIN_MS: Final = 1_000
"""When to try again what could not be written."""
_PLACES_MAX: Final = 1_000
"""The homes of so many keys are remembered, which saves microseconds each; keys come and go for years."""
_APPEARS_MS: Final = 1_000
"""How long the first who need the topic wait until this node has heard of it."""


class Runtime(Generic[S]):
    """The door of one kind of coordinator, for handlers (`ask`, `act`, `look`) and for its effects (`tell`)."""

    def __init__(
        self,
        kind: Kind[S],
        me: NodeId,
        partitions: PartitionDriver,
        clock: Clock,
        *,
        make_topic: Callable[[str], Awaitable[bool]],
    ) -> None:
        self.kind = kind
        self._me, self._partitions, self._clock, self._make_topic = me, partitions, clock, make_topic
        self.log = logging.getLogger(f"penstock.{kind.name}")
        self._image: ClusterImage | None = None
        self._topic_id: Uuid | None = None
        self._partition_count = 0
        self._homes: dict[int, Home[S]] = {}
        self._places: dict[str, int] = {}
        self._chores = Chores(clock, self.log)
        self._timer: Deadline | None = None
        self._due_at = _NEVER
        self._closed = self._hurried = False
        self._waiting_topic: list[asyncio.Future[None]] = []
        self.written: Counter[str] = Counter()
        self.transactions: Transactions | None = None
        """Without it nothing is written as part of a producer's transaction."""

    def __iter__(self) -> Iterator[Home[S]]:
        """The partitions of the topic that this node leads."""
        return iter(self._homes.values())

    # -- finding

    def home_of(self, key: str) -> int:
        """The partition of the topic that a key belongs to."""
        place = self._places.get(key)
        if place is None:
            place = self.kind.partition_of(key, self._partition_count or self.kind.partitions_wanted())
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            self._places[key] = place
        return place

    async def topic_made(self) -> None:
        """Returns when the topic shows in the published image, or cannot be made now."""
        made = await self._make_topic(self.kind.topic)
        if made and self._topic_id is None and not self._closed:
            # The controller has it; our image follows.
            appeared = asyncio.get_running_loop().create_future()
            self._waiting_topic.append(appeared)
            await asyncio.wait([appeared], timeout=_APPEARS_MS / 1_000)

    def _topic_appeared(self) -> None:
        waiting, self._waiting_topic = self._waiting_topic, []
        for appeared in waiting:
            if not appeared.done():
                appeared.set_result(None)

    # -- requests

    def ask(self, key: str, request: object, asker: Asker, refuse: Callable[[ErrorCode], T]) -> T | asyncio.Future[T]:
        """Puts one request about one key to its shard: the reply, or a future of it when it waits.

        `refuse` makes the reply when this node does not coordinate the key, or not now. It is of the same class as the
        reply that the shard makes: `decide` answers a request with the response of its API.
        """
        home = self._homes.get(self.home_of(key))
        return refuse(NOT_COORDINATOR) if home is None else home.ask(request, asker, refuse)

    def ask_in_transaction(
        self,
        key: str,
        request: object,
        asker: Asker,
        refuse: Callable[[ErrorCode], T],
        *,
        transactional_id: str,
        producer: ProducerEpoch,
        mode: VerifyMode,
    ) -> T | Awaitable[T]:
        """The same for a request whose records become part of a producer's transaction.

        Before it begins to be that here, its coordinator has to agree; then the shard is asked.
        """
        index, transactions = self.home_of(key), self.transactions
        if transactions is None:
            return refuse(INVALID_TXN_STATE)
        home = self._homes.get(index)
        if home is None:
            return refuse(NOT_COORDINATOR)
        try:
            guard, asks = transactions.begin(home.partition(), producer.id, producer.epoch, _NO_SEQUENCE, mode)
        except Refused as refusal:
            return refuse(told(refusal.error))
        if not asks:
            return home.ask(request, asker, refuse, guard)

        async def after_leave() -> T:
            place = (self.kind.topic, index)
            answers = await transactions.ask(transactional_id, producer.id, producer.epoch, (place,), mode)
            error, home = committer_told(answers.get(place), mode), self._homes.get(index)
            if error is not NONE:
                return refuse(error)
            if home is None:
                return refuse(NOT_COORDINATOR)
            reply = home.ask(request, asker, refuse, guard)
            return await reply if isinstance(reply, asyncio.Future) else reply

        return after_leave()

    def act(
        self, key: str, decide: Callable[[S, Moment], Decision], refuse: Callable[[ErrorCode], T]
    ) -> T | asyncio.Future[T]:
        """The same for a decision about one key that is not a whole request."""
        home = self._homes.get(self.home_of(key))
        return refuse(NOT_COORDINATOR) if home is None else home.act(decide, refuse)

    def look(self, key: str, read: Callable[[S, Moment], T], refuse: Callable[[ErrorCode], T]) -> T | asyncio.Future[T]:
        """What `read` sees of a key's shard, as soon as it is committed."""
        home = self._homes.get(self.home_of(key))
        return refuse(NOT_COORDINATOR) if home is None else home.look(read, refuse)

    def look_at_all(
        self, read: Callable[[S, Moment], T], refuse: Callable[[ErrorCode], T]
    ) -> list[T | asyncio.Future[T]]:
        """The same for every shard here that may know something."""
        return [home.look(read, refuse) for home in self._homes.values() if home.shard is not None or home.is_loading]

    # -- what becomes of effects and transactions

    def tell(self, index: int, epoch: Epoch, decide: Callable[[S, Moment], Decision]) -> bool:
        """What became of an effect that the shard in partition `index` let out in `epoch`; whether it was heard."""
        home = self._homes.get(index)
        return home is not None and home.tell(epoch, decide)

    def marked(self, index: int, producer_id: int, *, committed: bool, end: Offset) -> None:
        """The marker of a transaction was appended to partition `index`, which ends at `end` now."""
        home = self._homes.get(index)
        if home is not None:
            home.marked(producer_id, committed=committed, end=end)

    # -- following the image

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes a published image; subscribe it after the partition driver, whose partitions have their roles then."""
        if self._closed:
            return
        self._image = image
        self.kind.follow(image, delta)
        topic = image.topic(self.kind.topic)
        if (None if topic is None else topic.id) != self._topic_id:
            self._drop_all()
            self._topic_id = None if topic is None else topic.id
            # How keys are spread stays as it was at first: who adds partitions later finds them where they were.
            self._partition_count = 0 if topic is None else len(topic.partitions)
            self._places.clear()
            self._topic_appeared()
        if topic is not None:
            for index in sorted(delta.partitions.get(topic.id, ())):
                partition = topic.partitions[index]
                if partition.leader == self._me:
                    self._lead(index, partition.leader_epoch)
                else:
                    self._leave(index)
        if delta.created or delta.deleted or delta.partitions or delta.configs or delta.features or delta.brokers:
            for home in self._homes.values():
                if home.shard is not None:
                    self._chores.add(home.image_changed(image, delta))

    def _lead(self, index: int, epoch: Epoch) -> None:
        home = self._homes.get(index)
        if home is None:
            home = self._homes[index] = Home(index, epoch, self.kind, self)
            self._chores.add(home.loading())
            return
        work = home.lead_on(epoch)
        if home.failed:
            self._chores.add(home.loading())
        elif work is not None:
            self._chores.add(work)

    def _leave(self, index: int) -> None:
        home = self._homes.pop(index, None)
        if home is not None:
            home.close()

    def _drop_all(self) -> None:
        for index in list(self._homes):
            self._leave(index)

    def close(self) -> None:
        """Answers everybody who waits, and does nothing by itself any more."""
        self._closed = True
        self._topic_appeared()
        self._chores.clear()
        self._drop_all()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- time

    def due(self, at: int) -> None:
        if at >= self._due_at:
            return
        self._due_at = at
        if self._timer is None:
            ring = on_duty(f"the timer of {self.kind.name}", self._tick)
            self._timer = Deadline(asyncio.get_running_loop(), self._clock, ring)
        self._timer.set(at)

    def _tick(self) -> None:
        self._due_at = _NEVER
        now = int(self._clock.monotonic_ms())
        for home in self._homes.values():
            at = None if home.shard is None or home.busy else home.shard.next_deadline()
            if at is None:
                continue
            if at > now:
                self.due(at)
            elif home.writable:
                home.busy = True
                self._chores.add(home.expire())
            else:
                self.due(now + _AGAIN_MS)

    # -- the surroundings of homes

    def moment(self, committed: Offset) -> Moment:
        return Moment(self._clock.now_ms(), int(self._clock.monotonic_ms()), committed)

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()

    def hosted_at(self, index: int) -> Hosted:
        if self._topic_id is None:
            raise Refused(NOT_LEADER_OR_FOLLOWER, f"{self.kind.place} is gone")
        return self._partitions.by_id(self._topic_id, index)

    def may_hurry(self) -> bool:
        """Once in each turn of the loop: a request may be about every partition here."""
        if self._hurried:
            return False
        self._hurried = True
        asyncio.get_running_loop().call_soon(self._calm_down)
        return True

    def _calm_down(self) -> None:
        self._hurried = False

    def lost(self, home: Home[S]) -> None:
        if self._homes.get(home.index) is home:
            self._chores.add(home.loading())

    def storage_failed(self, failure: StorageFailed) -> None:
        self._partitions.storage_failed(failure)

    def image(self) -> ClusterImage:
        assert self._image is not None, "partitions come from an image"
        return self._image
