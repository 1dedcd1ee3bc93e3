"""What is wrong with how fast a group reads, and how long it will take to have read everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from penstock.model.units import bytes_text, count, duration_text
from penstock.operations.diagnosis.findings import Finding
from penstock.operations.explaining.members import LAG_MIN
from penstock.operations.explaining.paces import Pace, slowest_drain_s, together

if TYPE_CHECKING:
    from penstock.model.ids import TopicPartition
    from penstock.operations.explaining.sights import GroupFacts, Usual

_BURST_TIMES: Final = 2.0
_STEADY_SHARE: Final = 0.8
_SLOW_SHARE: Final = 0.6


def slower(facts: GroupFacts, paces: Mapping[TopicPartition, Pace]) -> Finding | None:
    """More is written than is read."""
    whole = together(paces.values())
    if not facts.last.readers or whole.lag < LAG_MIN or whole.incoming <= whole.outgoing or not whole.outgoing:
        return None
    missing = sum(1 for pace in paces.values() if pace.lag) > len(facts.last.readers)
    return Finding(
        "problem",
        "slower_than_producers",
        f"{whole.incoming:,.0f} records/s are written and {whole.outgoing:,.0f} are read: the lag grows by "
        f"{whole.incoming - whole.outgoing:,.0f} a second",
        "it never catches up like this",
        f"add members: {len(facts.last.readers)} read {count('partition', len(paces))}"
        if missing
        else "every partition that is behind has a member of its own: make the work on a record cheaper, or add "
        "partitions",
    )


def draining(paces: Mapping[TopicPartition, Pace]) -> Finding | None:
    """All is well but for the time that it takes."""
    whole = together(paces.values())
    drain_s = slowest_drain_s(paces.values())
    if whole.lag < LAG_MIN or whole.outgoing <= whole.incoming or drain_s is None:
        return None
    return Finding(
        "notice",
        "catching_up",
        f"it reads {whole.outgoing:,.0f} records/s and {whole.incoming:,.0f} are written: no lag in about "
        f"{duration_text(drain_s * 1_000)}",
        f"{count('record', whole.lag, grouped=True)} are left",
        "wait; more members make it faster as long as partitions are left for them",
    )


def unusual(facts: GroupFacts, paces: Mapping[TopicPartition, Pace]) -> Finding | None:
    """Who changed: the producers or the consumers. Only whoever has watched for long knows what is usual."""
    usual, whole = facts.usual, together(paces.values())
    if usual is None or whole.lag < LAG_MIN or not paces:
        return None
    if whole.incoming > _BURST_TIMES * usual.incoming and whole.outgoing >= _STEADY_SHARE * usual.outgoing:
        return _burst(whole, usual)
    if whole.outgoing < _SLOW_SHARE * usual.outgoing and whole.outgoing < whole.incoming:
        return Finding(
            "problem",
            "slower_than_usual",
            f"it reads {whole.outgoing:,.0f} records/s; at such a time {usual.outgoing:,.0f} are usual",
            "the producers are not the reason: the consumers have become slower",
            "what changed there? A new version, a slow database or service behind them, fewer members, a full CPU",
        )
    return None


def _burst(whole: Pace, usual: Usual) -> Finding:
    return Finding(
        "notice",
        "burst",
        f"{whole.incoming:,.0f} records/s are written; at such a time {usual.incoming:,.0f} are usual",
        "the consumers read as fast as ever, so it is the producers",
        "wait until it is over if retention allows, or add members",
    )


def limited(facts: GroupFacts) -> list[Finding]:
    """A quota in bytes a second is set on readers, and they are behind."""
    if facts.last.lag < LAG_MIN:
        return []
    names = sorted({reader.client_id for reader in facts.last.readers.values()} & set(facts.byte_rates))
    return [
        Finding(
            "notice",
            "quota",
            f"client {name!r} may read at most {bytes_text(int(facts.byte_rates[name]))} a second",
            "whoever reaches a quota is slowed down by the brokers, not refused",
            f"`penstock quota set --client-id {name} consumer_byte_rate=N` raises it",
        )
        for name in names
    ]
