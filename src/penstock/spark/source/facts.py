"""What the cluster is asked while a read is planned: topics, ids, the ends of logs, offsets of times, sizes.

The only module here that talks to brokers on the driver. Every question ends: with an answer, or with an error that
says who was asked, for how long, and what to try.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.client.errors import ClientError, NotReachable, TimedOutWaiting, UnknownTopic
from penstock.model.ids import TopicPartition
from penstock.spark.dialogue import admin_for, for_process
from penstock.spark.errors import Missing
from penstock.spark.source.losses import Seen
from penstock.spark.stores.settings import as_options

if TYPE_CHECKING:
    from penstock.client.admin import Admin, OffsetInfo, TopicInfo
    from penstock.spark.source.options import SourceOptions

T = TypeVar("T")

_log = logging.getLogger("penstock.spark.source")

SIZES_TTL_S: Final = 60.0
"""How long the sizes of logs are taken for granted; they only decide which task reads what."""


class Cluster:
    """The brokers of one read, as its planning sees them. Lives in the process that plans and is never pickled."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._described: tuple[float, list[TopicInfo]] | None = None
        self._rates: tuple[float, frozenset[str], dict[TopicPartition, float]] | None = None

    @property
    def table_options(self) -> dict[str, str]:
        """How a lake table is reached in which reading begins."""
        return as_options(self._options.storage, self._options.catalog_settings)

    # The present.

    def look(self, *, expected: Collection[str] = (), strict: bool = False) -> Seen:
        """The partitions that the options choose, and the ends of their logs: the last stable offsets if only
        committed records are read.

        Of a topic in `expected` that is not there more tries make sure; `strict` raises for what was named in the
        options and is not there.
        """
        topics = self._topics(expected, strict)
        ids = {topic.name: topic.id for topic in topics}
        partitions = [
            tp
            for topic in topics
            for tp in self._options.topics.partitions_of(topic.name, (found.partition for found in topic.partitions))
        ]
        if strict:
            self._check_assigned(partitions)
        found = self._offsets(dict.fromkeys(partitions, "latest"), read_committed=self._options.read_committed)
        # A topic may go between the two questions.
        there = {tp.topic for tp in found} | {topic.name for topic in topics if not topic.partitions}
        return Seen(
            ids={name: id for name, id in ids.items() if name in there},
            ends={tp: info.offset for tp, info in found.items()},
            epochs={tp: info.leader_epoch for tp, info in found.items() if info.leader_epoch >= 0},
        )

    def log_starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each log; partitions that have gone meanwhile are left out."""
        found = self._offsets(dict.fromkeys(partitions, "earliest"))
        return {tp: info.offset for tp, info in found.items()}

    def reaching(self, seen: Seen, places: Mapping[TopicPartition, int]) -> Seen:
        """`seen` with ends no earlier than `places`, unless records were cut off there (`Seen.reaching`)."""
        short = seen.short_of(places) if self._options.read_committed else ()
        return seen.reaching(places, self.high_watermarks(short)) if short else seen

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of logs, open transactions included."""
        return {tp: info.offset for tp, info in self._offsets(dict.fromkeys(partitions, "latest")).items()}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offset of the first record at or after a time; starts.NO_OFFSET where no record is that late."""
        found = self._offsets(times_ms, read_committed=self._options.read_committed)
        return {tp: info.offset for tp, info in found.items()}

    def bytes_per_offset(self, topics: Collection[str]) -> dict[TopicPartition, float]:
        """What an offset weighs on disk, from the sizes of the logs. Empty when brokers do not tell: never an error."""
        now = time.monotonic()
        wanted = frozenset(topics)
        if self._rates is not None and now - self._rates[0] < SIZES_TTL_S and wanted <= self._rates[1]:
            return self._rates[2]
        try:
            rates = for_process().run(_rates(admin_for(self._options.admin_settings), wanted))
        except (ClientError, TimeoutError, OSError) as failure:
            _log.info("sizes of logs are not known, offsets are counted instead: %s", failure)
            rates = {}
        self._rates = (now, wanted, rates)
        return rates

    # Asking.

    def _topics(self, expected: Collection[str], strict: bool) -> list[TopicInfo]:
        ttl_s = self._options.metadata_ttl_ms / 1000
        if self._described is not None and time.monotonic() - self._described[0] < ttl_s:
            return self._described[1]
        choice = self._options.topics
        needed = set(choice.topics) if strict else set(expected)
        for _ in range(self._options.retries):
            found = self._ask(self._describe)
            if needed <= {topic.name for topic in found}:
                break
            # Brokers learn of a topic one after the other: one that lags is no proof that it is gone.
            self._wait()
        else:
            found = self._ask(self._describe)
        absent = sorted(set(choice.topics) - {topic.name for topic in found})
        if strict and absent:
            raise Missing(
                f"topic {absent[0]!r} does not exist on {self._options.bootstrap}: create it "
                f"(penstock topic create {absent[0]}), or look for a typing error in {choice}"
            )
        self._described = (time.monotonic(), found)
        return found

    async def _describe(self, admin: Admin) -> list[TopicInfo]:
        choice = self._options.topics
        if choice.pattern:
            existing = {topic.name: topic for topic in await admin.topics()}
            return [existing[name] for name in choice.matching(existing)]
        results = await admin.describe_topics(choice.topics, offsets=False, configs=False)
        for failure in results.failed.values():
            if not isinstance(failure, UnknownTopic):
                raise failure
        return list(results.done.values())

    def _offsets(
        self, wanted: Mapping[TopicPartition, str | int] | Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetInfo]:
        if not wanted:
            return {}

        async def ask(admin: Admin) -> dict[TopicPartition, OffsetInfo]:
            results = await admin.offsets(wanted, read_committed=read_committed)
            for failure in results.failed.values():
                if not isinstance(failure, UnknownTopic):
                    raise failure
            return results.done

        return self._ask(ask)

    def _ask(self, question: Callable[[Admin], Coroutine[Any, Any, T]]) -> T:
        """Asks until there is an answer, tries are used up, or patience is; a cluster nobody reaches may come back."""
        options = self._options
        began = time.monotonic()
        tries = 0
        while True:
            tries += 1
            try:
                return for_process().run(question(admin_for(options.admin_settings)))
            except ClientError as failure:
                waited_ms = (time.monotonic() - began) * 1000
                unreachable = isinstance(failure, (NotReachable, TimedOutWaiting))
                late = waited_ms + options.retry_interval_ms >= options.patience_ms
                if late or not (unreachable or (failure.retriable and tries <= options.retries)):
                    raise _told(failure, options, waited_ms, unreachable) from failure
            self._wait()

    def _wait(self) -> None:
        time.sleep(self._options.retry_interval_ms / 1000)

    def _check_assigned(self, partitions: Collection[TopicPartition]) -> None:
        absent = sorted(set(self._options.topics.assigned) - set(partitions))
        if absent:
            raise Missing(
                f"assign names {', '.join(map(str, absent[:10]))}, which does not exist on {self._options.bootstrap}: "
                f"look at penstock topic describe {absent[0].topic}"
            )


async def _rates(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, float]:
    names = sorted(topics)
    directories = await admin.describe_log_dirs(topics=names)
    sizes: dict[TopicPartition, int] = {}
    for found in directories.done.values():
        for directory in found:
            for replica in directory.replicas:
                tp = TopicPartition(replica.topic, replica.partition)
                sizes[tp] = max(sizes.get(tp, 0), replica.size_bytes)
    topics_found = (await admin.describe_topics(names, configs=False)).done
    return {
        tp: sizes[tp] / (info.end - info.start)
        for topic in topics_found.values()
        for info in topic.partitions
        if (tp := TopicPartition(topic.name, info.partition)) in sizes and 0 <= info.start < info.end
    }


def _told(failure: ClientError, options: SourceOptions, waited_ms: float, unreachable: bool) -> Missing:
    if unreachable:
        return Missing(
            f"no broker answers at {options.bootstrap} (tried for {waited_ms / 1000:.0f} s: {failure}). Is it running, "
            "and is kafka.bootstrap.servers the address that it advertises? kafka.default.api.timeout.ms sets how long "
            "to try"
        )
    return Missing(f"{options.bootstrap} did not say how far {options.topics} is: {failure}")
