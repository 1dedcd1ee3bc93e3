"""The whole way of a line, as processes that can be killed: file → agent → topic → Spark → topics and tables.

agent     `run_agent`, exactly once          delta, ice   a table of each format, a row a line; newest: a
                                                       table by key, the last line of each
node      a broker, the coordinator with it  copy         the lines again, in a topic, in transactions
pipeline  a supervisor and its driver        sums         how many there are by key, and their sum: state of Spark's
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.blocking import Admin
from penstock.demo.processes import PENSTOCK, PYTHON, Actor
from penstock.spark.lake.audit import audit
from penstock.spark.lake.warehouse import Warehouse
from penstock.spark.pipeline.auditing import audit_topics
from penstock.spark.pipeline.home import Home
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.recount import recount_for
from tests.faults.exactly.blows import session_of, sleeps
from tests.faults.node import NodeProcess, let_pass
from tests.faults.spark.tables import read_committed
from tests.patience import TimedOut, wait_for

KEYS: Final = 7
PARTITIONS: Final = 2
ENDS: Final = ("delta", "ice", "copy")
NEWEST: Final = "newest"
AGENT, NODE, WORKER, DRIVER = "agent", "node", "executor", "driver"
VICTIMS: Final = (AGENT, NODE, WORKER, DRIVER)

AGENT_FILE = """
name = "chain"
bootstrap = "{bootstrap}"
state_dir = "{state}"
admin = "off"
exactly_once = true
machine_id = "this-one"
[output]
linger = "1ms"
[inputs.lines]
type = "tail"
paths = ["log/lines.log*"]
topic = "lines"
poll_min = "5ms"
discover = "50ms"
"""
PIPELINE_FILE = """
name = "chain"
bootstrap = "{bootstrap}"
warehouse = "lake"
[spark]
master = "local[2,4]"
settings."spark.driver.memory" = "1g"
settings."spark.sql.shuffle.partitions" = "2"
settings."spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
[sources.lines]
topic = "lines"
format = "json"
schema = "n BIGINT, k INT"
start = "earliest"
dead_letters = "fail"
[sources.lines.options]
maxOffsetsPerTrigger = "2000"
[sources.changes]
topic = "lines"
format = "json"
schema = "n BIGINT, k INT"
start = "earliest"
dead_letters = "fail"
[[steps]]
name = "sums"
sql = "SELECT k, count(*) AS lines, sum(n) AS total FROM lines GROUP BY k"
[sinks.delta]
from = "lines"
table = "delta"
trigger = "1 second"
[sinks.ice]
from = "lines"
table = "ice"
table_format = "iceberg"
trigger = "1 second"
[sinks.newest]
from = "changes"
table = "newest"
keys = ["k"]
sequence_by = "n"
buckets = 2
trigger = "1 second"
[sinks.copy]
from = "lines"
topic = "copy"
exactly_once = true
[sinks.sums]
from = "sums"
topic = "sums"
key = "k"
mode = "update"
exactly_once = true
"""


@dataclass
class Chain:
    """One folder with everything. `written` is the truth."""

    folder: Path
    written: int = 0
    _pipelines: list[Actor] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "log").mkdir(parents=True)
        self.node = NodeProcess(self.folder / "data")
        self.agent = self.an_agent("agent")
        self.pipeline = self.a_pipeline("first")

    # -- life

    def begin(self) -> None:
        self.node.start()
        with Admin(bootstrap_servers=self.node.address) as admin:
            for topic, partitions in (("lines", PARTITIONS), ("copy", PARTITIONS), ("sums", 1)):
                admin.create_topic(topic, partitions)
        (self.folder / "pipeline.toml").write_text(PIPELINE_FILE.format(bootstrap=self.node.address))
        self.write(100)
        self.pipeline.start()
        self.start(self.agent)

    def end(self) -> None:
        for each in self._pipelines:
            with suppress(AssertionError):
                self.wake(each)
            each.ask_to_end()
        for each in (self.agent, *self._pipelines):
            each.end(20)
        self.node.kill()

    def an_agent(self, state: str, *arguments: str) -> Actor:
        """Of the one name and machine; `state` is the folder of its own."""
        command = [*PYTHON[:1], "-m", "tests.faults.agent.run_agent", f"{state}.toml", *arguments]
        root = str(Path(__file__).parents[3])
        return Actor(state, command, self.folder, {"PYTHONPATH": root})

    def start(self, agent: Actor) -> None:
        file = self.folder / f"{agent.name}.toml"
        file.write_text(AGENT_FILE.format(bootstrap=self.node.address, state=agent.name))
        agent.start()

    def a_pipeline(self, state: str) -> Actor:
        """The same flow and checkpoints; what this machine knows of its run is in a folder of its own."""
        command = [*PENSTOCK, "pipeline", "run", "pipeline.toml", "--quiet", "--stop-within", "15"]
        made = Actor(f"pipeline-{state}", command, self.folder, {"XDG_STATE_HOME": str(self.folder / state)})
        self._pipelines.append(made)
        return made

    def home(self, pipeline: Actor) -> Home:
        state = pipeline.name.removeprefix("pipeline-")
        return Home("chain", self.folder / state / "penstock" / "pipelines")

    def write(self, lines: int) -> None:
        with (self.folder / "log" / "lines.log").open("ab") as log:
            for number in range(self.written, self.written + lines):
                log.write(b'{"n":%d,"k":%d}\n' % (number, number % KEYS))
        self.written += lines

    def rotate(self) -> None:
        log = self.folder / "log" / "lines.log"
        log.rename(log.with_name(f"lines.log.{self.written}"))

    # -- blows

    def strike(self, victim: str, chance: random.Random) -> None:
        """kill -9 at some moment while lines are on their way; whoever has nobody to start it again is started."""
        self.write(chance.randrange(100, 400))
        if chance.random() < 0.3:
            self.rotate()
        self.write(chance.randrange(100, 400))
        let_pass(chance.uniform(0.0, 1.0))
        match victim:
            case "agent":
                self.agent.kill_and_start()
            case "node":
                self.node.kill()
                self.node.start()
            case "executor":
                self._kill_worker(chance)
            case "driver":
                driver = self.driver_pid()
                os.kill(driver, signal.SIGKILL)
                wait_for("another driver", lambda: self.driver_pid() != driver, timeout_s=90)

    def driver_pid(self) -> int:
        state = self.home(self.pipeline).state()
        assert state is not None, "the pipeline was started"
        assert state.alive, f"the pipeline runs:\n{self.pipeline.last_words()}"
        return state.driver_pid

    def _kill_worker(self, chance: random.Random) -> None:
        """One that pyspark's daemon has forked for tasks; there may be none just now."""
        forked = []
        for process in session_of(os.getsid(self.driver_pid())):
            with suppress(Exception):
                if "pyspark.daemon" in " ".join(process.parent().cmdline()):  # type: ignore[union-attr]  # then it is gone
                    forked.append(process.pid)
        if forked:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(forked), signal.SIGKILL)

    def put_to_sleep(self, pipeline: Actor) -> None:
        """SIGSTOP of its supervisor, its driver, and everything below them."""
        for process in self._all_of(pipeline):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGSTOP)
        wait_for("all of it to sleep", lambda: all(map(sleeps, self._all_of(pipeline))), timeout_s=30)

    def wake(self, pipeline: Actor) -> None:
        for process in self._all_of(pipeline):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)

    def _all_of(self, pipeline: Actor) -> list[Any]:
        state = self.home(pipeline).state()
        leaders = {pipeline.pid} if pipeline.alive else set()
        if state is not None and state.driver_pid:
            with suppress(ProcessLookupError):
                leaders.add(os.getsid(state.driver_pid))
        return [process for leader in sorted(leaders) for process in session_of(leader)]

    # -- what arrived

    def numbers(self, end: str) -> Counter[int]:
        """How often each line is at an end."""
        if end == "copy":
            shown = read_committed(self.node.address, end, PARTITIONS).values()
            return Counter(json.loads(value)["n"] for value in shown)
        from penstock.spark.lake.query import dataset_of

        found = Warehouse(str(self.folder / "lake")).find(end).open()
        return Counter(dataset_of(found).to_table(columns=["n"])["n"].to_pylist())

    def sums(self) -> dict[int, tuple[int, int]]:
        """The newest of each key."""
        shown = read_committed(self.node.address, "sums", 1)
        rows = [json.loads(shown[place]) for place in sorted(shown)]
        return {row["k"]: (row["lines"], row["total"]) for row in rows}

    def true_sums(self) -> dict[int, tuple[int, int]]:
        numbers = [range(key, self.written, KEYS) for key in range(KEYS)]
        return {key: (len(each), sum(each)) for key, each in enumerate(numbers)}

    def newest(self) -> dict[int, int]:
        """The last line of each key: a table by key, whose rows were replaced again and again."""
        from penstock.spark.lake.query import dataset_of

        rows = dataset_of(Warehouse(str(self.folder / "lake")).find(NEWEST).open()).to_table(columns=["k", "n"])
        found = list(zip(rows["k"].to_pylist(), rows["n"].to_pylist(), strict=True))
        assert len(dict(found)) == len(found), f"{NEWEST} has a key twice: {found}"
        return dict(found)

    def true_newest(self) -> dict[int, int]:
        return {key: range(key, self.written, KEYS)[-1] for key in range(KEYS)}

    def arrived(self) -> bool:
        """Whether there are as many as were written, at every end; or more."""
        try:
            there = [sum(self.numbers(end).values()) for end in ENDS]
            newest = self.newest()
        except Exception:  # a table that is not there yet, a node that starts
            return False
        if newest != self.true_newest():
            return False
        return min(there) >= self.written and sum(lines for lines, _ in self.sums().values()) >= self.written

    def settle(self) -> None:
        try:
            wait_for("every line at every end", self.arrived, timeout_s=150, pause_s=0.5)
        except TimedOut as late:
            words = f"{self.pipeline.last_words()}\n{self.agent.last_words()}"
            raise TimedOut(f"{late}\n{self.faults()}\n{words}") from None

    # -- the proof

    def faults(self) -> list[str]:
        """What is not as it must be; every end is held against what was written, and every audit is asked."""
        truth = Counter(range(self.written))
        found = []
        for end in ENDS:
            there = self.numbers(end)
            for word, lines in (("too often", there - truth), ("missing", truth - there)):
                found += [f"{end}: {len(lines)} lines {word}, such as {sorted(lines)[:3]}"] if lines else []
        if self.newest() != self.true_newest():
            found.append(f"{NEWEST}: {self.newest()} and not {self.true_newest()}")
        if self.sums() != self.true_sums():
            found.append(f"sums: {self.sums()} and not {self.true_sums()}")
        return [*found, *self.audited()]

    def audited(self) -> list[str]:
        found = []
        for name in ("delta", "ice", NEWEST):
            store = Warehouse(str(self.folder / "lake")).find(name).open()
            result = audit(store, recount_for(store))
            found += [] if result.clean else [f"{name}: {result}"]
        topics = audit_topics(read_flow(self.folder / "pipeline.toml"))
        assert [name for name, _ in topics] == ["copy", "sums"], "both topics have a proof"
        return found + [f"{name}: {finding}" for name, result in topics for finding in result.findings]
