"""The buffer: lines are written for a while at twice the rate that the lake sink takes.

writer → file → agent → topic → pipeline → Delta table. The pipeline takes so many offsets a trigger, so its rate is
known. What is written, acknowledged and in the table is looked at several times a second; at the end the table is read,
and every line must be in it once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.agent.charts import Chart, Line, Panel
from bench.agent.contenders import Agent, Job
from bench.agent.course import Ends, Sample, Watch, ages_ms, lines_of
from bench.agent.tailing import MB, PARTITIONS, writing
from bench.brokers import Running
from penstock.bench.raw import percentile
from penstock.bench.series import Results
from tests.compat.judged import PENSTOCK
from tests.compat.processes import Child, wait_for

LINE_BYTES = 200
TRIGGER_S = 2
TOPIC = "burst"
GROUP = "a burst at twice the rate of the lake sink"
TAKEN, ACKNOWLEDGED, HIGHEST = FIGURES = (
    "of which the sink took",
    "of which the agent got acknowledged",
    "highest lag of the table",
)


@dataclass(frozen=True)
class Plan:
    """Rates in lines a second. The sink takes `sink_rate`; the burst writes twice as many."""

    sink_rate: int
    calm_s: float
    burst_s: float
    drain_s_max: float

    @property
    def calm_rate(self) -> float:
        return self.sink_rate / 2

    @property
    def schedule(self) -> list[tuple[float, float]]:
        """After the burst it goes on calmly until the sink has had the time to catch up."""
        calm_after_s = self.burst_s * 2 + self.calm_s
        return [(self.calm_rate, self.calm_s), (self.sink_rate * 2.0, self.burst_s), (self.calm_rate, calm_after_s)]

    @property
    def lines(self) -> int:
        return int(sum(rate * seconds for rate, seconds in self.schedule))


class Burst:
    """Runs a plan once: figures into `results`, the course as a chart."""

    def __init__(self, broker: Running, home: Path, results: Results, say: Callable[[str], None]) -> None:
        self._broker, self._home, self._results, self._say = broker, home, results, say
        self._table = home / "lake" / "lines"
        self._commits: dict[str, int] = {}

    def run(self, plan: Plan) -> Chart:
        self._broker.new_topic(TOPIC, PARTITIONS)
        file = self._home / "burst.log"
        file.write_bytes(b"")
        with ExitStack() as stack:
            ends = Ends(self._broker.bootstrap, TOPIC, PARTITIONS)
            stack.callback(ends.close)
            pipeline = self._pipeline(plan)
            # It is asked, not killed: a driver that is killed leaves its JVM behind.
            stack.callback(pipeline.stop)
            job = Job(self._broker.bootstrap, TOPIC, [str(file)])
            agent = stack.enter_context(Agent().carrying(self._home / "agent", job))
            self._warm_up(file, pipeline)
            before = self._rows()
            rates = f"{plan.calm_rate:,.0f} lines/s, then {plan.sink_rate * 2:,} lines/s for {plan.burst_s:.0f} s"
            self._say(f"burst: {rates}")
            stack.enter_context(writing(file, LINE_BYTES, plan.schedule))
            watch = Watch(
                ends, {"agent": agent.pid}, lambda: {"written": lines_of(file, LINE_BYTES), "rows": self._rows()}
            )
            wanted = before + plan.lines
            course = watch.until(
                lambda sample: sample.more["rows"] >= wanted,
                timeout_s=sum(seconds for _, seconds in plan.schedule) + plan.drain_s_max,
                every_s=0.1,
            )
        assert lines_of(file, LINE_BYTES) == wanted, "the writer wrote what it was told"
        assert course.samples[-1].records == wanted, f"{course.samples[-1].records:,} records of {wanted:,} lines"
        self._check(wanted)
        self._note(plan, course.samples)
        return self._chart(plan, course.samples)

    def _pipeline(self, plan: Plan) -> Child:
        file = self._home / "burst.toml"
        file.write_text(
            f"""name = "burst"
bootstrap = "{self._broker.bootstrap}"
warehouse = "lake"
[spark]
master = "local[1,4]"
[sources.lines]
topic = "{TOPIC}"
start = "earliest"
options = {{ maxOffsetsPerTrigger = "{plan.sink_rate * TRIGGER_S}" }}
[sinks.lake]
from = "lines"
table = "lines"
trigger = "{TRIGGER_S} seconds"
"""
        )
        return Child([PENSTOCK, "pipeline", "run", str(file), "--quiet"], self._home / "pipeline.log")

    def _warm_up(self, file: Path, pipeline: Child) -> None:
        """A second's worth of lines goes all the way, so that Spark has started and compiled."""
        self._say("burst: Spark starts")
        with writing(file, LINE_BYTES, [(5_000, 1.0)]) as writer:
            writer.wait(30)

        def arrived() -> bool:
            assert pipeline.running(), f"the pipeline ended:\n{pipeline.tail()}"
            return self._rows() >= lines_of(file, LINE_BYTES) > 0

        wait_for("the first rows in the table", arrived, timeout_s=120, pause_s=0.2)

    def _rows(self) -> int:
        """What the table's own log says, each commit read once."""
        for commit in (self._table / "_delta_log").glob("[0-9]*.json"):
            if commit.name not in self._commits:
                self._commits[commit.name] = sum(_added_rows(line) for line in commit.read_text().splitlines())
        return sum(self._commits.values())

    def _check(self, wanted: int) -> None:
        """Every line once: by its number, and by the offset of its record."""
        import pyarrow.compute as pc
        from deltalake import DeltaTable

        rows = DeltaTable(str(self._table)).to_pyarrow_table(columns=["value", "partition", "offset"])
        offsets = {(each["partition"], each["offset"]) for each in rows.select(["partition", "offset"]).to_pylist()}
        assert rows.num_rows == wanted == len(offsets), (
            f"{rows.num_rows:,} rows, {len(offsets):,} records of {wanted:,}"
        )
        lines = pc.binary_slice(rows["value"], 0, 12)
        assert len(pc.unique(lines)) == wanted, f"{len(pc.unique(lines)):,} different lines of {wanted:,}"

    def _note(self, plan: Plan, samples: list[Sample]) -> None:
        add = self._results.add
        begin_s, end_s = _burst_s(plan, samples)
        during = [each for each in samples if begin_s <= each.at_s <= end_s]
        lags = [each.records - each.more["rows"] for each in samples]
        ages = dict(zip((each.at_s for each in samples), ages_ms(samples, "written"), strict=True))
        burst_s = during[-1].at_s - during[0].at_s

        def ours(name: str, unit: str, value: float, *, lower: bool = True) -> None:
            add(GROUP, name, unit, "penstock", value, higher_is_better=not lower)

        ours("lines written a second in the burst", "lines/s", _rise(during, "written") / burst_s, lower=False)
        acknowledged = (during[-1].records - during[0].records) / burst_s
        ours(ACKNOWLEDGED, "lines/s", acknowledged, lower=False)
        ours(TAKEN, "rows/s", _rise(during, "rows") / burst_s, lower=False)
        calm = [age for at, age in ages.items() if at < begin_s]
        ours("oldest line not acknowledged before the burst, p99", "ms", percentile(calm, 0.99))
        ours("oldest line not acknowledged in the burst, p99", "ms", percentile([ages[e.at_s] for e in during], 0.99))
        ours(HIGHEST, "lines", max(lags))
        ours("lag at the end", "lines", lags[-1])
        after = [each for each, lag in zip(samples, lags, strict=True) if lag < plan.sink_rate * TRIGGER_S]
        drained_s = next(each.at_s for each in after if each.at_s > end_s)
        ours("from the end of the burst until the lag is below one trigger", "s", drained_s - end_s)
        ours("lines lost or twice in the table", "lines", 0)
        ours("agent's memory, highest", "MB RSS", max(e.used["agent"].rss_bytes for e in samples) / MB)

    def _chart(self, plan: Plan, samples: list[Sample]) -> Chart:
        start_s, base = samples[0].at_s, samples[0].records
        begin_s, end_s = _burst_s(plan, samples)
        at = [each.at_s - start_s for each in samples]
        written = [each.more["written"] - base for each in samples]
        records = [float(each.records - base) for each in samples]
        rows = [each.more["rows"] - base for each in samples]
        lags = [record - row for record, row in zip(records, rows, strict=True)]
        return Chart(
            "A burst at twice the rate that the lake sink takes: the topic is the buffer",
            [
                Panel(
                    "lines since the start",
                    [
                        Line("written", list(zip(at, written, strict=True))),
                        Line("acknowledged (agent)", list(zip(at, records, strict=True)), dashed=True),
                        Line("rows in the table", list(zip(at, rows, strict=True))),
                    ],
                ),
                Panel("lag of the table, lines", [Line("acknowledged − rows", list(zip(at, lags, strict=True)))]),
                Panel(
                    "lines/s",
                    [Line("written", _rates(at, written)), Line("acknowledged", _rates(at, records), dashed=True)],
                ),
            ],
            [(begin_s - start_s, end_s - start_s, f"burst, {plan.sink_rate * 2:,} lines/s")],
        )


def _burst_s(plan: Plan, samples: list[Sample]) -> tuple[float, float]:
    """When it began and ended, by what was written: the writer needs a moment to start."""
    before = samples[0].more["written"] + plan.calm_rate * plan.calm_s
    after = before + plan.sink_rate * 2 * plan.burst_s
    begin_s = next(each.at_s for each in samples if each.more["written"] >= before)
    return begin_s, next(each.at_s for each in samples if each.more["written"] >= after)


def _added_rows(line: str) -> int:
    add = json.loads(line).get("add")
    if not add or not add["dataChange"]:
        return 0
    return int(json.loads(add["stats"])["numRecords"])


def _rise(samples: list[Sample], name: str) -> float:
    return samples[-1].more[name] - samples[0].more[name]


def _rates(at: list[float], counts: list[float], over_s: float = 1.0) -> list[tuple[float, float]]:
    """Counts a second, over the last one."""
    found, first = [], 0
    for index, now in enumerate(at):
        while at[first] < now - over_s:
            first += 1
        if now - at[first] > over_s / 2:
            found.append((now, (counts[index] - counts[first]) / (now - at[first])))
    return found
