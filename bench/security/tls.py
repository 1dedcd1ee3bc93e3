"""TLS beside Apache Kafka's, with one cipher: each broker has a listener of either kind, and rounds go from one to the
other, so that what changes on the machine falls on all of them.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import brokers
from bench.brokers import APACHE, TITLES, Running
from bench.security import load
from bench.security.plan import Plan
from penstock.bench.series import Results
from penstock.certificates import Role, create_authority, issue_node, write_issued
from tests.compat.processes import free_ports

CIPHER, VERSION = "TLS_AES_256_GCM_SHA384", "TLSv1.3"
KINDS = {True: "TLS", False: "plaintext"}


class Secured:
    """A broker with a listener of each kind."""

    def __init__(self, name: str, home: Path, key_store: Path) -> None:
        self.node = brokers.make_node(name, home)
        (self.secure_port,) = free_ports(1)
        secure = f"SECURE://127.0.0.1:{self.secure_port}"
        properties = self.node.properties
        properties["listeners"] += f",{secure}"
        # Kafka's own file advertises the controller's listener too.
        properties["advertised.listeners"] += f",{secure}"
        properties["listener.security.protocol.map"] += ",SECURE:SSL"
        properties |= {
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(key_store),
            "listener.name.secure.ssl.enabled.protocols": VERSION,
            "listener.name.secure.ssl.cipher.suites": CIPHER,
        }
        self.name = name
        self.running = Running(name, self.node)

    def way(self, tls: bool, trusted: Path) -> dict[str, Any]:
        if not tls:
            return {"bootstrap.servers": self.node.bootstrap}
        return {
            "bootstrap.servers": f"127.0.0.1:{self.secure_port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(trusted),
        }

    def cpu_s(self) -> float:
        return self.running.usage().cpu_s

    def rss_bytes(self) -> int:
        return self.running.usage().rss_bytes


@contextmanager
def secured(names: Sequence[str]) -> Iterator[tuple[list[Secured], Path]]:
    with ExitStack() as stack:
        home, now = stack.enter_context(brokers.scratch()), datetime.now(UTC)
        authority = create_authority(home / "authority", Role.CLUSTER, "Xk2aCqkDQ-6hT0eB3v9T_A", now=now)
        trusted, key_store = home / "trusted.pem", home / "node.pem"
        trusted.write_bytes(authority.trusted_pem)
        write_issued(issue_node(authority, 1, ["127.0.0.1", "localhost"], now=now), key_store)
        made = [Secured(name, home / name, key_store) for name in names]
        for each in made:
            stack.enter_context(each.node)
        yield made, trusted


def measure(names: Sequence[str], plan: Plan, results: Results, say: Callable[[str], None]) -> None:
    with secured(names) as (made, trusted):
        context = ssl.create_default_context(cafile=str(trusted))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        for each in made:
            _warm_up(each, trusted, context, plan, say)
        for number in range(plan.rounds):
            for tls in (False, True):
                for each in made:
                    say(f"round {number + 1} of {plan.rounds}: {TITLES[each.name]}, {KINDS[tls]}")
                    _round(each, tls, trusted, context if tls else None, f"t{number}{int(tls)}", plan, results)


def _warm_up(each: Secured, trusted: Path, context: ssl.SSLContext, plan: Plan, say: Callable[[str], None]) -> None:
    """Kafka's compiler needs a minute of every kind of load to be done; ours has nothing to compile."""
    whole_s = plan.warmup_s if each.name == APACHE else min(plan.warmup_s, 5.0)
    say(f"{TITLES[each.name]} under mixed load for {whole_s:.0f} s")
    ends, number = time.monotonic() + whole_s, 0
    while time.monotonic() < ends:
        for tls in (False, True):
            _round(each, tls, trusted, context if tls else None, f"w{number}{int(tls)}", WARMING, None)
        number += 1


def _remembered(results: Results, kind: str) -> Collection[str]:
    """Whose memory is known."""
    series = results.series.get((kind, "memory of a connection"))
    return () if series is None else series.samples


WARMING = Plan(megabytes=100, connections=1, records=100, rounds=1, warmup_s=0, sample_s=0)


def _round(
    each: Secured, tls: bool, trusted: Path, context: ssl.SSLContext | None, topic: str, plan: Plan,
    results: Results | None,
) -> None:  # fmt: skip
    way, kind = each.way(tls, trusted), KINDS[tls]
    each.running.new_topic(topic, 1)

    def keep(what: str, unit: str, value: float, *, higher_is_better: bool = False) -> None:
        if results is not None:
            results.add(kind, what, unit, each.name, value, higher_is_better=higher_is_better)

    written = load.produce(way, topic, plan.megabytes, each.cpu_s)
    keep("broker CPU of bytes in", "CPU-s/GB", written.cpu_s_per_gb)
    keep("bytes in", "MB/s", written.mb_per_s, higher_is_better=True)
    read = load.consume(way, topic, plan.megabytes, each.cpu_s)
    keep("broker CPU of bytes out", "CPU-s/GB", read.cpu_s_per_gb)
    keep("bytes out", "MB/s", read.mb_per_s, higher_is_better=True)
    found = load.latencies_ms(way, topic, plan.records)
    keep("p50 of a single record", "ms", found[len(found) // 2])
    keep("p99 of a single record", "ms", found[int(len(found) * 0.99)])
    port = each.secure_port if tls else each.node.port
    connections = load.connect(port, context, plan.connections, each.cpu_s, each.rss_bytes)
    keep("connections, one after the other", "per s", connections.per_s, higher_is_better=True)
    keep("broker CPU of a connection", "ms", connections.cpu_ms_each)
    if results is not None and each.name not in _remembered(results, kind):
        # Only those of the first round are made of new memory; later ones take what these gave back.
        keep("memory of a connection", "KB", connections.rss_kb_each)
    each.running.drop_topic(topic)
    each.running.settle()
