"""Where the log goes on after a table: the offsets of each partition that the table does not have yet. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.errors import DataLost
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.source.losses import Seen


@dataclass(frozen=True, slots=True)
class Standing:
    """A table at one version, as far as its log is concerned."""

    name: str
    committed: Mapping[RangeKey, int]

    def of(self, tp: TopicPartition, ids: Mapping[str, str]) -> int | None:
        """The offset up to which the table has a partition; None when it never had anything of it."""
        by_id = self.committed.get(RangeKey(ids.get(tp.topic, ""), tp.partition))
        # Tables that were fed without ids know names.
        return by_id if by_id is not None else self.committed.get(RangeKey(tp.topic, tp.partition))

    def places(self, seen: Seen) -> dict[TopicPartition, int]:
        """How far it has each partition that is there now, of those it has anything of."""
        found = {tp: self.of(tp, seen.ids) for tp in seen.ends}
        return {tp: place for tp, place in found.items() if place is not None}

    def knows(self, topic: str, topic_id: str) -> bool:
        """Whether it has anything of this very topic."""
        return any(key.topic in (topic, topic_id) for key in self.committed)


def never_fed(table: Standing, seen: Seen, log_starts: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    """Partitions that hold records while the table never had anything of them: where they begin, the feed says."""
    return [
        tp for tp, end in sorted(seen.ends.items()) if table.of(tp, seen.ids) is None and log_starts.get(tp, end) < end
    ]


def plan_tail(
    table: Standing,
    seen: Seen,
    log_starts: Mapping[TopicPartition, int],
    begins: Mapping[TopicPartition, int],
) -> list[Span]:
    """The spans after the table, without empty ones. `begins` has those of `never_fed`; `DataLost` when one is gone."""
    losses: list[str] = []
    spans: list[Span] = []
    for tp, end in sorted(seen.ends.items()):
        log_start = log_starts.get(tp, 0)
        stands = table.of(tp, seen.ids)
        begin = begins.get(tp, log_start) if stands is None else stands
        if begin > end:
            losses.append(f"{tp} ends at {end}, but {table.name} has it up to {begin}: its newest records were cut off")
        elif begin < min(log_start, end):
            losses.append(
                f"{tp} begins at {log_start}, but {table.name} has it only up to {begin}: {log_start - begin} offsets "
                "were deleted from the log before the table got them"
            )
        elif begin < end:
            spans.append(Span(tp.topic, seen.ids.get(tp.topic, ""), tp.partition, begin, end))
    if losses:
        raise DataLost(
            "; ".join(losses[:10]) + (f"; and {len(losses) - 10} more" if len(losses) > 10 else "") + ". Let the query "
            "that writes the table go on with failOnDataLoss=false, or keep the log longer (retention.ms)"
        )
    return spans


def check_same_topics(table: Standing, ids: Mapping[str, str], former: Mapping[str, Collection[str]]) -> None:
    """`DataLost` for a topic that the table only has under another id. `former` has the ids of each topic's records."""
    for topic, now in sorted(ids.items()):
        then = sorted(former.get(topic, ()))
        if then and now not in then:
            raise DataLost(
                f"topic {topic!r} was deleted and created anew (its id was {then[-1]}, now it is {now}): {table.name} "
                "has records of the old one, and the log does not go on after them. Read the table by itself, or let "
                "the query that writes it go on with failOnDataLoss=false"
            )
