"""Transactions that hold the last stable offset of partitions back: who they are, since when, and whether they hang."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from penstock.model.units import duration_text

if TYPE_CHECKING:
    from penstock.client.admin import Admin, OpenTransaction
    from penstock.model.ids import TopicPartition

LATE_MS: Final = 900_000
"""Brokers let no transaction live longer by default (`transaction.max.timeout.ms`)."""
GRACE_MS: Final = 300_000
"""So long after its time was over a transaction may still be about to be aborted."""
PARTITIONS_MAX: Final = 10_000
"""The ends of so many partitions are looked at: two numbers each, in one request a broker."""
HELD_MAX: Final = 100
"""The producers of so many are asked for. When more are held back, these tell why."""


async def held_back(admin: Admin, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Of partitions, those whose last stable offset is behind the high watermark.

    The high watermark is asked for first, so that what is written between the two questions holds nothing back. What
    cannot be asked, because its leader is away, is left out.
    """
    chosen = list(islice(partitions, PARTITIONS_MAX))
    if not chosen:
        return []
    ends = (await admin.offsets(dict.fromkeys(chosen, "latest"))).done
    stable = (await admin.offsets(dict.fromkeys(ends, "latest"), read_committed=True)).done
    return [item for item in chosen if item in stable and stable[item].offset < ends[item].offset]


async def holding_back(admin: Admin, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """The transactions that hold partitions back, of a bounded number of them."""
    held = (await held_back(admin, partitions))[:HELD_MAX]
    return await admin.open_transactions(held) if held else []


def since_ms(transaction: OpenTransaction) -> int:
    """When it began, as far as anybody knows: of one that hangs only the time of its last record is told."""
    return transaction.last_timestamp if transaction.started_ms is None else transaction.started_ms


def late(transaction: OpenTransaction, now_ms: int) -> bool:
    """Whether somebody has to do something: nobody will end it, or its coordinator should have long ago."""
    if transaction.hanging:
        return now_ms - transaction.last_timestamp > LATE_MS
    return now_ms - since_ms(transaction) > (transaction.timeout_ms or LATE_MS) + GRACE_MS


def words(transaction: OpenTransaction, now_ms: int) -> str:
    """One transaction as an item of a list: where, whose, since when."""
    age = duration_text(max(now_ms - since_ms(transaction), 0))
    where = f"{transaction.topic}-{transaction.partition} from offset {transaction.start_offset}"
    if transaction.hanging:
        return f"{where} (producer {transaction.producer_id}, no coordinator knows it, last written {age} ago)"
    return f"{where} ({transaction.transactional_id!r}, open for {age})"
