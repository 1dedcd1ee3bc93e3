"""One partition of the offsets topic that this node leads, and the shard that lives in it.

Ask, do, tell with no await in between; replies and answers leave when what they stand on is committed, which on a
quiet node is at once. When an append fails, or the shard itself, the shard is dropped, everybody who waits in it is
told NOT_COORDINATOR, and it is made anew from the log: nothing is ever undone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from penstock.coordinators.decision import Caller, Decision, Moment
from penstock.kernels import read_header
from penstock.model.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Offset
from penstock.server.drivers.coordinator_loading import Replay
from penstock.server.drivers.coordinator_promise import Held, Promise, Refuse, fail, release, told
from penstock.server.drivers.coordinator_records import encode_batch
from penstock.server.drivers.partition_driver import SLICE_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.coordinators.decision import StateRecord
    from penstock.coordinators.groups.shard import GroupShard
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.server.context import Context
    from penstock.server.drivers.hosted import Hosted

log = logging.getLogger("penstock.groups")

T = TypeVar("T")
Work = Callable[["GroupShard", Moment], Iterable[Decision]]

_ALL_REPLICAS: Final = -1
# By key, so that no message class is made before somebody sends one.
_HEARTBEAT: Final = 12
_MAY_BE_HELD: Final = frozenset({11, 14})  # JoinGroup, SyncGroup
_REMOVALS_AT_ONCE: Final = 1_000


class Surroundings(Protocol):
    """What a home needs of the driver it belongs to."""

    written: Counter[str]
    """Records written since the start, by the name of their key's class; tombstones do not count."""

    def moment(self) -> Moment: ...
    def monotonic_ms(self) -> float: ...
    def new_shard(self) -> GroupShard: ...
    def image(self) -> ClusterImage: ...
    def codec(self) -> int: ...
    def commit_timeout_ms(self) -> int: ...
    def hosted_at(self, index: int) -> Hosted:
        """The partition of the offsets topic; Refused when it is not here."""

    def due(self, at: int) -> None:
        """A shard wants to look at the clock at `at`."""

    def lost(self, home: Home) -> None:
        """The shard was dropped and has to be loaded again."""

    def storage_failed(self, failure: StorageFailed) -> None: ...


class Home:
    """Either loading, or live (with a shard, or with an empty log and none yet), or closed: then it only refuses."""

    __slots__ = (
        "_around", "_closed", "_failed", "_hosted", "_hurried", "_loading", "busy", "end", "index", "load_ms",
        "records_loaded", "shard",
    )  # fmt: skip

    def __init__(self, index: int, around: Surroundings) -> None:
        self.index = index
        self._around = around
        self._hosted: Hosted | None = None
        self.shard: GroupShard | None = None
        self._loading: Iterator[None] | None = None
        self._hurried = self._failed = self._closed = False
        self.busy = False  # its timers are being worked off
        self.end = Offset(0)
        """The end of what the shard has seen: whoever is shown its state waits until that is committed."""
        self.load_ms = 0.0
        self.records_loaded = 0

    # -- coming and going

    def loading(self) -> Iterator[None]:
        """Loads the shard; the driver takes the steps. An empty log needs no shard before somebody asks."""
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
            log.error("partition %d of the offsets topic is not loaded: %s", self.index, failure)
        except Exception as broken:
            self._give_up(broken)
            log.exception("partition %d of the offsets topic cannot be replayed", self.index, exc_info=broken)
        return self._loading is not None

    def _give_up(self, why: Exception) -> None:
        self._loading, self.shard, self._failed = None, None, True
        if isinstance(why, StorageFailed):
            self._around.storage_failed(why)

    def _load(self) -> Iterator[None]:
        began = self._around.monotonic_ms()
        hosted = self._hosted = self._around.hosted_at(self.index)
        source = hosted.require_log()
        self.end = source.written
        if source.log_start < source.written:
            yield
            shard = self._around.new_shard()
            replay = Replay(source, shard.apply)
            yield from replay.steps()
            self.end = source.written
            shard.see(self._around.image())  # a snapshot may have taken the place of the one that it was made with
            self.shard, self.records_loaded = shard, replay.records
            for _ in self.work(lambda shard, now: shard.loaded(now)):
                yield
        self.load_ms = self._around.monotonic_ms() - began

    def close(self) -> None:
        """This node leads the partition no longer: everybody who waits in the shard is told."""
        self._closed, self._loading = True, None
        shard, self.shard = self.shard, None
        if shard is not None:
            release(shard.unload())

    def _drop(self) -> None:
        """The shard cannot be trusted, or the log not written: start over."""
        shard, self.shard = self.shard, None
        if shard is not None:
            release(shard.unload())
            if self._loading is None:  # else whoever loads gives up
                self._hurried = False
                self._around.lost(self)

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

    def _live(self) -> GroupShard:
        """The shard to ask; Refused when there is none."""
        if self._loading is not None and not self._hurried:
            # A log of the usual size is read faster than a client comes back.
            self._hurried = True
            until = self._around.monotonic_ms() + SLICE_MS
            while self._step() and self._around.monotonic_ms() < until:
                pass
        if self._loading is not None:
            raise Refused(COORDINATOR_LOAD_IN_PROGRESS)
        if self._closed or self._failed or self._hosted is None or self._hosted.log is None:
            raise Refused(NOT_COORDINATOR)
        shard = self.shard
        if shard is None:
            shard = self.shard = self._around.new_shard()
            for _ in self.work(lambda shard, now: shard.loaded(now)):
                pass  # nothing was loaded, but its clock runs from here
        return shard

    # -- requests

    def ask(self, request: Any, ctx: Context, refuse: Refuse) -> Any:
        """One request of one group; the reply, or a future of it when it waits."""
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
        held = None
        if ctx.api_key != _HEARTBEAT:  # the only one that never has anything to write
            if not self.writable:
                return refuse(COORDINATOR_NOT_AVAILABLE)
            if ctx.api_key in _MAY_BE_HELD:
                held = Held(asyncio.get_running_loop().create_future(), refuse)
        now = self._around.moment()
        caller = Caller(ctx.client_id or "", f"/{ctx.client_host}", ctx.api_version, held)
        return self._run(lambda: shard.decide(request, caller, now), now, refuse, held)

    def act(self, decide: Callable[[GroupShard, Moment], Decision], refuse: Refuse) -> Any:
        """A decision that is not one request of one group."""
        now = self._around.moment()
        try:
            shard = self._live()
        except Refused as refusal:
            return refuse(refusal.error)
        if not self.writable:
            return refuse(COORDINATOR_NOT_AVAILABLE)
        return self._run(lambda: decide(shard, now), now, refuse, None)

    def look(self, read: Callable[[GroupShard, Moment], T], refuse: Callable[..., T]) -> T | asyncio.Future[T]:
        """Shows somebody the shard's state, once it cannot be taken back any more."""
        now = self._around.moment()
        try:
            shard = self._live()
        except Refused as refusal:
            return refuse(refusal.error)
        return self._run(lambda: Decision(reply=read(shard, now)), now, refuse, None)  # type: ignore[no-any-return]  # by `read`

    def _run(self, decide: Callable[[], Decision], now: Moment, refuse: Refuse, held: Held | None) -> Any:
        try:
            decision = decide()
            self._write(decision, now)
        except Refused as refusal:
            return refuse(told(refusal.error))
        except Exception as broken:
            self._broken(broken)
            return refuse(UNKNOWN_SERVER_ERROR)
        reply, hosted = decision.reply, self._hosted
        assert hosted is not None, "a live home has its partition"
        if hosted.state.high_watermark >= self.end:
            if decision.answers:
                release(decision.answers)
            if reply is not None:
                return reply
        elif reply is not None:
            held = held or Held(asyncio.get_running_loop().create_future(), refuse)
            self._promise(hosted, reply, held, decision)
        elif decision.answers:
            self._promise(hosted, None, None, decision)
        assert held is not None, "only joins and syncs are held back"
        return held.future

    def _promise(self, hosted: Hosted, reply: Any, held: Held | None, decision: Decision) -> None:
        Promise(hosted, self.end, reply, held, decision.answers, self._around.commit_timeout_ms())

    def _broken(self, broken: Exception) -> None:
        log.exception("the groups of partition %d are loaded again", self.index, exc_info=broken)
        self._drop()

    # -- what the shard decides by itself

    def work(self, decide: Work) -> Iterator[None]:
        """Takes the shard's own decisions one at a time; the driver takes the steps."""
        shard, loading = self.shard, self._loading
        if shard is None:
            return
        now = self._around.moment()
        try:
            for decision in decide(shard, now):
                if self.shard is not shard:
                    return  # dropped since the last step
                self._write(decision, now)
                if decision.answers:
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
        if decision.records:
            try:
                for records in self._batches(decision.records, now):
                    self._append(records, now)
                    for record in records:
                        shard.apply(record)
            except Refused as refusal:
                log.warning("partition %d of the offsets topic is loaded again: %s", self.index, refusal)
                fail(decision.answers, told(refusal.error))
                self._drop()
                raise
            except Exception:
                fail(decision.answers, UNKNOWN_SERVER_ERROR)
                raise
        at = shard.next_deadline()
        if at is not None:
            self._around.due(at)

    def _batches(self, records: list[StateRecord], now: Moment) -> Iterable[Sequence[StateRecord]]:
        """One batch, so that it comes true whole; a long row of removals may come true in pieces."""
        if len(records) <= _REMOVALS_AT_ONCE or any(record.value is not None for record in records):
            return (records,)
        return [records[at : at + _REMOVALS_AT_ONCE] for at in range(0, len(records), _REMOVALS_AT_ONCE)]

    def _append(self, records: Sequence[StateRecord], now: Moment) -> None:
        hosted = self._hosted
        assert hosted is not None, "a live home has its partition"
        batch = encode_batch(records, now.wall, self._around.codec())
        if len(batch) > hosted.settings.max_message_bytes:
            raise Refused(MESSAGE_TOO_LARGE, f"{len(records)} records make a batch of {len(batch)} bytes")
        try:
            self.end = hosted.append(batch, read_header(batch), _ALL_REPLICAS, now.wall).end
        except StorageFailed as failure:
            self._around.storage_failed(failure)
            raise Refused(KAFKA_STORAGE_ERROR, str(failure)) from failure
        self._around.written.update(record.key.__class__.__name__ for record in records if record.value is not None)
