"""How far sinks are behind, as of now: by the ends of the logs as brokers tell them, not as the last batch saw them.

A sink whose trigger is a minute, or that failed an hour ago, has a last batch that knows nothing of what came since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.model.ids import TopicPartition
from penstock.spark.lake.following.versions import NAME_PREFIX
from penstock.spark.pipeline.home import SinkProgress
from penstock.spark.progress.patience import PATIENCE_S, within
from penstock.spark.progress.records import PartitionProgress


class Log(NamedTuple):
    """A partition as its reader sees it: `committed` ends at its last stable offset."""

    partition: TopicPartition
    committed: bool

    @classmethod
    def of(cls, progress: PartitionProgress) -> Log:
        return cls(TopicPartition(progress.topic, progress.partition), progress.committed)


Ends = Mapping[Log, int]


def logs_of(sinks: Iterable[SinkProgress]) -> set[Log]:
    """What brokers know the end of: not the versions of tables."""
    return {Log.of(each) for sink in sinks for each in sink.partitions if not each.topic.startswith(NAME_PREFIX)}


def as_of(sink: SinkProgress, ends: Ends) -> SinkProgress:
    """The sink with the lag that these ends make; a partition whose end nobody told keeps what was last known. Pure."""
    if not sink.partitions:
        return sink
    now = tuple(replace(each, end=max(each.end, ends.get(Log.of(each), -1))) for each in sink.partitions)
    return replace(sink, partitions=now, lag=sum(each.lag for each in now))


def of_all(sinks: Collection[SinkProgress]) -> int | None:
    """Sinks that read the same records wait for the same ones: of each partition the last sink counts. None when there
    is nothing to count from: no sinks, or one that had no batch yet. Pure."""
    if not sinks or not all(sink.begun for sink in sinks):
        return None
    behind: dict[TopicPartition, int] = {}
    for sink in sinks:
        for each in sink.partitions:
            place = TopicPartition(each.topic, each.partition)
            behind[place] = max(each.lag, behind.get(place, 0))
    return sum(behind.values())


def ask_ends(settings: Mapping[str, Any], logs: Collection[Log], patience_s: float = PATIENCE_S) -> Ends:
    """The ends of these logs; raises what keeps brokers from being asked. A partition that is gone is left out."""
    from penstock.spark.dialogue import admin_for, for_process

    if not logs:
        return {}
    admin = admin_for({name: str(value) for name, value in settings.items()})

    async def ask(committed: bool) -> dict[Log, int]:
        wanted = {log.partition: "latest" for log in logs if log.committed == committed}
        found = await admin.offsets(wanted, read_committed=committed)
        return {Log(tp, committed): info.offset for tp, info in found.done.items()}

    async def ask_both() -> Ends:
        return {**await ask(True), **await ask(False)}

    return for_process().run(within(ask_both(), patience_s))
