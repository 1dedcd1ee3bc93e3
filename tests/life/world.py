"""Everybody who lives: nodes, clients, an agent, a pipeline; who starts them, and who ends them."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from bench.soak.party import Party
from penstock.blocking import Admin
from tests.compat.cluster import ClusterNode, PenstockCluster, wait_for
from tests.compat.processes import Child
from tests.faults.cluster.load import Load
from tests.faults.cluster.writers import GIVE_UP_MS, OneShot
from tests.life import lines
from tests.life.ledger import Ledger
from tests.life.lines import LineReader, LineWriter
from tests.life.settings import LEDGER, LINES, NODE
from tests.patience import within

ROOT = Path(__file__).parents[2]
LEDGER_TOPIC, LEDGER_PARTITIONS = "ledger", 3
PROBE_TOPIC = "probe"
STEADY = (1, 2)
"""Nodes that are killed before the life begins and never again, so that their memory is that of one process."""
MORTAL = 3
TABLE = "lines"
DRAIN_S = 120.0

AGENT = """\
name = "life"
bootstrap = "{bootstrap}"
state_dir = "agent"

[inputs.app]
type = "tail"
paths = ["logs/app.log*"]
topic = "{topic}"
"""

PIPELINE = """\
name = "life"
bootstrap = "{bootstrap}"
warehouse = "lake"

[spark]
master = "local[2,4]"
settings."spark.driver.memory" = "512m"
settings."spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms512m -XX:+AlwaysPreTouch"
settings."spark.sql.streaming.minBatchesToRetain" = "5"
settings."spark.sql.streaming.numRecentProgressUpdates" = "5"

[sources.lines]
topic = "{topic}"
format = "json"
schema = "n BIGINT"
start = "earliest"

[sinks.table]
from = "lines"
table = "{table}"
trigger = "2 seconds"
options = {{ "compact.every" = "10" }}
"""


class LifeCluster(PenstockCluster):
    """Nodes that say what their memory consists of when they are asked."""

    def command(self, node: ClusterNode) -> list[str]:
        counted = [sys.executable, "-m", "tests.life.counted_node"]
        return ["env", f"PYTHONPATH={ROOT}", *counted, str(node.config), str(node.home / "counts.json")]

    def counts(self, node_ids: tuple[int, ...]) -> dict[int, dict[str, int]]:
        """Objects by type, counted now."""
        found = {}
        for node_id in node_ids:
            path = self.nodes[node_id].home / "counts.json"
            path.unlink(missing_ok=True)
            os.kill(self.nodes[node_id].pid, signal.SIGUSR1)
            wait_for(f"counts of node {node_id}", path.exists, timeout_s=20)
            found[node_id] = json.loads(path.read_text())
        return found


class World:
    """Lives from `with` to `end`. `topics` come and go at one time, foreign clients so many times a second.

    A `measured` one has a pipeline, and every node was killed once before it begins.
    """

    def __init__(self, home: Path, *, topics: int, topic_life_s: float, visit_rate: float, measured: bool, seed: str):
        self.home, self.measured = home, measured
        # A producer tries again for so long, and a broker that has forgotten it by then takes a repetition for news.
        known_ms = within(GIVE_UP_MS) + 30_000
        properties = NODE | {"producer.id.expiration.ms": str(known_ms)}
        self.cluster = LifeCluster(home / "cluster", 3, properties=properties)
        self.ledger = Ledger(unordered=[OneShot.__name__.lower()])
        self.latencies_ms: list[tuple[float, list[float]]] = []
        self.kills: Counter[str] = Counter()
        self.parties: dict[str, Party] = {}
        self.children: dict[str, Child] = {}
        self._topics, self._topic_life_s, self._visit_rate, self._seed = topics, topic_life_s, visit_rate, seed
        self._chance = random.Random(seed)
        self._stack = ExitStack()

    def __enter__(self) -> World:
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def _begin(self) -> None:
        cluster = self._stack.enter_context(self.cluster)
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topic(LEDGER_TOPIC, LEDGER_PARTITIONS, 3, LEDGER)
            admin.create_topic(lines.TOPIC, 1, 3, LINES)
            admin.create_topic(PROBE_TOPIC, assignment={0: list(STEADY)}, configs={"min.insync.replicas": "1"})
        cluster.wait_until_whole()
        for node_id in cluster.nodes if self.measured else ():
            self.kill(node_id)
            cluster.wait_until_whole()
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.elect_leaders()
        self._begin_clients()
        self._begin_lines()

    def _begin_clients(self) -> None:
        bootstrap = self.cluster.bootstrap
        self.load = Load(self.cluster, LEDGER_TOPIC, LEDGER_PARTITIONS, rate_per_s=10)
        self.load.history = self.ledger  # type: ignore[assignment]  # it stands in for one that remembers everything
        for each in (*self.load.writers, *self.load.readers):
            each.history = self.ledger  # type: ignore[assignment]
        self._stack.enter_context(self.load)
        self._party("churn", "tests.life.churn", bootstrap, self._seed, str(self._topics), str(self._topic_life_s))
        self._party("strangers", "tests.life.strangers", bootstrap, str(self._visit_rate))
        self._party("probe", "tests.life.probe", bootstrap, PROBE_TOPIC)
        self.load.wait_for_progress()

    def _party(self, name: str, *words: str) -> None:
        party = Party(name, words, self.home / f"{name}.log", self._probed if name == "probe" else None)
        self._stack.callback(party.stop)
        self.parties[name] = party

    def _probed(self, report: Mapping[str, Any]) -> None:
        if report.get("latencies_ms"):
            self.latencies_ms.append((time.monotonic(), report["latencies_ms"]))

    def _begin_lines(self) -> None:
        bootstrap = self.cluster.bootstrap
        # The agent is there first: of files that are rotated before its first look, it does not promise the order.
        text = AGENT.format(bootstrap=bootstrap, topic=lines.TOPIC)
        self._child("agent", text, "agent", "run", "-c", module="tests.life.quick_agent")
        agent = self.children["agent"]
        wait_for("the agent", lambda: " is ready: " in agent.tail() or not agent.running(), timeout_s=60)
        self.writer = LineWriter(self.home / "logs" / "app.log")
        self._stack.callback(self.writer.stop)
        self.reader = LineReader(bootstrap)
        self._stack.callback(self.reader.stop)
        wait_for("the first lines", lambda: self.reader.next > 0 or self.reader.wrong, timeout_s=60)
        if self.measured:
            text = PIPELINE.format(bootstrap=bootstrap, topic=lines.TOPIC, table=TABLE)
            self._child("pipeline", text, "pipeline", "run", "--quiet")
            pipeline = self.children["pipeline"]
            wait_for("first rows", lambda: self.rows()[0] or not pipeline.running(), timeout_s=180, pause_s=1)

    def _child(self, name: str, text: str, *words: str, module: str = "penstock.cli.main") -> None:
        (self.home / f"{name}.toml").write_text(text)
        command = ["env", "-C", str(self.home), sys.executable, "-P", "-m", module, *words, f"{name}.toml"]
        environment = {"XDG_STATE_HOME": str(self.home / "state"), "PYTHONPATH": str(ROOT)}
        child = Child(command, self.home / f"{name}.log", environment)
        self._stack.callback(_kill_family, child)
        self.children[name] = child

    # -- what happens to it

    def kill(self, node_id: int = MORTAL) -> None:
        """A node ends, mostly without being asked, and comes back."""
        node = self.cluster.nodes[node_id]
        if self._chance.random() < 0.7:
            node.kill()
            self.kills["kill -9"] += 1
        else:
            assert node.stop() == 0, f"node {node_id} did not stop cleanly:\n{self.cluster.last_words()}"
            self.kills["clean stops"] += 1
        self.cluster.start(node_id)

    def troubles(self) -> list[str]:
        """Why it cannot go on."""
        found = [words for party in self.parties.values() if (words := party.trouble())]
        found += [f"{name} ended:\n{child.tail()}" for name, child in self.children.items() if not child.running()]
        found += [
            f"node {node.node_id} ended:\n{self.cluster.last_words()}"
            for node in self.cluster.nodes.values()
            if not node.running
        ]
        return found

    def processes(self) -> dict[str, int]:
        """Who is measured, by name."""
        found = {f"node {node_id}": self.cluster.nodes[node_id].pid for node_id in STEADY}
        found["our clients"] = self.parties["churn"].pid
        return found | {name: child.pid for name, child in self.children.items()}

    # -- its end

    def rows(self) -> tuple[int, int, int]:
        """Of the table: rows, different numbers, the highest number."""
        import duckdb
        from deltalake import DeltaTable

        table = self.home / "lake" / TABLE
        if not (table / "_delta_log").exists():
            return 0, 0, -1
        files = list(DeltaTable(str(table)).file_uris())
        if not files:
            return 0, 0, -1
        query = "select count(*), count(distinct n), max(n) from read_parquet($files)"
        rows, different, last = duckdb.execute(query, {"files": files}).fetchone() or (0, 0, -1)
        return rows, different, -1 if last is None else last

    def end(self) -> list[str]:
        """Ends everybody and says what is wrong: errors, and what was lost, doubled or out of order."""
        self.cluster.wait_until_whole()
        for party in self.parties.values():
            party.order(end=True)
        self.writer.stop()
        for writer in self.load.writers:
            writer._stopping.set()
        for writer in self.load.writers:
            writer.stop()
        wrong = self._drained()
        for reader in self.load.readers:
            reader.stop()
        for name, party in self.parties.items():
            wait_for(f"{name} to end", partial(_ended, party), timeout_s=DRAIN_S)
        wrong += [words for party in self.parties.values() for words in party.errors]
        wrong += [
            f"{each.name}: {words}" for each in (*self.load.writers, *self.load.readers) for words in each.failures
        ]
        wrong += self.reader.wrong
        for name, child in self.children.items():
            code = child.stop()
            wrong += [f"{name} ended with {code}:\n{child.tail()}"] if code else []
        codes = self.cluster.stop()
        return wrong + ([] if set(codes.values()) == {0} else [f"nodes ended with {codes}"])

    def _drained(self) -> list[str]:
        names = [reader.name for reader in self.load.readers]
        wait_for("readers of the ledger", lambda: self.ledger.caught_up(names), timeout_s=DRAIN_S)
        wait_for(
            "the last line", lambda: self.reader.next >= self.writer.written or self.reader.wrong, timeout_s=DRAIN_S
        )
        wrong = self.ledger.verdict(names)
        if self.measured:
            wait_for("the last row", lambda: self.rows()[2] >= self.writer.written - 1, timeout_s=DRAIN_S, pause_s=1)
            rows, different, _last = self.rows()
            arrived = self.writer.written + self.reader.again
            if (rows, different) != (arrived, self.writer.written):
                wrong.append(f"the table has {rows} rows of {different} lines; there are {arrived} records")
        return wrong

    def counted(self) -> dict[str, int]:
        """How often everything happened."""
        found: Counter[str] = Counter(self.kills)
        for party in self.parties.values():
            found.update(party.report.get("acts", {}))
        found["values in the ledger"] = sum(self.ledger.acknowledged.values())
        found["values read"] = sum(self.ledger.read_by.values())
        found["lines in the log"] = self.writer.written
        found["rotations of the log"] = self.writer.log.rotations
        return dict(sorted(found.items()))


def _kill_family(child: Child) -> None:
    """A process and all that it started, at once: a driver of Spark would take its time to notice."""
    try:
        family = psutil.Process(child.pid).children(recursive=True) if child.running() else []
    except psutil.NoSuchProcess:
        family = []
    child.kill()
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()


def _ended(party: Party) -> bool:
    return party.done or party.trouble() is not None
