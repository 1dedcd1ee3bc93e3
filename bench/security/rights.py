"""What limits and rights cost the headline's produces and fetches, when they stop nobody.

Three nodes of the same code stand side by side: one open, as the headline has it, one with quotas that nobody reaches,
one with an authorizer and 10,000 ACLs. Each load goes to one after the other, and every round begins with another of
them. What counts is how much more processor time a node took than the open one in the same round.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import brokers, memory
from bench.brokers import PENSTOCK_NODE, Running
from bench.headline.calm import OF_COST, Calm
from bench.headline.produce import CASES, GB, Case
from bench.security.plan import Plan
from penstock.bench import raw
from penstock.blocking import Admin
from penstock.certificates import Role, create_authority, issue_node, write_issued
from penstock.client.admin import Acl, QuotaEntity
from tests.compat.judged import Penstock
from tests.compat.processes import free_ports

OPEN, QUOTAS, ACLS = "open", "quotas", "10,000 ACLs"
NODES = (OPEN, QUOTAS, ACLS)
MORE_MAX = 0.05
"""How much more processor time limits and rights may take."""
ACLS_COUNT = 10_000
OUT_OF_REACH = 1e12
CLUSTER_ID = "Xk2aCqkDQ-6hT0eB3v9T_A"
FILLED = "rights-filled"
FETCH = "fetch, 1 MB at a time, 1 KB records"
PLAIN_CASES = [case for case in CASES if case.codec == "none"]
SAMPLE_BYTES_MAX, FILLED_BYTES, AGAIN_S_MAX = 200_000_000, 200_000_000, 240.0
CREATED_AT_ONCE = 1_000


@dataclass
class Costs:
    """Broker CPU in µs a request, or in seconds a GB, by load and node: a sample a round."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, what: str, node: str, value: float) -> None:
        self.samples.setdefault(what, {}).setdefault(node, []).append(value)

    def more(self, what: str, node: str) -> float:
        """How much more than the open node, as a share of it: the median of the rounds."""
        of = self.samples[what]
        return statistics.median(here / there for here, there in zip(of[node], of[OPEN], strict=True)) - 1

    def more_of_all(self, node: str) -> float:
        """The same over all loads, each of which counts alike."""
        ratios = [1 + self.more(what, node) for what in self.samples]
        return statistics.geometric_mean(ratios) - 1


def measure(plan: Plan, costs: Costs, say: Callable[[str], None]) -> None:
    with _nodes() as nodes:
        batch, records = raw.make_batch(1_000, 16_000, "none")
        for running in nodes.values():
            running.new_topic(FILLED, 1)
            raw.produce_load(
                running.bootstrap, FILLED, batch, records, acks=-1, seconds=60, bytes_max=FILLED_BYTES, lanes=1
            )
        calm = Calm(AGAIN_S_MAX)
        # The first round warms up, and is not counted.
        for number in range(plan.rounds * 3 + 1):
            say(f"rights and limits, round {number} of {plan.rounds * 3}")
            _round(nodes, number, plan.sample_s, calm, costs if number else Costs())


def _round(nodes: Mapping[str, Running], number: int, seconds: float, calm: Calm, costs: Costs) -> None:
    order = [NODES[(number + each) % len(NODES)] for each in range(len(NODES))]
    for case in PLAIN_CASES:
        for name in order:
            topic = f"rights-{number}-{PLAIN_CASES.index(case)}"
            costs.add(
                f"{case.name}, µs/request",
                name,
                calm.sampled(lambda r=nodes[name], c=case, t=topic: _produced_us(r, c, t, seconds), OF_COST),  # type: ignore[misc]
            )
    for name in order:
        costs.add(f"{FETCH}, CPU-s/GB", name, calm.sampled(lambda r=nodes[name]: _fetched_s(r, seconds), OF_COST))  # type: ignore[misc]


def _produced_us(running: Running, case: Case, topic: str, seconds: float) -> float:
    batch, records = raw.make_batch(case.record_bytes, case.batch_bytes, case.codec)
    running.new_topic(topic, case.lanes * case.partitions_a_request)
    try:
        memory.refresh(SAMPLE_BYTES_MAX * 6 // 5, running.node.home)
        used = running.usage().cpu_s
        load = raw.produce_load(
            running.bootstrap, topic, batch, records,
            acks=-1, seconds=seconds, bytes_max=SAMPLE_BYTES_MAX,
            lanes=case.lanes, partitions_a_request=case.partitions_a_request,
        )  # fmt: skip
        return (running.usage().cpu_s - used) / load.requests * 1e6
    finally:
        running.drop_topic(topic)
        running.settle()


def _fetched_s(running: Running, seconds: float) -> float:
    used = running.usage().cpu_s
    load = raw.fetch_load(running.bootstrap, FILLED, seconds=seconds, bytes_max=1 << 40)
    return (running.usage().cpu_s - used) / (load.wire_bytes / GB)


# The nodes


@contextmanager
def _nodes() -> Iterator[dict[str, Running]]:
    with ExitStack() as stack:
        home, now = stack.enter_context(brokers.scratch()), datetime.now(UTC)
        properties = {"log.segment.delete.delay.ms": "100"}
        made = {name: Penstock(home / str(number), properties=properties) for number, name in enumerate(NODES)}
        authority = create_authority(home / "authority", Role.CLUSTER, CLUSTER_ID, now=now)
        trusted, key_store = home / "trusted.pem", home / "node.pem"
        trusted.write_bytes(authority.trusted_pem)
        write_issued(issue_node(authority, 1, ["127.0.0.1", "localhost"], now=now), key_store)
        (port,) = free_ports(1)
        made[ACLS].properties |= _with_authorizer(made[ACLS], port, trusted, key_store)
        for node in made.values():
            stack.enter_context(node)
        with Admin(bootstrap_servers=made[QUOTAS].bootstrap) as admin:
            limits = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate"), OUT_OF_REACH)
            admin.alter_quotas({QuotaEntity(user=""): limits | {"request_percentage": 1e6}}).checked()
        with Admin(**_as_the_node(port, trusted, key_store)) as admin:
            rules = list(acls())
            for first in range(0, len(rules), CREATED_AT_ONCE):
                admin.create_acls(rules[first : first + CREATED_AT_ONCE]).checked()
        yield {name: Running(PENSTOCK_NODE, node) for name, node in made.items()}


def acls() -> Iterator[Acl]:
    """What the load may do, and what others may: by names, by beginnings of names (some of them of the load's topics)
    and by the star."""
    load = "User:ANONYMOUS"
    yield Acl(load, "all", "topic", "rights-", pattern="prefixed")
    yield Acl(load, "describe", "cluster", "kafka-cluster")
    for number in range(ACLS_COUNT - 2):
        other = f"User:other-{number}"
        if number % 20 == 0:
            yield Acl(other, "read", "topic", "*")
        elif number % 12 == 1:
            yield Acl(other, "write", "topic", "rights-"[: 1 + number % 7], pattern="prefixed")
        elif number % 4 == 2:
            yield Acl(other, "write", "topic", f"other-{number}-", pattern="prefixed")
        else:
            yield Acl(other, "read", "topic", f"other-{number}")


def _with_authorizer(node: Penstock, port: int, trusted: Path, key_store: Path) -> dict[str, str]:
    """Everybody is ANONYMOUS at the headline's listener, and the node by its certificate at those between nodes."""
    given = node.properties
    return {
        "listeners": f"{given['listeners']},REPLICATION://127.0.0.1:{port}",
        "advertised.listeners": f"{given['advertised.listeners']},REPLICATION://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,REPLICATION:SSL",
        "inter.broker.listener.name": "REPLICATION",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "listener.name.controller.ssl.client.auth": "required",
        "listener.name.replication.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:CN=node-1,O={CLUSTER_ID}",
    }


def _as_the_node(port: int, trusted: Path, key_store: Path) -> dict[str, Any]:
    return {
        "bootstrap_servers": f"127.0.0.1:{port}",
        "security_protocol": "SSL",
        "cafile": str(trusted),
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(key_store),
    }


# What came of it


def _looked_at() -> int:
    return sum(each.name == "*" or (each.pattern == "prefixed" and "rights-".startswith(each.name)) for each in acls())


def section(costs: Costs) -> list[str]:
    """For the page."""
    lines = [
        "## Rights and limits that stop nobody",
        "",
        "Three nodes of the same code, plaintext, under the headline's raw loads: one open, one with quotas of every "
        f"kind that nobody reaches, one with an authorizer and {ACLS_COUNT:,} ACLs, {_looked_at():,} of which are "
        "about the topics of the load too. Medians of broker CPU; `more` is the median of the rounds, each beside the "
        f"open node in the same round. At most {MORE_MAX:.0%} more is the target.",
        "",
        f"| load | {OPEN} | {QUOTAS} | more | {ACLS} | more |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for what, by in costs.samples.items():
        middle = {name: f"{statistics.median(by[name]):.3g}" for name in NODES}
        more = {name: f"{costs.more(what, name):+.1%}" for name in NODES}
        lines.append(f"| {what} | {middle[OPEN]} | {middle[QUOTAS]} | {more[QUOTAS]} | {middle[ACLS]} | {more[ACLS]} |")
    whole = {name: f"**{costs.more_of_all(name):+.1%}**" for name in NODES}
    return [*lines, f"| all loads alike | | | {whole[QUOTAS]} | | {whole[ACLS]} |"]
