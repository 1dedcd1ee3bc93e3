"""Draws transactions into a world. They have a chance of their own: the rest of the world is as without them.

Of what goes on elsewhere in a world these have less, because it would take most of the time: no plain producers and
readers, few partitions, and mostly the chores and mishaps that move leaders and take machines away.
"""

from __future__ import annotations

from random import Random

from penstock.testing.ancient import Age
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.transactions.plan import COPIERS, TransactionPlan, copier_id, writer_id

WRITERS_MAX = 3
LAST_EPOCH = 32_766
YOUNG = Age(1_000, 7, 1_000)
"""Of a world that would have no past, when its transactional ids need one."""

CHORES = {
    "topics made again": 0.2, "records deleted": 0.3, "topics configured": 0.3, "replicas reassigned": 1.0,
    "leaders elected": 0.5, "directories asked for": 0.2,
}  # fmt: skip
MISHAPS = {
    "kills": 1.0, "power cuts": 1.0, "pauses": 0.5, "restarts": 1.0, "nodes cut off": 0.5, "one-way cuts": 0.3,
    "connections cut": 0.5, "clocks set": 0.2,
}  # fmt: skip
BYTES_ARE_LOST = ("power cuts", "empty disks", "disks copied", "broken disks", "full disks")
"""What a partition with one replica does not survive."""


def with_transactions(plan: Plan, random: Random) -> None:
    """Draws what transactions need, into a plan that was drawn."""
    timeouts_ms = random.choice(((800,), (3_000,), (500, 3_000, 10_000)))
    drawn = plan.transactions = TransactionPlan(
        writers=random.randint(1, WRITERS_MAX),
        copiers=random.randint(1, COPIERS),
        abort_rate=random.choice((0.05, 0.2, 0.6)),
        end_rate=random.choice((0.0, 0.3, 1.0)),
        classic_rate=random.choice((0.0, 0.0, 0.5, 1.0)),
        timeouts_ms=timeouts_ms,
        pause_s=random.choice((0.0, 0.02, 0.2)),
        stall_rate=random.choice((0.0, 0.0, 0.1)),
        offsets_rate=random.choice((0.0, 0.3, 0.8)),
        records_max=random.choice((1, 4, 12)),
        between_strikes_s=random.choice((0.3, 0.6, 1.5)),
        late_rate=random.choice((0.0, 0.02, 0.1)),
        alone=plan.replication > 1 and random.random() < 0.3,
        plain=random.random() < 0.3,
        ledger=dict(random.choice(({}, {"internal.segment.bytes": "1000"}, {"internal.segment.bytes": "3000"}))),
    )
    _make_room(plan, random)
    if drawn.alone:
        plan.pause_s = (0.3, 3.0)  # long enough for somebody to come and end what was open
        plan.mishaps = {name: weight for name, weight in plan.mishaps.items() if name not in BYTES_ARE_LOST}
    ids = [*(writer_id(each) for each in range(drawn.writers)), *(copier_id(each) for each in range(drawn.copiers))]
    if random.random() < 0.4:
        drawn.old_ids = {name: LAST_EPOCH - random.choice((0, 1, 1, 2, 4)) for name in ids}
        plan.age = plan.age or YOUNG
    plan.properties |= {
        "transaction.state.log.num.partitions": random.choice(("1", "2")),
        "offsets.topic.num.partitions": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(random.choice((200, 1_000))),
        "transactional.id.expiration.ms": str(random.choice((604_800_000, 604_800_000, 2_000))),
        "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
        "log.cleaner.min.cleanable.ratio": str(random.choice((0.01, 0.5))),
    }


def _make_room(plan: Plan, random: Random) -> None:
    """What else goes on, and how much of it."""
    plan.bystanders = False
    plan.producers, plan.consumers = 0, 0
    plan.partitions = random.choice((1, 1, 2, 3))
    plan.producers_expire = random.random() < 0.1
    plan.properties["producer.id.expiration.ms"] = "1500" if plan.producers_expire else "86400000"
    plan.emptied = plan.emptied and random.random() < 0.2
    plan.record_every_s = random.choice((0.01, 0.05, 0.2))
    plan.latency_s = min(plan.latency_s, 0.001)
    plan.jitter_s = plan.latency_s * random.choice((0.1, 1.0, 5.0))
    plan.pause_s = (0.05, random.choice((0.3, 1.0, 3.0)))
    plan.between_mishaps_s, plan.between_chores_s = random.choice((0.8, 2.0)), random.choice((0.5, 1.5))
    if random.random() < 0.8:
        several = plan.nodes > 1
        plan.chores = {name: weight for name, weight in CHORES.items() if random.random() < 0.6} if several else {}
        plan.mishaps = {
            name: weight
            for name, weight in MISHAPS.items()
            if random.random() < 0.5 and (several or name in ("kills", "pauses", "restarts", "connections cut"))
        }
