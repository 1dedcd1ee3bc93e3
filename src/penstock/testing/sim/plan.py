"""What the seed decides before anything runs: the shape of the cluster, its settings, and how much goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

CLIENT_PORT, CONTROLLER_PORT = 9_092, 9_093

TROUBLES = (
    "kill", "power", "pause", "restart", "isolate", "one_way", "split", "slow_link", "cut_connections", "slow_disk",
    "broken_disk", "full_disk",
)  # fmt: skip
BETWEEN_NODES = ("isolate", "one_way", "split", "slow_link")
CHORES = ("create", "delete", "grow", "reassign", "elect", "configure")
KEPT = (
    {"retention.ms": "2000", "segment.ms": "1000"},
    {"retention.bytes": "1000", "segment.ms": "500"},
    {"retention.ms": "1000", "retention.bytes": "1000", "segment.ms": "500"},
)
"""What a topic may keep: some seconds, some bytes, or whichever is less. Clocks may be minutes apart."""


@dataclass(slots=True)
class Plan:
    """One world's parameters. Everything is drawn from the seed; a test may set some of it by hand."""

    nodes: int
    trouble_s: float
    """How long things go wrong before all is healed."""

    controllers: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    troubles: dict[str, float] = field(default_factory=dict)
    """Kinds of trouble and their weights."""

    chores: dict[str, float] = field(default_factory=dict)
    pause_s: tuple[float, float] = (0.1, 2.0)
    between_troubles_s: float = 1.0
    between_chores_s: float = 1.5
    down_at_once: int = 1
    latency_s: float = 0.000_3
    jitter_s: float = 0.000_3
    drop_rate: float = 0.0
    split_rate: float = 0.0
    clock_skew_ms: int = 0
    clock_drift: float = 0.0
    producers: int = 2
    consumers: int = 2
    group_protocol: str = "classic"
    partitions: int = 3
    in_flight: int = 1
    """Produce requests of one producer that are under way at once."""

    record_every_s: float = 0.05
    kept: dict[str, str] = field(default_factory=lambda: dict(KEPT[0]))
    """The configs of the topic from which every replica deletes on its own."""

    @property
    def replication(self) -> int:
        return min(3, len(self.brokers))

    @property
    def min_in_sync(self) -> int:
        return min(2, self.replication)

    def node_properties(self, node_id: int) -> dict[str, str]:
        roles = [name for name, ids in (("broker", self.brokers), ("controller", self.controllers)) if node_id in ids]
        host = f"node-{node_id}"
        listeners = {
            "broker": f"PLAINTEXT://{host}:{CLIENT_PORT}",
            "controller": f"CONTROLLER://{host}:{CONTROLLER_PORT}",
        }
        return {
            "node.id": str(node_id),
            "process.roles": ",".join(roles),
            "listeners": ",".join(listeners[role] for role in roles),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(
                f"node-{each}:{CONTROLLER_PORT}" for each in self.controllers
            ),
            "log.dirs": f"/data/{host}",
            "penstock.admin.listener": "",
            **self.properties,
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(f"node-{each}:{CLIENT_PORT}" for each in self.brokers)


def drawn(random: Random, nodes: int, trouble_s: float) -> Plan:
    """A plan from a seed. Half of the kinds of trouble are left out each time, so that rare ones meet each other."""
    plan = Plan(nodes, trouble_s)
    ids = tuple(range(1, nodes + 1))
    if nodes >= 4 and random.random() < 0.4:
        plan.controllers, plan.brokers = ids[:3], ids[3:] if nodes >= 6 else ids
    else:
        plan.controllers = plan.brokers = ids
    for name in TROUBLES:
        chance, weight = random.random(), random.random()
        if chance < 0.5 and (nodes > 1 or name not in BETWEEN_NODES):
            plan.troubles[name] = weight
    for name in CHORES:
        chance, weight = random.random(), random.random()
        if chance < 0.6:
            plan.chores[name] = weight
    plan.pause_s = (0.05, random.choice((0.5, 2.0, 5.0)))
    plan.between_troubles_s = random.choice((0.3, 0.8, 2.0))
    plan.between_chores_s = random.choice((0.5, 2.0, 5.0))
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
    plan.properties = _properties(random, plan)
    plan.kept = dict(random.choice(KEPT))
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
        "log.retention.check.interval.ms": "700",
        "log.segment.bytes": str(random.choice((1_048_576, 1 << 30))),
        "leader.imbalance.check.interval.seconds": str(random.choice((5, 300))),
    }
