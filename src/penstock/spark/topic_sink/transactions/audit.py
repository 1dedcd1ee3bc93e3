"""The proof of an exactly-once sink: input ranges that tile, and for each of them the records that are shown.

Decisions say which offsets were read and which transactions hold what was made of them; the topics say who wrote what
is committed in them. `judge` holds the one against the other, and is pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from penstock.client.admin import Admin
from penstock.client.admin.batches import CommittedBatch
from penstock.client.spans import SpanReader
from penstock.model.ids import TopicPartition
from penstock.model.units import count
from penstock.spark.errors import Missing
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.topic_sink.transactions import ledger
from penstock.spark.topic_sink.transactions.names import PREFIX, pattern_of
from penstock.spark.topic_sink.transactions.records import Decision, Standing

FINDINGS_SHOWN = 20

Producing = tuple[int, int]
"""A producer id and its epoch: one transaction, whoever had it."""


class Span(NamedTuple):
    """What one partition shows from an offset on; records before it are gone, or of decisions that are not kept."""

    start: int
    batches: Sequence[CommittedBatch]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is looked at. Decisions are oldest first."""

    standing: Standing
    decisions: Sequence[Decision]
    shown: Mapping[TopicPartition, Span]
    producers: frozenset[int]
    """The producer ids that this query's sink has, or had."""


@dataclass(frozen=True, slots=True)
class SinkAudit:
    """What was found; `findings` are sentences, and none of them is good."""

    query_id: str
    decisions: int
    oldest: int
    offsets: int
    """Of the input, in the decisions that are kept."""
    rows: int
    untold: int
    """Rows of decisions whose records are gone by retention."""
    findings: tuple[str, ...] = field(default=())

    @property
    def clean(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {"clean": self.clean, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        word = "clean" if self.clean else "NOT CLEAN"
        yield f"query {self.query_id}: {word}"
        yield f"  {count('decision', self.decisions)}, from number {self.oldest} on"
        yield f"  input   {count('offset', self.offsets)} in ranges that follow each other"
        yield f"  output  {count('row', self.rows)} that decisions list" + (
            f", {self.untold} of them gone by retention" if self.untold else ""
        )
        for finding in self.findings[:FINDINGS_SHOWN]:
            yield f"error: {finding}"
        if len(self.findings) > FINDINGS_SHOWN:
            yield f"… and {len(self.findings) - FINDINGS_SHOWN} more: --format json has them all"


def judge(evidence: Evidence) -> SinkAudit:
    standing = evidence.standing
    # What lies beside those that are kept is left over from when more were.
    decisions = [each for each in evidence.decisions if _oldest(standing) <= each.sequence <= standing.sequence]
    findings = [*_lost(evidence.standing, decisions), *_tiled(evidence.standing, decisions)]
    untold: list[int] = []
    findings += _shown(decisions, evidence.shown, untold)
    findings += _unlisted(decisions, evidence)
    return SinkAudit(
        evidence.standing.query_id,
        len(decisions),
        decisions[0].sequence if decisions else 0,
        sum(each.count for decision in decisions for each in decision.ranges),
        sum(each.rows for each in decisions),
        sum(untold),
        tuple(findings),
    )


def _lost(standing: Standing, decisions: Sequence[Decision]) -> Iterator[str]:
    """Numbers follow each other, up to the last one, as far back as they are kept."""
    there = {each.sequence for each in decisions}
    for sequence in range(_oldest(standing), standing.sequence + 1):
        if sequence not in there:
            yield f"decision {sequence} is not in the ledger: what it listed cannot be proven"


def _oldest(standing: Standing) -> int:
    """The first of those that are kept."""
    return max(1, standing.sequence - standing.history + 1)


def _tiled(standing: Standing, decisions: Sequence[Decision]) -> Iterator[str]:
    ends: dict[RangeKey, tuple[int, int]] = {}
    for decision in decisions:
        for each in decision.ranges:
            end, before = ends.get(each.key, (each.start, 0))
            if end != each.start:
                what = f"skips {each.start - end}" if end < each.start else f"reads {end - each.start} again"
                yield f"decision {decision.sequence} begins at {each.start} of {each.topic}-{each.partition}, " + (
                    f"and decision {before} ended at {end}: it {what} offsets"
                )
            ends[each.key] = each.end, decision.sequence
    settled = standing.decision is None or standing.decision.ended
    for key, (end, sequence) in ends.items():
        if settled and standing.positions.get(key) != end:
            yield f"decision {sequence} ended at {end} of {key}, and the ledger stands at {standing.positions.get(key)}"


def _shown(decisions: Sequence[Decision], shown: Mapping[TopicPartition, Span], untold: list[int]) -> Iterator[str]:
    """What decisions list is there, row for row."""
    rows: dict[tuple[TopicPartition, Producing], int] = defaultdict(int)
    for partition, span in shown.items():
        for batch in span.batches:
            rows[partition, (batch.producer_id, batch.producer_epoch)] += batch.records
    for decision in decisions:
        for listed in decision.transactions:
            whose = (listed.prepared.producer_id, listed.prepared.producer_epoch)
            for landed in listed.landed:
                partition = TopicPartition(landed.topic, landed.partition)
                there = shown.get(partition)
                if there is None or landed.first < there.start:
                    untold.append(landed.rows)
                    continue
                seen = rows[partition, whose]
                if seen != landed.rows and decision.ended:
                    yield (
                        f"decision {decision.sequence} lists {landed.rows} rows of {listed.id} in {partition} "
                        f"[{landed.first}, {landed.last}], and {seen} are shown"
                    )


def _unlisted(decisions: Sequence[Decision], evidence: Evidence) -> Iterator[str]:
    """Nothing of this sink is shown that no decision lists."""
    listed = {
        (each.prepared.producer_id, each.prepared.producer_epoch)
        for decision in decisions
        for each in decision.transactions
    }
    for partition, span in sorted(evidence.shown.items()):
        for batch in span.batches:
            whose = (batch.producer_id, batch.producer_epoch)
            if batch.producer_id in evidence.producers and whose not in listed:
                yield (
                    f"{batch.records} rows at {partition} [{batch.base_offset}, {batch.last_offset}] are shown and no "
                    f"decision lists them: producer {batch.producer_id}, epoch {batch.producer_epoch} committed them"
                )


async def gather(admin: Admin, reader: SpanReader, query_id: str) -> Evidence:
    """From the ledger and the topics; `reader` shows committed records only."""
    standing, decisions = await ledger.read_with_history(admin, reader, query_id)
    if standing is None:
        raise Missing(f"no decision of query {query_id} is in the ledger: did it ever run with exactly.once?")
    producers = {each.prepared.producer_id for decision in decisions for each in decision.transactions}
    for each in await admin.list_transactions(pattern=pattern_of(f"{PREFIX}{query_id}-")):
        producers.add(each.producer_id)
    return Evidence(standing, decisions, await _shown_in(admin, standing, decisions), frozenset(producers))


async def _shown_in(admin: Admin, standing: Standing, decisions: Sequence[Decision]) -> dict[TopicPartition, Span]:
    """All of the topics while all decisions are kept, else what lies behind the first record of the oldest one."""
    first: dict[TopicPartition, int] = {}
    for decision in decisions:
        for listed in decision.transactions:
            for landed in listed.landed:
                partition = TopicPartition(landed.topic, landed.partition)
                first[partition] = min(first.get(partition, landed.first), landed.first)
    topics = (await admin.describe_topics(sorted(standing.topics), offsets=False, configs=False)).done
    there = [
        TopicPartition(name, each.partition)
        for name, info in sorted(topics.items())
        if info.id == standing.topics[name]
        for each in info.partitions
    ]
    starts = (await admin.offsets(dict.fromkeys(there, "earliest"))).checked()
    ends = (await admin.offsets(dict.fromkeys(there, "latest"), read_committed=True)).checked()
    whole = bool(decisions) and decisions[0].sequence == 1
    shown = {}
    for partition in there:
        start = starts[partition].offset
        if not whole:
            start = max(start, first.get(partition, ends[partition].offset))
        span = await admin.committed_batches(partition, start, ends[partition].offset)
        shown[partition] = Span(start, span.batches)
    return shown
