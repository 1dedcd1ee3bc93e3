"""One partition of a coordinator's topic that this node leads, and the shard that lives in it.

Ask, do, tell with no await in between; replies, answers and effects leave when what they stand on is committed, which
on a quiet node is at once. When an append fails, or the shard itself, the shard is dropped, everybody who waits in it
is told NOT_COORDINATOR, and it is made anew from the log: nothing is ever undone.

| | loading | live | failed | closed |
|---|---|---|---|---|
| a request | LOAD_IN_PROGRESS, after a slice of hurry | decided | NOT_COORDINATOR | NOT_COORDINATOR |
| the end of the log | live, or failed if it cannot be replayed | | | |
| a decision cannot be written, or the shard breaks | failed | loading, from the start | | |
| led in another epoch | goes on, and `led` says the newest | stays; `led`; effects under way are void | loading | |
| led by another node | closed | closed; whoever waits is told | closed | |

Effects belong to a tenure: one life of the shard in one leader epoch. Those that wait for their records to be committed
when the tenure ends are never carried out. The records may be in the log all the same, so that whoever comes next, here
or elsewhere, decides the effects again (`Shard.led`); were they let out too, they would happen twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast

from penstock.coordinators.decision import Caller, Decision, Moment
from penstock.coordinators.shard import Demand
from penstock.kernels import read_header
from penstock.model.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Offset
from penstock.server.coordinating.kind import S
from penstock.server.coordinating.loading import Replay
from penstock.server.coordinating.promise import Held, Promise, fail, is_committed, release, told
from penstock.server.coordinating.records import encode_batch
from penstock.server.loops.lasting import LASTING
from penstock.server.loops.slices import Slices

if TYPE_CHECKING:
    from penstock.coordinators.decision import Answer, Effect, ProducerEpoch, StateRecord
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.ids import Epoch
    from penstock.server.coordinating.kind import Kind
    from penstock.server.partitions.hosted import Guard, Hosted

T = TypeVar("T")

_ALL_REPLICAS: Final = -1
_REMOVALS_AT_ONCE: Final = 1_000


class Asker(Protocol):
    """What a shard is told of whoever sent a request."""

    @property
    def client_id(self) -> str | None: ...
    @property
    def client_host(self) -> str: ...
    @property
    def api_version(self) -> int: ...
    def may_describe(self, topic: str) -> bool:
        """Whether the sender may know of a topic."""


class Surroundings(Protocol[S]):
    """What a home needs of the runtime it belongs to."""

    log: logging.Logger
    written: Counter[str]
    """Records written since the start, by the name of their key's class; tombstones do not count."""

    def moment(self, committed: Offset) -> Moment: ...
    def monotonic_ms(self) -> float: ...
    def image(self) -> ClusterImage: ...
    def hosted_at(self, index: int) -> Hosted:
        """The partition of the topic; Refused when it is not here."""

    def due(self, at: int) -> None:
        """A shard wants to look at the clock at `at`."""

    def may_hurry(self) -> bool:
        """Whether a slice of loading may be done for somebody who asks; not for everybody at once."""

    def lost(self, home: Home[S]) -> None:
        """The shard was dropped and has to be loaded again."""

    def storage_failed(self, failure: StorageFailed) -> None: ...


class Tenure:
    """One life of a shard in one leader epoch; effects remember in which they were decided."""

    __slots__ = ("epoch",)

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch


class Home(Generic[S]):
    """Either loading, or live (with a shard, or with an empty log and none yet), or failed or closed: it refuses."""

    __slots__ = (
        "_around", "_closed", "_failed", "_hosted", "_hurried", "_kind", "_loading", "_tenure", "_waiting", "busy",
        "end", "index", "load_ms", "records_loaded", "shard",
    )  # fmt: skip

    def __init__(self, index: int, epoch: Epoch, kind: Kind[S], around: Surroundings[S]) -> None:
        self.index = index
        self._kind, self._around = kind, around
        self._tenure = Tenure(epoch)
        self._hosted: Hosted | None = None
        self.shard: S | None = None
        self._loading: Iterator[None] | None = None
        self._hurried = self._failed = self._closed = False
        self._waiting: dict[Held, None] = {}  # held back, and in the hands of the shard
        self.busy = False  # its timers are being worked off
        self.end = Offset(0)
        """The end of what the shard has seen: whoever is shown its state waits until that is committed."""
        self.load_ms = 0.0
        self.records_loaded = 0

    @property
    def epoch(self) -> Epoch:
        """The leader epoch in which this node leads the partition."""
        return self._tenure.epoch

    # -- coming and going

    def loading(self) -> Iterator[None]:
        """Loads the shard; the runtime takes the steps. An empty log needs no shard before somebody asks."""
        assert self._loading is None, "it loads once at a time"
        self._failed = False
        self._loading = steps = self._load()
        return self._guarded(steps)

    def _guarded(self, steps: Iterator[None]) -> Iterator[None]:
        """The same steps, until they are through or somebody in a hurry has taken them all."""
        while self._loading is steps and self._step():
            yield

    def _step(self) -> bool:
        """One step of loading; False when there is none left."""
        loading = self._loading
        if loading is None:
            return False
        try:
            next(loading)
        except StopIteration:
            self._loading = None
            self._look_ahead()
        except (Refused, StorageFailed) as failure:
            self._give_up(failure)
            self._log.error("partition %d of %s is not loaded: %s", self.index, self._kind.place, failure)
        except Exception as broken:
            self._give_up(broken)
            self._log.exception("partition %d of %s cannot be replayed", self.index, self._kind.place, exc_info=broken)
        return self._loading is not None

    def _give_up(self, why: Exception) -> None:
        self._loading, self.shard, self._failed = None, None, True
        self._begin_tenure(self.epoch)
        if isinstance(why, StorageFailed):
            self._around.storage_failed(why)

    def _load(self) -> Iterator[None]:
        began = self._around.monotonic_ms()
        hosted = self._hosted = self._around.hosted_at(self.index)
        source = hosted.require_log()
        self.end = source.written
        if source.log_start < source.written:
            yield
            shard = self._kind.new_shard(self._around.image())
            replay = Replay(source, self._kind.reader, shard, self._log)
            yield from replay.steps()
            self.end = source.written
            shard.see(self._around.image())  # a snapshot may have taken the place of the one that it was made with
            self.shard, self.records_loaded = shard, replay.records
            LASTING.loaded(replay.records)
            yield from self._first_work()
        self.load_ms = self._around.monotonic_ms() - began

    def _first_work(self) -> Iterator[None]:
        """The shard knows its log; it learns the time, and in which epoch it is led."""
        yield from self.work(lambda shard, now: shard.loaded(now))
        told: Epoch | None = None
        while self.shard is not None and told != self.epoch:
            told = self.epoch
            yield from self._led_in(told)

    def _led_in(self, epoch: Epoch) -> Iterator[None]:
        return self.work(lambda shard, now: self._while_in(epoch, shard.led(epoch, now)))

    def lead_on(self, epoch: Epoch) -> Iterator[None] | None:
        """This node goes on to lead, in another epoch; work that follows from it, if any, for the runtime to do.

        The shard stays, because it is what this node's log says and nobody has cut that. The epoch, though, is what
        others know this coordinator by: effects of the former one are void.
        """
        if epoch == self.epoch:
            return None  # the partition has changed in some other way
        self._begin_tenure(epoch)
        shard = self.shard
        if shard is None or self._loading is not None:
            return None  # whoever loads it says so
        try:
            decisions = shard.led(epoch, self._moment())
        except Exception as broken:
            self._broken(broken)
            return None
        return self.work(lambda _shard, _now: self._while_in(epoch, decisions)) if decisions else None

    def _while_in(self, epoch: Epoch, decisions: Iterable[Decision]) -> Iterator[Decision]:
        """What follows from an epoch is asked for only until the next one begins."""
        steps = iter(decisions)
        while self.epoch == epoch:
            decision = next(steps, None)
            if decision is None:
                return
            yield decision

    def _begin_tenure(self, epoch: Epoch) -> None:
        self._tenure = Tenure(epoch)
        self._kind.give_up(self.index)

    def close(self) -> None:
        """This node leads the partition no longer: everybody who waits in the shard is told."""
        self._closed, self._loading = True, None
        shard, self.shard = self.shard, None
        self._unload(shard)

    def _drop(self) -> None:
        """The shard cannot be trusted, or the log not written: start over."""
        shard, self.shard = self.shard, None
        if shard is not None:
            self._unload(shard)
            if self._loading is None:  # else whoever loads gives up
                self._hurried = False
                self._around.lost(self)

    def _unload(self, shard: S | None) -> None:
        self._begin_tenure(self.epoch)
        if shard is not None:
            try:
                release(shard.unload())
            except Exception as broken:  # it may be dropped because it is broken; whoever waits must not suffer for it
                self._log.exception("the %s of partition %d say nothing", self._kind.name, self.index, exc_info=broken)
        waiting, self._waiting = self._waiting, {}
        for held in waiting:
            held.fail(NOT_COORDINATOR)

    @property
    def _log(self) -> logging.Logger:
        return self._around.log

    @property
    def is_loading(self) -> bool:
        return self._loading is not None

    @property
    def failed(self) -> bool:
        return self._failed

    @property
    def writable(self) -> bool:
        """Whether the log would take a batch now. Asked first, because a failed append costs the shard."""
        hosted = self._hosted
        if hosted is None or hosted.log is None or not hosted.state.leading:
            return False
        return len(hosted.state.isr) >= hosted.state.effective_min_isr

    def _moment(self) -> Moment:
        hosted = self._hosted
        return self._around.moment(Offset(0) if hosted is None else hosted.state.high_watermark)

    def _live(self) -> S:
        """The shard to ask; Refused when there is none."""
        if self._loading is not None and not self._hurried and self._around.may_hurry():
            # A log of the usual size is read faster than a client comes back.
            self._hurried = True
            slices = Slices(self._around)
            while self._step() and not slices.over:
                pass
        if self._loading is not None:
            raise Refused(COORDINATOR_LOAD_IN_PROGRESS)
        if self._closed or self._failed or self._hosted is None or self._hosted.log is None:
            raise Refused(NOT_COORDINATOR)
        if self.shard is None:
            self.shard = self._kind.new_shard(self._around.image())
            for _ in self._first_work():
                pass  # nothing was loaded, but its clock runs from here
        if self.shard is None:
            raise Refused(NOT_COORDINATOR)  # its first words could not be written
        return self.shard

    # -- requests

    def partition(self) -> Hosted:
        """The partition, for those who prepare a write; Refused while it is not known."""
        if self._closed or self._hosted is None:
            raise Refused(NOT_COORDINATOR if self._closed else COORDINATOR_LOAD_IN_PROGRESS)
        return self._hosted

    def ask(
        self, request: object, asker: Asker, refuse: Callable[[ErrorCode], T], guard: Guard | None = None
    ) -> T | asyncio.Future[T]:
        """One request; the reply, or a future of it when it waits.

        A `guard` comes with requests whose records are part of a producer's transaction.
        """
        shard, hosted = self.shard, self._hosted
        if shard is None or self._loading is not None or hosted is None:
            try:
                shard = self._live()
            except Refused as refusal:
                return refuse(refusal.error)
            hosted = self._hosted
            assert hosted is not None, "a live home has its partition"
        if hosted.log is None:
            return refuse(NOT_COORDINATOR)
        held, demand, asked = None, shard.demand_of(request), shard
        if demand is not Demand.READS:
            if not self.writable:
                return refuse(COORDINATOR_NOT_AVAILABLE)
            if demand is Demand.WAITS:
                held = Held(refuse)
        now = self._moment()
        caller = Caller(asker.client_id or "", f"/{asker.client_host}", asker.api_version, held, asker.may_describe)
        return self._run(lambda: asked.decide(request, caller, now), now, refuse, held, guard)

    def act(self, decide: Callable[[S, Moment], Decision], refuse: Callable[[ErrorCode], T]) -> T | asyncio.Future[T]:
        """A decision that is not one request for one key."""
        try:
            shard = self._live()
        except Refused as refusal:
            return refuse(refusal.error)
        if not self.writable:
            return refuse(COORDINATOR_NOT_AVAILABLE)
        now = self._moment()
        return self._run(lambda: decide(shard, now), now, refuse, None)

    def look(self, read: Callable[[S, Moment], T], refuse: Callable[[ErrorCode], T]) -> T | asyncio.Future[T]:
        """Shows somebody the shard's state, once it cannot be taken back any more."""
        try:
            shard = self._live()
        except Refused as refusal:
            return refuse(refusal.error)
        now = self._moment()
        return self._run(lambda: Decision(reply=read(shard, now)), now, refuse, None)

    def _run(
        self,
        decide: Callable[[], Decision],
        now: Moment,
        refuse: Callable[[ErrorCode], T],
        held: Held | None,
        guard: Guard | None = None,
    ) -> T | asyncio.Future[T]:
        try:
            decision = decide()
            if decision.producer is None:
                self._write(decision, now)
            else:
                assert guard is not None, "what is part of a transaction comes with its guard"
                self._write_pending(decision, decision.producer, guard, now)
        except Refused as refusal:
            return refuse(told(refusal.error))
        except Exception as broken:
            self._broken(broken)
            return refuse(UNKNOWN_SERVER_ERROR)
        reply, hosted = decision.reply, self._hosted
        assert hosted is not None, "a live home has its partition"
        if decision.effects:
            self._let_out(hosted, decision.effects)
        if decision.answers:
            self._hand_back(decision.answers)
        if hosted.state.high_watermark >= self.end:
            if decision.answers:
                release(decision.answers)
            if reply is not None:
                return cast(T, reply)
        elif reply is not None:
            held = held or Held(refuse)
            self._promise(hosted, reply, held, decision)
        elif decision.answers:
            self._promise(hosted, None, None, decision)
        assert held is not None, "only requests that may wait are held back"
        if reply is None:
            self._waiting[held] = None
        return cast("asyncio.Future[T]", held.future)

    def _promise(self, hosted: Hosted, reply: object | None, held: Held | None, decision: Decision) -> None:
        Promise(hosted, self.end, reply, held, decision.answers, self._kind.commit_timeout_ms())

    def _hand_back(self, answers: Sequence[Answer]) -> None:
        """The shard has done with these requests; only the commit may keep their answers."""
        for token, _ in answers:
            assert isinstance(token, Held), "only requests that may be held back have a token"
            self._waiting.pop(token, None)

    def _broken(self, broken: Exception) -> None:
        self._log.exception("the %s of partition %d are loaded again", self._kind.name, self.index, exc_info=broken)
        self._drop()

    # -- effects

    def _let_out(self, hosted: Hosted, effects: Sequence[Effect]) -> None:
        """Effects leave in the order in which they were decided, each when everything before it is committed.

        They have no deadline: however long the commit takes, nobody else would ever carry them out.
        """
        if is_committed(hosted, self.end):
            self._come_true(self._tenure, hosted, self.end, effects)
        else:
            hosted.when_committed(self.end, partial(self._come_true, self._tenure, hosted, self.end, effects))

    def _come_true(self, tenure: Tenure, hosted: Hosted, end: Offset, effects: Sequence[Effect]) -> None:
        """Void when the tenure is over, or about to be.

        The partition takes its role before the runtime hears of it, and with fewer replicas in sync that alone may
        commit the log: `led` follows at once, and decides these effects again in the new epoch.
        """
        over = tenure is not self._tenure or hosted.state.epoch > tenure.epoch
        if not over and is_committed(hosted, end):
            self._kind.carry_out(self.index, tenure.epoch, effects)

    def tell(self, epoch: Epoch, decide: Callable[[S, Moment], Decision]) -> bool:
        """What became of an effect that was let out in `epoch`. False when nobody wants to know, or not now.

        Not now is while the log cannot be written. After a change of epoch or of shard the effect was decided again,
        and what the first try led to is of no interest.
        """
        shard, hosted = self.shard, self._hosted
        if shard is None or hosted is None or self._loading is not None or epoch != self.epoch or not self.writable:
            return False
        now = self._moment()
        try:
            decision = decide(shard, now)
            self._write(decision, now)
        except Refused:
            return False
        except Exception as broken:
            self._broken(broken)
            return False
        self._release(decision)
        return True

    def marked(self, producer_id: int, *, committed: bool, end: Offset) -> None:
        """The marker of a transaction was appended to the partition, which ends at `end` now.

        A shard that is still replayed comes to it by itself.
        """
        shard = self.shard
        if shard is None:
            return
        self.end = max(self.end, end)
        try:
            shard.on_marker(producer_id, committed=committed)
        except Exception as broken:
            self._broken(broken)

    # -- what the shard decides by itself

    def work(self, decide: Callable[[S, Moment], Iterable[Decision]]) -> Iterator[None]:
        """Takes the shard's own decisions one at a time; the runtime takes the steps."""
        shard, loading = self.shard, self._loading
        if shard is None:
            return
        now = self._moment()
        try:
            for decision in decide(shard, now):
                if self.shard is not shard:
                    return  # dropped since the last step
                self._write(decision, now)
                self._release(decision)
                yield
        except Exception as broken:
            if loading is not None and self._loading is loading:
                raise  # whoever loads gives up; a write that was refused later has begun another loading
            if self.shard is shard:
                self._broken(broken)

    def _release(self, decision: Decision) -> None:
        hosted = self._hosted
        assert hosted is not None, "a live home has its partition"
        if decision.effects:
            self._let_out(hosted, decision.effects)
        if not decision.answers:
            return
        self._hand_back(decision.answers)
        if hosted.state.high_watermark >= self.end:
            release(decision.answers)
        else:
            self._promise(hosted, None, None, decision)

    def expire(self) -> Iterator[None]:
        """Everything that is due now."""
        self.busy = True
        try:
            yield from self.work(lambda shard, now: shard.expire(now))
        finally:
            self.busy = False
            self._look_ahead()

    def image_changed(self, image: ClusterImage, delta: Delta) -> Iterator[None]:
        yield from self.work(lambda shard, now: shard.image_changed(image, delta, now))
        self._look_ahead()

    def _look_ahead(self) -> None:
        if self.shard is not None:
            at = self.shard.next_deadline()
            if at is not None:
                self._around.due(at)

    # -- writing

    def _write(self, decision: Decision, now: Moment) -> None:
        """Appends and applies. Refused when the log does not take it; the shard is gone then."""
        shard = self.shard
        assert shard is not None, "somebody has decided"
        assert decision.producer is None, "what is part of a transaction comes with its guard"
        if decision.records:
            try:
                for records in self._batches(decision.records):
                    base = self._append(records, now)
                    for offset, record in enumerate(records, base):
                        shard.apply(record, Offset(offset))
            except Refused as refusal:
                self._log.warning("partition %d of %s is loaded again: %s", self.index, self._kind.place, refusal)
                fail(decision.answers, told(refusal.error))
                self._drop()
                raise
            except Exception:
                fail(decision.answers, UNKNOWN_SERVER_ERROR)
                raise
        at = shard.next_deadline()
        if at is not None:
            self._around.due(at)

    def _write_pending(self, decision: Decision, producer: ProducerEpoch, guard: Guard, now: Moment) -> None:
        """Appends what is part of a producer's transaction, as a batch of its own. Refused when that may not be.

        The log is asked first: a producer that was replaced, or whose transaction has ended, costs nobody the shard.
        """
        shard, hosted, records = self.shard, self._hosted, decision.records
        assert shard is not None, "somebody has decided"
        assert hosted is not None, "a live home has its partition"
        if not records:
            return
        batch = encode_batch(records, now.wall, self._kind.codec(), producer)
        header = read_header(batch)
        if len(batch) > hosted.settings.max_message_bytes:
            raise Refused(MESSAGE_TOO_LARGE, f"{len(records)} records make a batch of {len(batch)} bytes")
        hosted.require_log().producers.check_coordinated(header, guard.entry, verifies=guard.verifies)
        try:
            self.end = hosted.append_coordinated(batch, header, now.wall, guard).end
        except (Refused, StorageFailed) as failure:
            if isinstance(failure, StorageFailed):
                self._around.storage_failed(failure)
                failure = Refused(KAFKA_STORAGE_ERROR, str(failure))
            self._log.warning("partition %d of %s is loaded again: %s", self.index, self._kind.place, failure)
            self._drop()
            raise failure from None
        for offset, record in enumerate(records, self.end - len(records)):
            shard.apply_pending(producer.id, record, Offset(offset))
        self._around.written.update(record.key.__class__.__name__ for record in records)

    def _batches(self, records: list[StateRecord]) -> Iterable[Sequence[StateRecord]]:
        """One batch, so that it comes true whole; a long row of removals may come true in pieces."""
        if len(records) <= _REMOVALS_AT_ONCE or any(record.value is not None for record in records):
            return (records,)
        return [records[at : at + _REMOVALS_AT_ONCE] for at in range(0, len(records), _REMOVALS_AT_ONCE)]

    def _append(self, records: Sequence[StateRecord], now: Moment) -> Offset:
        """Where the first of the records lies."""
        hosted = self._hosted
        assert hosted is not None, "a live home has its partition"
        batch = encode_batch(records, now.wall, self._kind.codec())
        if len(batch) > hosted.settings.max_message_bytes:
            raise Refused(MESSAGE_TOO_LARGE, f"{len(records)} records make a batch of {len(batch)} bytes")
        try:
            self.end = hosted.append(batch, read_header(batch), _ALL_REPLICAS, now.wall).end
        except StorageFailed as failure:
            self._around.storage_failed(failure)
            raise Refused(KAFKA_STORAGE_ERROR, str(failure)) from failure
        self._around.written.update(record.key.__class__.__name__ for record in records if record.value is not None)
        return Offset(self.end - len(records))
