"""The node and everybody around it: started in order, given orders, and stopped whatever happens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.brokers import Running, scratch
from bench.soak.mix import GROUPS, PARTITIONS, PROBE_TOPIC, QUERY_TOPIC, TOPICS, WRITERS, topic_configs
from bench.soak.party import Party
from tests.compat import wire
from tests.compat.judged import Penstock
from tests.compat.processes import free_ports, wait_for

PROBE = "probe"
QUERY = "query"
READY_S = 120.0
DRAIN_S = 180.0
LEAVE_S = 60.0

_TROUBLE = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b|Traceback")
_STALL = "loop was held for"


class Stage:
    """Everybody who takes part, by name."""

    def __init__(self, node: Penstock, admin: str, home: Path) -> None:
        self.node = Running("penstock", node)
        self.admin, self.home = admin, home
        self.latencies_ms: list[tuple[float, list[float]]] = []
        """What the probe measured, with the time of its report."""
        self.parties: dict[str, Party] = {}

    def add(self, name: str, *words: str, heard: Callable[[Any], None] | None = None) -> Party:
        party = self.parties[name] = Party(name, words, self.home / f"{name}.log", heard)
        return party

    def probed(self, report: Any) -> None:
        self.latencies_ms.append((report["at"], report["latencies_ms"]))

    def load(self, bytes_per_s: float) -> None:
        """From now on all writers together write so much."""
        for party in self.writers():
            party.order(bytes_per_s=bytes_per_s)

    def writers(self) -> list[Party]:
        return [party for name, party in self.parties.items() if name.startswith("writers")]

    def troubles(self) -> list[str]:
        """Why the run cannot go on, in words."""
        found = [trouble for party in self.parties.values() if (trouble := party.trouble())]
        return found if wire_answers(self.node) else [*found, "the node has ended"]

    def errors(self) -> list[str]:
        """Everything that anybody found wrong so far; what is beyond count is only counted."""
        told = [words for party in self.parties.values() for words in party.errors]
        untold = sum(party.error_count for party in self.parties.values()) - len(told)
        if untold > 0:
            told.append(f"and {untold} more errors of the parties")
        return told + self.node_errors()

    def node_errors(self) -> list[str]:
        """What the node's log complains of. That its loop was held is a figure of its own."""
        lines = self.node.node.log_text().splitlines()
        return [f"node: {line}" for line in lines if _TROUBLE.search(line) and _STALL not in line]

    def finish(self) -> None:
        """Writers end first; readers and the query read what there is, and everybody leaves."""
        self._end(self.writers(), {})
        totals = self.totals()
        self._end([party for party in self.parties.values() if not party.done], totals)

    def totals(self) -> dict[str, int]:
        """Records that were acknowledged, by topic."""
        found = dict.fromkeys(TOPICS, 0)
        for writer in WRITERS:
            reports = [party.report.get("writers", {}).get(str(writer.number)) for party in self.writers()]
            found[writer.topic] += sum(int(report["acknowledged"]) for report in reports if report)
        return found

    def _end(self, parties: list[Party], totals: dict[str, int]) -> None:
        for party in parties:
            party.order(end=True, totals=totals)
        deadline = time.monotonic() + DRAIN_S
        for party in parties:
            while not party.done and party.trouble() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            if party.done:
                party.wait(LEAVE_S)
            else:
                party.errors.append(party.trouble() or f"{party.name} was not done within {DRAIN_S:.0f} s")


def wire_answers(node: Running) -> bool:
    """Whether its process is still there; whether it serves is everybody else's to say."""
    return Path(f"/proc/{node.node.pid}").exists()


@contextmanager
def staged() -> Iterator[Stage]:
    """A node with its topics, and everybody at work, with nothing to write yet."""
    with ExitStack() as stack:
        home = stack.enter_context(scratch())
        (admin_port,) = free_ports(1)
        properties = {
            "penstock.admin.listener": f"127.0.0.1:{admin_port}",
            "log.retention.check.interval.ms": "5000",
        }
        node = stack.enter_context(Penstock(home / "node", properties=properties))
        stage = Stage(node, f"127.0.0.1:{admin_port}", home)
        stack.callback(_stop_all, stage)
        for topic in TOPICS:
            wire.create_topic(node.bootstrap, topic, PARTITIONS, topic_configs())
        wire.create_topic(node.bootstrap, PROBE_TOPIC, 1, topic_configs())
        stage.add(QUERY, "bench.soak.query", node.bootstrap, str(home / QUERY_TOPIC))
        for client in sorted({writer.client for writer in WRITERS}):
            stage.add(f"writers ({client})", "bench.soak.writing", client, node.bootstrap)
        for group in GROUPS:
            stage.add(f"group {group.name}", "bench.soak.reading", group.name, node.bootstrap)
        stage.add(PROBE, "bench.soak.probe", node.bootstrap, heard=stage.probed)
        for party in stage.parties.values():
            wait_for(f"{party.name} to begin", lambda party=party: _begun(party), timeout_s=READY_S)  # type: ignore[misc]
        yield stage


def _begun(party: Party) -> bool:
    trouble = party.trouble()
    assert trouble is None, trouble
    return bool(party.report)


def _stop_all(stage: Stage) -> None:
    for party in stage.parties.values():
        party.stop()
