"""The blocking consumer, for one thread at a time."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from penstock.client.blocking.loop_thread import Guests, LoopThread, close_at_the_latest
from penstock.client.consumer import consumer as asynchronous
from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp
from penstock.client.consumer.ownership import OnPartitions
from penstock.client.errors import ClientError
from penstock.client.settings import ConsumerSettings
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.client.keywords import ConsumerKeywords

FAREWELL_MS = 4_000


class Consumer:
    """Reads topics, alone or in a group.

        with Consumer("orders", bootstrap_servers="localhost:9092", group_id="g") as consumer:
            for record in consumer:
                ...

    Settings are those of `penstock.Consumer`. Callbacks run in the thread that polls or closes, while it does, and may
    call the consumer: commit in `on_revoked`, seek in `on_assigned`.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] | None = None,
        **settings: Unpack[ConsumerKeywords],
    ) -> None:
        self._inner = asynchronous.Consumer(*topics, bootstrap_servers=bootstrap_servers, **settings)
        self._thread = LoopThread("penstock-consumer")
        self._guests = Guests()
        # What `for` has polled and not given yet.
        self._ahead: deque[ConsumerRecord] = deque()
        inner, guests = self._inner, self._guests

        def farewell() -> Coroutine[Any, Any, None]:
            guests.shut()
            return inner.close(timeout_ms=FAREWELL_MS)

        self._farewell = close_at_the_latest(self, self._thread, farewell)

    @property
    def settings(self) -> ConsumerSettings:
        """What it was made with, defaults included."""
        return self._inner.settings

    def __enter__(self) -> Self:
        self._thread.call(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._farewell.alive:
            self._put_back()
            self._thread.call_hosting(self._inner.__aexit__(kind, failure, trace), self._guests)
            self._end()

    # -- what to read

    def subscribe(
        self,
        topics: Iterable[str] | str | None = None,
        *,
        pattern: str | None = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Reads these topics, or all whose whole name matches `pattern`; replaces an earlier subscription."""
        self._put_back()
        self._thread.do(
            self._inner.subscribe,
            topics,
            pattern=pattern,
            on_assigned=self._hosted(on_assigned),
            on_revoked=self._hosted(on_revoked),
            on_lost=self._hosted(on_lost),
        )

    def _hosted(self, callback: OnPartitions | None) -> OnPartitions | None:
        return None if callback is None else self._guests.wrap(callback)

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Reads exactly these partitions, without a group's say."""
        self._put_back()
        self._thread.do(self._inner.assign, list(partitions))

    def unsubscribe(self) -> None:
        """Commits if that is automatic, gives all partitions up and leaves the group."""
        self._put_back()
        self._thread.call_hosting(self._inner.unsubscribe(), self._guests)

    def subscription(self) -> frozenset[str]:
        """The topics that were subscribed to by name."""
        return self._thread.do(self._inner.subscription)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        return self._thread.do(self._inner.assignment)

    # -- records

    def poll(
        self, max_records: int | None = None, timeout_ms: float = asynchronous.POLL_TIMEOUT_MS
    ) -> list[ConsumerRecord]:
        """Up to `max_records` (`max_poll_records` if None) as soon as there are any; none when the time is over."""
        self._put_back()
        return self._thread.call_hosting(self._inner.poll(max_records, timeout_ms), self._guests)

    def poll_arrow(
        self, max_records: int = asynchronous.ARROW_RECORDS, timeout_ms: float = asynchronous.POLL_TIMEOUT_MS
    ) -> list[Any]:
        """The same as a list of `pyarrow.RecordBatch`, one for each partition that has something."""
        self._put_back()
        return self._thread.call_hosting(self._inner.poll_arrow(max_records, timeout_ms), self._guests)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records for ever, until the consumer is closed. Leaving the loop early loses none."""
        ahead = self._ahead
        while self._farewell.alive:
            if not ahead:
                ahead.extend(self._thread.call_hosting(self._inner.poll(), self._guests))
            while ahead:
                yield ahead.popleft()

    def _put_back(self) -> None:
        """Records that `for` had polled ahead are read again by whoever reads next."""
        firsts = self._not_given()
        self._ahead.clear()
        for partition, offset in firsts.items():
            # A partition that the group has taken is its new owner's to read.
            with contextlib.suppress(ClientError, LookupError):
                self._thread.do(self._inner.seek, partition, offset)

    # -- where to read

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """The next record comes from `offset`, or the first after it."""
        self._put_back()
        self._thread.do(self._inner.seek, partition, offset)

    def seek_to_start(self, *partitions: tuple[str, int]) -> None:
        """To the oldest record; of all assigned partitions when none is named."""
        self._put_back()
        self._thread.do(self._inner.seek_to_start, *partitions)

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Past the newest record; of all assigned partitions when none is named."""
        self._put_back()
        self._thread.do(self._inner.seek_to_end, *partitions)

    def seek_to_time(self, when: int | Mapping[tuple[str, int], int]) -> None:
        """To the first record at or after a time in milliseconds, or to the end where there is none that late."""
        self._put_back()
        self._thread.call(self._inner.seek_to_time(when))

    def position(self, partition: tuple[str, int]) -> int:
        """The offset of the next record; waits until it is known."""
        wanted = TopicPartition(*partition)
        for record in self._ahead:
            if (record.topic, record.partition) == wanted:
                return int(record.offset)
        return self._thread.call(self._inner.position(partition))

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Gives no records of these (of all) until `resume`; they stay assigned."""
        self._put_back()
        self._thread.do(self._inner.pause, *partitions)

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Polls give records of these partitions again; of all that are paused if none is named."""
        self._thread.do(self._inner.resume, *partitions)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that polls leave out for now."""
        return self._thread.do(self._inner.paused)

    # -- committing

    def commit(self, offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None = None) -> None:
        """Commits how far records were given, or the given offsets (of the next record to read); waits for it."""
        self._thread.call(self._commit(offsets, self._not_given()))

    def commit_nowait(
        self, offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None = None
    ) -> concurrent.futures.Future[None]:
        """Begins a commit; the future may be waited for, or forgotten: close() waits for it."""
        return self._thread.begin(self._commit(offsets, self._not_given()))

    async def _commit(
        self, offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None, ahead: Mapping[TopicPartition, int]
    ) -> None:
        if offsets is None and ahead:
            # The consumer underneath believes that all of these were given.
            given: dict[tuple[str, int], OffsetAndMetadata | int] = {}
            given.update(ahead.items())
            for partition in self._inner.assignment():
                if partition not in given:
                    given[partition] = await self._inner.position(partition)
            offsets = given
        await self._inner.commit(offsets)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """How far records were given, of every partition where that is known: what `commit()` would commit."""
        found = self._thread.do(self._inner.positions)
        for partition, offset in self._not_given().items():
            if partition in found:
                found[partition] = OffsetAndMetadata(offset)
        return found

    def group_metadata(self) -> GroupMetadata:
        """This consumer's place in its group, for `Producer.send_offsets`; CommitFailed when it has none right now."""
        return self._thread.do(self._inner.group_metadata)

    def _not_given(self) -> dict[TopicPartition, int]:
        """Where the records begin that `for` has polled and not given yet."""
        firsts: dict[TopicPartition, int] = {}
        for record in self._ahead:
            firsts.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        return firsts

    def committed(self, *partitions: tuple[str, int]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None where it has nothing. Of all assigned when none is named."""
        return self._thread.call(self._inner.committed(*partitions))

    # -- looking around

    def beginning_offsets(self, *partitions: tuple[str, int]) -> dict[TopicPartition, int]:
        """The oldest offset of partitions, assigned or not; of all assigned when none is named."""
        return self._thread.call(self._inner.beginning_offsets(*partitions))

    def end_offsets(self, *partitions: tuple[str, int]) -> dict[TopicPartition, int]:
        """The offset after the newest record that this consumer may see."""
        return self._thread.call(self._inner.end_offsets(*partitions))

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; UnknownTopic after `default_api_timeout_ms`."""
        return self._thread.call(self._inner.partitions_for(topic))

    def offsets_for_times(
        self, times: Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time; None where there is none that late."""
        return self._thread.call(self._inner.offsets_for_times(times))

    def lag(self) -> dict[TopicPartition, int]:
        """How many records each assigned partition is behind."""
        found = self._thread.call(self._inner.lag())
        for record in self._ahead:
            partition = TopicPartition(record.topic, record.partition)
            if partition in found:
                found[partition] += 1
        return found

    def metrics(self) -> dict[str, float]:
        """Counters since the start, and what is assigned, buffered and behind right now."""
        return self._thread.do(self._inner.metrics)

    # -- the end

    def close(self, *, timeout_ms: float | None = None) -> None:
        """Commits what was given if that is automatic, leaves the group and ends everything. Closing twice is fine."""
        if self._farewell.alive:
            self._put_back()
            self._thread.call_hosting(self._inner.close(timeout_ms=timeout_ms), self._guests)
            self._end()

    def _end(self) -> None:
        self._farewell.detach()
        self._thread.stop()
