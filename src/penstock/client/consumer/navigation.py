"""Finds out where assigned partitions are to be read: committed offsets, resets, and whether a position still holds.

Work is begun for every partition whose phase asks for it; answers that come after a seek are dropped by version. What
can heal is tried again with a growing delay; what cannot becomes the partition's failure, which a poll raises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

from penstock.client.consumer.lookups import EpochEnd, OffsetLookup
from penstock.client.consumer.offsets import LATEST, OffsetAndMetadata, OffsetAndTimestamp
from penstock.client.consumer.partition import AssignedPartition, Phase
from penstock.client.consumer.reset import ResetPolicy
from penstock.client.errors import ClientError, NoOffsetForPartition, OffsetOutOfRange
from penstock.client.retry import Backoff
from penstock.model.errors import OFFSET_OUT_OF_RANGE, UNSUPPORTED_VERSION
from penstock.model.ids import TopicPartition
from penstock.model.ports import Clock

Committed: TypeAlias = Callable[[Collection[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata]]]

_UNSETTLED = frozenset({Phase.UNPLACED, Phase.RESETTING, Phase.VALIDATING})


class Navigator:
    """Brings partitions to phase READY. `wake` after anything that may have made one unsettled."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, AssignedPartition],
        lookup: OffsetLookup,
        *,
        policy: ResetPolicy,
        committed: Committed | None,
        settled: Callable[[AssignedPartition], None],
        backoff: Backoff,
        clock: Clock,
    ) -> None:
        """`committed` is None without a group; `settled` is called with whatever became READY or FAILED."""
        self._partitions, self._lookup, self._policy, self._committed = partitions, lookup, policy, committed
        self._settled, self._backoff, self._clock = settled, backoff, clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def wake(self) -> None:
        """Begins what can be begun now; comes back by itself for what has to wait."""
        if self._closed:
            return
        now = self._clock.monotonic_ms()
        due: dict[Phase, list[AssignedPartition]] = {}
        next_at: float | None = None
        for partition in self._partitions.values():
            if partition.phase in _UNSETTLED and not partition.busy:
                if partition.retry_at_ms <= now:
                    due.setdefault(partition.phase, []).append(partition)
                elif next_at is None or partition.retry_at_ms < next_at:
                    next_at = partition.retry_at_ms
        for phase, partitions in due.items():
            self._begin(phase, partitions)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if next_at is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.001, (next_at - now) / 1000), self.wake)

    def cancel(self) -> None:
        """Ends all work; `close` waits for that."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def out_of_range(self, partition: AssignedPartition, offset: int) -> None:
        """The leader has nothing at `offset`: begin elsewhere, or tell the application when it wants to be told."""
        timestamp = self._policy.looks_for(self._clock.now_ms())
        if timestamp is not None:
            partition.reset(timestamp)
            self.wake()
            return
        partition.fail(
            OffsetOutOfRange(
                f"offset {offset} is not in the log and offset_reset is none; seek to where reading shall go on",
                where=str(partition.tp),
                error=OFFSET_OUT_OF_RANGE,
            )
        )
        self._settled(partition)

    # -- the three kinds of work

    def _begin(self, phase: Phase, partitions: list[AssignedPartition]) -> None:
        asked = [(partition, partition.version) for partition in partitions]
        for partition in partitions:
            partition.busy = True
        work = {Phase.UNPLACED: self._place, Phase.RESETTING: self._reset, Phase.VALIDATING: self._validate}[phase]
        task = asyncio.get_running_loop().create_task(self._work(work, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(
        self,
        work: Callable[[list[AssignedPartition]], Awaitable[Mapping[TopicPartition, Any]]],
        asked: list[tuple[AssignedPartition, int]],
    ) -> None:
        try:
            answers = await work([partition for partition, _ in asked])
        except ClientError as failure:
            answers = {partition.tp: failure for partition, _ in asked}
        finally:
            for partition, _ in asked:
                partition.busy = False
        for partition, version in asked:
            if partition.version == version and not partition.gone and partition.tp in answers:
                self._conclude(partition, answers[partition.tp])
        self.wake()

    async def _place(self, partitions: list[AssignedPartition]) -> Mapping[TopicPartition, Any]:
        if self._committed is None:
            return {partition.tp: None for partition in partitions}
        found = await self._committed([partition.tp for partition in partitions])
        return {partition.tp: found.get(partition.tp) for partition in partitions}

    async def _reset(self, partitions: list[AssignedPartition]) -> Mapping[TopicPartition, Any]:
        wanted = {partition.tp: LATEST if (at := partition.reset_to) is None else at for partition in partitions}
        found = await self._lookup.by_time(wanted)
        late = dict.fromkeys(_nothing_that_late(found), LATEST)
        return found | await self._lookup.by_time(late) if late else found

    async def _validate(self, partitions: list[AssignedPartition]) -> Mapping[TopicPartition, Any]:
        for partition in partitions:
            partition.leader_epoch = max(partition.leader_epoch, self._lookup.leader_epoch(partition.tp))
        return await self._lookup.epoch_ends({partition.tp: partition.position_epoch for partition in partitions})

    # -- what the answers mean

    def _conclude(self, partition: AssignedPartition, answer: object) -> None:
        if isinstance(answer, ClientError):
            self._trouble(partition, answer)
            return
        if isinstance(answer, OffsetAndMetadata):
            partition.place(answer.offset, answer.leader_epoch)
            partition.committed = answer.offset
        elif isinstance(answer, OffsetAndTimestamp):
            # Nothing was read before this record, so there is no epoch to check against.
            partition.place(answer.offset)
            partition.leader_epoch = max(partition.leader_epoch, answer.leader_epoch)
        elif isinstance(answer, EpochEnd):
            self._compare(partition, answer)
        else:
            self._begin_anywhere(partition)
        if partition.phase in (Phase.READY, Phase.FAILED):
            self._settled(partition)

    def _begin_anywhere(self, partition: AssignedPartition) -> None:
        timestamp = self._policy.looks_for(self._clock.now_ms())
        if timestamp is not None:
            partition.reset(timestamp)
            return
        why = "the group has committed nothing" if self._committed is not None else "no offset was given"
        partition.fail(
            NoOffsetForPartition(
                f"{why} and offset_reset is none; seek to where reading shall begin", where=str(partition.tp)
            )
        )

    def _compare(self, partition: AssignedPartition, ended: EpochEnd) -> None:
        """Our position against the end of its epoch in the log of the leader that there is now."""
        partition.failures, partition.retry_at_ms = 0, 0.0
        if 0 <= partition.position <= ended.end_offset and ended.epoch >= 0:
            partition.phase = Phase.READY
        elif ended.end_offset < 0 or ended.epoch < 0:
            # The leader's log begins later than our epoch; fetching finds out whether the offset is still there.
            partition.phase = Phase.READY
            partition.position_epoch = -1
        elif self._policy.looks_for(0) is not None:
            partition.place(ended.end_offset)
        else:
            partition.fail(
                OffsetOutOfRange(
                    f"the log was cut at {ended.end_offset}: records up to {partition.position} were read, but a new "
                    "leader does not have them; seek to where reading shall go on",
                    where=str(partition.tp),
                    error=OFFSET_OUT_OF_RANGE,
                )
            )

    def _trouble(self, partition: AssignedPartition, failure: ClientError) -> None:
        if partition.phase is Phase.VALIDATING and failure.error is UNSUPPORTED_VERSION:
            # A broker without epochs cannot be asked, and never truncated behind our back in a way it could tell.
            partition.phase = Phase.READY
            self._settled(partition)
        elif failure.retriable:
            partition.troubled(self._clock.monotonic_ms() + self._backoff.delay_ms(partition.failures + 1))
        else:
            partition.fail(failure)
            self._settled(partition)


def _nothing_that_late(found: Mapping[TopicPartition, Any]) -> Iterable[TopicPartition]:
    return [tp for tp, answer in found.items() if isinstance(answer, OffsetAndTimestamp) and answer.offset < 0]
