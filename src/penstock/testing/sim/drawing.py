"""What a seed decides: a plan, and which acts take part in it."""

from __future__ import annotations

from random import Random

from penstock.testing.ancient import Age
from penstock.testing.sim.acts import CHORES, MISHAPS
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.topics import COMPACTED, KEPT

AGES = (None,) * 6 + tuple(Age((1 << bits) - left) for bits in (31, 53) for left in (1_000, 40))
"""Offsets come to the end of what 31 bits and what a float can count, and some cross it."""

CENTURIES_MS = (0, 0, 0, 0, -1_799_000_000_000, 2_500_000_000_000, 7_300_000_000_000)
"""How far clocks are from the year 2027: in 1970, in 2106 (beyond 32 bits of seconds), in 2258 (the last that
nanoseconds can count: a producer reads its clock in them)."""


def drawn(random: Random, nodes: int, trouble_s: float) -> Plan:
    """A plan from a seed. Half of the kinds of trouble are left out each time, so that rare ones meet each other."""
    plan = Plan(nodes, trouble_s)
    ids = tuple(range(1, nodes + 1))
    if nodes >= 3 and random.random() < 0.4:
        plan.controllers, plan.brokers = ids[: 3 if nodes >= 4 else 1], ids[3:] if nodes >= 6 else ids
    else:
        plan.controllers = plan.brokers = ids
    plan.directories = random.choice((1, 2, 2, 3))
    for mishap in MISHAPS:
        chance, weight = random.random(), random.random()
        if chance < mishap.chance and mishap.possible(plan):
            plan.mishaps[mishap.name] = weight
    for chore in CHORES:
        chance, weight = random.random(), random.random()
        if chance < chore.chance and chore.possible(plan):
            plan.chores[chore.name] = weight
    plan.pause_s = (0.05, random.choice((0.5, 2.0, 5.0)))
    plan.between_mishaps_s = random.choice((0.3, 0.8, 2.0))
    plan.between_chores_s = random.choice((0.1, 0.3, 1.0))
    plan.down_at_once = random.choice((1, 1, 1, (nodes - 1) // 2, nodes)) or 1
    plan.latency_s = random.choice((0.000_1, 0.001, 0.01))
    plan.jitter_s = plan.latency_s * random.choice((0.1, 1.0, 5.0))
    plan.drop_rate = random.choice((0.0, 0.0, 0.000_3, 0.002))
    plan.split_rate = random.choice((0.0, 0.05))
    plan.clock_skew_ms = random.choice((0, 0, 1_000, 600_000))
    plan.clock_drift = random.choice((0.0, 0.0, 0.001, 0.02))
    plan.group_protocol = random.choice(("classic", "consumer"))
    plan.partitions = random.randint(1, 4)
    plan.record_every_s = random.choice((0.03, 0.1, 0.4))
    plan.in_flight = random.choice((1, 5, 5))
    plan.producers_expire = random.random() < 0.3
    plan.version_caps = random.random() < 0.4
    plan.emptied = random.random() < 0.3
    plan.properties = _properties(random, plan)
    plan.kept = dict(random.choice(KEPT))
    plan.compacted = dict(random.choice(COMPACTED))
    plan.age = random.choice(AGES)
    plan.century_ms = random.choice(CENTURIES_MS)
    return plan


def _properties(random: Random, plan: Plan) -> dict[str, str]:
    session_ms = random.choice((1_500, 3_000))
    election_ms = random.choice((300, 500))
    copies, in_sync = plan.replication, plan.min_in_sync
    return {
        "broker.heartbeat.interval.ms": str(random.choice((200, 500))),
        "broker.session.timeout.ms": str(session_ms),
        "controller.quorum.election.timeout.ms": str(election_ms),
        "controller.quorum.election.backoff.max.ms": str(election_ms),
        "controller.quorum.fetch.timeout.ms": str(random.choice((500, 1_000))),
        "controller.quorum.request.timeout.ms": "1000",
        "replica.lag.time.max.ms": str(random.choice((2_000, 5_000))),
        "replica.socket.timeout.ms": "3000",
        "request.timeout.ms": "5000",
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "num.replica.fetchers": str(random.choice((1, 2))),
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((2_000, 10_000, 20_971_520))),
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.assignment.interval.ms": "0",
        "auto.create.topics.enable": "false",
        "penstock.log.dir.hang.timeout.ms": str(random.choice((1_000, 2_000, 30_000))),
        "log.retention.check.interval.ms": str(random.choice((300, 700))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((400, 1_500, 60_000))),
        "log.flush.start.offset.checkpoint.interval.ms": str(random.choice((400, 1_500, 60_000))),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice((400, 1_500, 5_000))),
        "log.segment.delete.delay.ms": str(random.choice((0, 500, 60_000))),
        "log.cleaner.backoff.ms": str(random.choice((200, 700))),
        "log.roll.ms": str(random.choice((300, 1_000, 604_800_000))),
        "producer.id.expiration.ms": "1500" if plan.producers_expire else "86400000",
        "producer.id.expiration.check.interval.ms": "500",
        "offsets.retention.check.interval.ms": "400",
        "log.segment.bytes": str(random.choice((1_048_576, 1 << 30))),
        "leader.imbalance.check.interval.seconds": str(random.choice((5, 300))),
    }
