"""What is decided before anything runs: the shape of the cluster, its settings, and how much goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.model.secret import Secret
from penstock.testing.ancient import Age
from penstock.testing.sim.topics import AGAIN, ALONE, BRIEF, COMPACTED, DOORS, KEPT, KEYED, LOOSE, ORDERS
from penstock.transport.dial_security import DialSecurity
from penstock.transport.login import PasswordCredentials

if TYPE_CHECKING:
    from penstock.testing.sim.transactions.plan import TransactionPlan

CLIENT_PORT, CONTROLLER_PORT = 9_092, 9_093

REFUSED_FIRST_MS = 600_000
"""Who asks for metadata so seldom learns of a new leader because the old one says so."""

GROWS_MS = 5_000
"""And who asks so often learns of new partitions."""


WORKER, PASSWORD = "worker", "secret"
PEOPLE = (WORKER, "node", "guest-1", "guest-2", "guest-3")
_USERS = " ".join(f'user_{name}="{PASSWORD}"' for name in PEOPLE)
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LOGIN = f'{_MODULE} required username="node" password="{PASSWORD}" {_USERS};'
SECURED = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": _LOGIN,
    "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:node;User:{WORKER}",
}
"""What nodes of the secured world have besides: there is no TLS in it, and logins take no time."""


@dataclass(slots=True)
class Plan:
    """One world's parameters. Everything is drawn from the seed; a test may set some of it by hand."""

    nodes: int
    trouble_s: float
    """How long things go wrong before all is healed."""

    controllers: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    mishaps: dict[str, float] = field(default_factory=dict)
    """Which take part, and their weights."""

    chores: dict[str, float] = field(default_factory=dict)
    directories: int = 1
    """Log directories of every node."""

    pause_s: tuple[float, float] = (0.1, 2.0)
    between_mishaps_s: float = 1.0
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

    compacted: dict[str, str] = field(default_factory=lambda: dict(COMPACTED[0]))
    """Those of the topic that keeps the last record of a key."""

    producers_expire: bool = False
    """Whether brokers forget producers within seconds. Whoever tries again after that long may be written twice."""

    emptied: bool = False
    """Whether everything is deleted at the end."""

    version_caps: bool = False
    """Whether clients are of many ages, from the oldest that is served to the newest."""

    age: Age | None = None
    """How far the counters have come when the world begins; None in a new one."""

    century_ms: int = 0
    """What all clocks are ahead of the usual moment, or behind."""

    secured: bool = False
    """Whether everybody has to log in, ACLs decide, and guests come and go. Never drawn: it is another world."""

    bystanders: bool = True
    """Whether there are producers and readers of the topics that are there for them alone."""

    transactions: TransactionPlan | None = None
    """What there is of transactions; None in a world without. Never drawn with the rest: it is another world."""

    @property
    def replication(self) -> int:
        return min(3, len(self.brokers))

    @property
    def min_in_sync(self) -> int:
        return min(2, self.replication)

    @property
    def metadata_max_age_ms(self) -> int:
        """Of clients that write, and that read in a group: they have to learn of partitions that come later."""
        return GROWS_MS if "partitions added" in self.chores else REFUSED_FIRST_MS

    def node_properties(self, node_id: int) -> dict[str, str]:
        roles = [name for name, ids in (("broker", self.brokers), ("controller", self.controllers)) if node_id in ids]
        if node_id > self.nodes:
            roles = ["broker"]  # one that was added later
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
            "log.dirs": ",".join(self.log_dirs(node_id)),
            "penstock.admin.listener": "",
            # A voter whose disk was replaced takes its own place again.
            **(SECURED if self.secured else {}),
            **({"controller.quorum.auto.join.enable": "true"} if "controller" in roles else {}),
            **self.properties,
        }

    def log_dirs(self, node_id: int) -> list[str]:
        return [f"/data/node-{node_id}/{name}" for name in "abc"[: self.directories]]

    def topics(self) -> dict[str, dict[str, str]]:
        """The topics that everybody works on, with their configs."""
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", **self.compacted}
        guests: dict[str, dict[str, str]] = {DOORS: {}} if self.secured else {}
        written = {BRIEF: self.kept, KEYED: compacted, AGAIN: {}}
        if self.transactions is None:
            return {ORDERS: {}, LOOSE: {}, **written, **guests}
        return {**written, **guests, **self.transactions.topics()}

    def replicas_of(self, topic: str) -> int:
        """How many each partition of a topic has."""
        alone = self.transactions is not None and topic == ALONE
        return 1 if alone else self.replication

    @property
    def login(self) -> dict[str, Any]:
        """Keywords of the clients that may do everything."""
        if not self.secured:
            return {}
        protocol = {"security_protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN"}
        return {**protocol, "username": WORKER, "password": PASSWORD}

    def security(self, user: str = WORKER) -> DialSecurity | None:
        """How somebody dials who is no client with keywords; a new one for each, because it belongs to one loop."""
        if not self.secured:
            return None
        return DialSecurity(None, PasswordCredentials("PLAIN", user, Secret(PASSWORD)))

    @property
    def bootstrap(self) -> str:
        return ",".join(f"node-{each}:{CLIENT_PORT}" for each in self.brokers)


Possible: TypeAlias = Callable[[Plan], bool]
"""Whether an act can take part in a world of this plan."""


def always(_plan: Plan) -> bool:
    return True


def several_nodes(plan: Plan) -> bool:
    return plan.nodes > 1
