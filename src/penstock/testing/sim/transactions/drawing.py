"""Draws transactions into a world. They have a chance of their own: the rest of the world is as without them."""

from __future__ import annotations

from random import Random

from penstock.testing.ancient import Age
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.transactions.plan import COPIERS, TransactionPlan, copier_id, writer_id

WRITERS_MAX = 3
OLD_EPOCH = 32_760
YOUNG = Age(1_000, 7, 1_000)
"""Of a world that would have no past, when its transactional ids need one."""


def with_transactions(plan: Plan, random: Random) -> None:
    """Draws what transactions need, into a plan that was drawn."""
    drawn = plan.transactions = TransactionPlan(
        writers=random.randint(1, WRITERS_MAX),
        copiers=random.randint(1, COPIERS),
        abort_rate=random.choice((0.05, 0.2, 0.6)),
        end_rate=random.choice((0.0, 0.3, 0.8)),
        classic_rate=random.choice((0.0, 0.5, 0.5, 1.0)),
        timeouts_ms=random.choice(((800,), (3_000,), (10_000,), (500, 3_000, 10_000))),
        pause_s=random.choice((0.0, 0.05, 0.4)),
        records_max=random.choice((1, 4, 12)),
        ledger=dict(random.choice(({}, {"internal.segment.bytes": "1000"}, {"internal.segment.bytes": "3000"}))),
    )
    # The others do what they do elsewhere, and would take most of the time.
    plan.producers = plan.consumers = 1
    plan.emptied = plan.emptied and random.random() < 0.3
    ids = [*(writer_id(each) for each in range(drawn.writers)), *(copier_id(each) for each in range(drawn.copiers))]
    if random.random() < 0.4:
        drawn.old_ids = {name: OLD_EPOCH + random.randint(0, 6) for name in ids}
        plan.age = plan.age or YOUNG
    plan.properties |= {
        "transaction.state.log.num.partitions": "2",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(random.choice((200, 1_000))),
        "transactional.id.expiration.ms": str(random.choice((604_800_000, 604_800_000, 2_000))),
        "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
        "log.cleaner.min.cleanable.ratio": str(random.choice((0.01, 0.5))),
    }
