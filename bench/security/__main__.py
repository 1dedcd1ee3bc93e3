"""`python -m bench.security` (make bench SUITE=security): TLS beside Apache Kafka with the same cipher.

Part `tls`: broker CPU seconds for a gigabyte in and out, connections a second, memory of a connection, p99 of single
records, over PLAINTEXT and over SSL, rounds interleaved. Part `rights`: a secured Penstock node as it is, with quotas
that nobody reaches, and with 10,000 ACLs. `--quick` is a look at whether it works.
"""

from __future__ import annotations

import argparse
import json
import ssl
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bench import brokers, machine, places
from bench.brokers import NULL, TITLES, Running
from bench.security import load
from penstock.blocking import Admin
from penstock.certificates import Role, create_authority, issue_node, write_issued
from penstock.client.admin import Acl, QuotaEntity, ScramPassword
from tests.compat.processes import free_ports
from tests.faults.node import NodeProcess

CIPHER, VERSION = "TLS_AES_256_GCM_SHA384", "TLSv1.3"
TOPIC, USER, PASSWORD = "bench", "bench", "of a bench, on the loopback"
ACLS = 10_000
OUT_OF_REACH = 1e12
PARTS = ("tls", "rights")


@dataclass(frozen=True)
class Plan:
    megabytes: int
    connections: int
    records: int
    rounds: int


WHOLE, QUICK = Plan(1_000, 1_000, 2_000, 3), Plan(20, 50, 100, 1)


Figures = dict[str, dict[str, list[float]]]
"""By what was measured, then by whom: one figure a round."""


def add(figures: Figures, what: str, whose: str, value: float) -> None:
    figures.setdefault(what, {}).setdefault(whose, []).append(value)


# TLS.


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


def measure_tls(names: Sequence[str], plan: Plan, figures: Figures, say: Callable[[str], None]) -> None:
    with secured(names) as (made, trusted):
        context = ssl.create_default_context(cafile=str(trusted))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        for number in range(plan.rounds):
            for tls in (False, True):
                for each in made:
                    say(f"round {number + 1} of {plan.rounds}: {TITLES[each.name]}, {'SSL' if tls else 'PLAINTEXT'}")
                    _round(each, tls, trusted, context if tls else None, f"t{number}{int(tls)}", plan, figures)


def _round(
    each: Secured, tls: bool, trusted: Path, context: ssl.SSLContext | None, topic: str, plan: Plan, figures: Figures
) -> None:
    way, kind = each.way(tls, trusted), "SSL" if tls else "PLAINTEXT"
    each.running.new_topic(topic, 1)

    def keep(what: str, value: float) -> None:
        add(figures, f"{what}, {kind}", each.name, value)

    keep("CPU-s a GB in", load.produce(way, topic, plan.megabytes, each.cpu_s).cpu_s_per_gb)
    keep("CPU-s a GB out", load.consume(way, topic, plan.megabytes, each.cpu_s).cpu_s_per_gb)
    found = load.latencies_ms(way, topic, plan.records)
    keep("p99 of a record, ms", found[int(len(found) * 0.99)])
    port = each.secure_port if tls else each.node.port
    connections = load.connect(port, context, plan.connections, each.cpu_s, each.rss_bytes)
    keep("connections a second", connections.per_s)
    keep("CPU ms a connection", connections.cpu_ms_each)
    keep("KB a connection", connections.rss_kb_each)
    each.running.drop_topic(topic)
    each.running.settle()


# Rights and limits.


def measure_rights(plan: Plan, figures: Figures, say: Callable[[str], None]) -> None:
    with brokers.scratch() as home:
        node = NodeProcess(home / "data", flags=("--secure",))
        node.start()
        try:
            admin = {"client_config": str(node.directory / "security" / "admin.properties")}
            with Admin(bootstrap_servers=node.address, **admin) as client:
                client.alter_scram_users([ScramPassword(USER, PASSWORD)]).checked()
                rights = [Acl(f"User:{USER}", right, "topic", TOPIC) for right in ("read", "write")]
                client.create_acls([*rights, Acl(f"User:{USER}", "read", "group", TOPIC)]).checked()
                for number in range(plan.rounds):
                    # Each is taken away again, so that rounds are alike; the ACLs stay, and come last.
                    say(f"round {number + 1} of {plan.rounds}: as it is")
                    _use(node, client, "as it is", plan, figures)
                    say(f"round {number + 1} of {plan.rounds}: quotas that nobody reaches")
                    limits = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate"), OUT_OF_REACH)
                    client.alter_quotas({QuotaEntity(user=""): limits}).checked()
                    _use(node, client, "quotas", plan, figures)
                    client.alter_quotas({QuotaEntity(user=""): dict.fromkeys(limits)}).checked()
                for first in range(0, ACLS, 1_000):
                    client.create_acls(
                        Acl(f"User:u{each}", "read", "topic", f"other-{each}") for each in range(first, first + 1_000)
                    ).checked()
                for number in range(plan.rounds):
                    say(f"round {number + 1} of {plan.rounds}: {ACLS} ACLs")
                    _use(node, client, f"{ACLS} ACLs", plan, figures)
        finally:
            node.kill()


def _use(node: NodeProcess, admin: Admin, whose: str, plan: Plan, figures: Figures) -> None:
    way = {
        "bootstrap.servers": node.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(node.directory / "security" / "ca.pem"),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }

    def cpu_s() -> float:
        used = psutil.Process(node.pid).cpu_times()
        return float(used.user + used.system)

    admin.create_topic(TOPIC, partitions=1)
    add(figures, "CPU-s a GB in", whose, load.produce(way, TOPIC, plan.megabytes, cpu_s).cpu_s_per_gb)
    add(figures, "CPU-s a GB out", whose, load.consume(way, TOPIC, plan.megabytes, cpu_s).cpu_s_per_gb)
    admin.delete_topic(TOPIC)


# What came of it.


def table(figures: Figures, columns: Sequence[str], titles: Sequence[str], against: str) -> str:
    lines = ["| | " + " | ".join(titles) + " | ratio |", "|---|" + "---|" * (len(columns) + 1)]
    for what, by in figures.items():
        found = {name: statistics.median(by[name]) for name in columns if name in by}
        ratio = " · ".join(
            f"{value / found[against]:.2f}" for name, value in found.items() if name != against and found.get(against)
        )
        shown = [f"{found[name]:.2f}" if name in found else "" for name in columns]
        lines.append(f"| {what} | " + " | ".join(shown) + f" | {ratio} |")
    return "\n".join(lines)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.security", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short rounds; figures only to see that it works")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--brokers", help="which of apache, penstock (default: all that are there)")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    plan = QUICK if given.quick else WHOLE
    parts = given.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    names, remarks = brokers.available_brokers()
    names = [name for name in names if name != NULL and (not given.brokers or name in given.brokers.split(","))]
    brokers.allow_many_files()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    tls: Figures = {}
    rights: Figures = {}
    if "tls" in parts:
        measure_tls(names, plan, tls, say)
    if "rights" in parts:
        measure_rights(plan, rights, say)
    words = ["# What security costs", "", *remarks]
    if tls:
        against = brokers.APACHE if brokers.APACHE in names else names[0]
        words += [f"{VERSION}, {CIPHER}, ECDSA P-256; medians of {plan.rounds}, ratios to {TITLES[against]}.", ""]
        words += [table(tls, names, [TITLES[name] for name in names], against), ""]
    if rights:
        columns = ("as it is", "quotas", f"{ACLS} ACLs")
        words += ["Rights and limits of one Penstock node, over SASL_SSL; ratios to the node as it is.", ""]
        words += [table(rights, columns, columns, "as it is"), ""]
    words += [f"- {name}: {value}" for name, value in machine.describe(names).items()]
    page = "\n".join(words) + "\n"
    print(page)
    places.RESULTS.mkdir(parents=True, exist_ok=True)
    (places.RESULTS / "security.json").write_text(json.dumps({"tls": tls, "rights": rights}, indent=1))
    if not given.quick and not given.no_page:
        (places.DOCS / "security.md").write_text(page)


if __name__ == "__main__":
    main()
