"""What happens, in order: everything starts, a node, the agent and the pipeline's driver die and come back, all drains.

The story waits for things to become true, never for time alone, and fails with a sentence when they do not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from penstock.client.admin import Admin
from penstock.demo.evidence import Timings
from penstock.demo.plan import LETTERS, MINUTES, PARTITIONS, TOPIC
from penstock.demo.planting import plant
from penstock.demo.processes import DemoFailed
from penstock.demo.sight import KILLED, STARTING, UP, Event, Sight
from penstock.demo.stage import WRITER_WITHIN_S, Stage
from penstock.demo.users import admit

LOOK_EVERY_S: Final = 0.1
STEP_WITHIN_S: Final = 180.0
"""For one thing to become true on a machine that is busy."""
STILL_FOR_S: Final = 3.0
"""An agent that has nothing left to send, and a topic that does not grow for so long: nothing more comes."""
LATE_FOR_S: Final = 20.0
"""The same of an agent that says it has something left."""
SETTLED_S: Final = 1.5
"""Older than any look at the ends of the topic."""
AFTERMATH_S: Final = 3.0
"""Lines go on being written for so long after a driver was killed, so that it has something to catch up with."""

Listener = Callable[[Event], None]


@dataclass(slots=True)
class Story:
    """One run. `on_event` is told what happens, the moment it does."""

    stage: Stage
    sight: Sight
    on_event: Listener
    began_s: float = field(default_factory=time.monotonic)
    failover_s: float | None = None
    in_sync_s: float | None = None
    pipeline_s: float | None = None
    agent_s: float | None = None

    async def begin(self) -> None:
        """A cluster with the topics. Watching may begin afterwards."""
        nodes, sight = self.stage.nodes, self.sight
        sight.nodes = dict.fromkeys(nodes.ids, STARTING)
        sight.bootstrap = nodes.bootstrap
        self.stage.prepare()
        await asyncio.to_thread(nodes.start_all)
        sight.nodes = dict.fromkeys(nodes.ids, UP)
        await self._create_topics()
        self._tell(f"{len(nodes.ids)} nodes are ready, TLS and a password for everybody: {nodes.bootstrap}")

    async def play(self) -> None:
        """From the first line to the last row."""
        await self._open()
        await self._node_dies()
        await self._agent_dies()
        async with asyncio.TaskGroup() as beside:
            await self._driver_dies(beside)
            await self._last_line()
            await self._ship()
        await self._land()

    def timings(self) -> Timings:
        return Timings(self.failover_s, self.in_sync_s, self.pipeline_s, self.agent_s)

    # -- the acts

    async def _create_topics(self) -> None:
        copies = len(self.stage.nodes.ids)
        async with Admin(**self.stage.reach) as admin:
            await admit(admin, self.stage.nodes)
            await admin.create_topic(TOPIC, partitions=PARTITIONS, replication=copies)
            await admin.create_topic(LETTERS, partitions=1, replication=copies)
            await admin.create_topic(MINUTES, partitions=1, replication=copies, configs={"cleanup.policy": "compact"})

    async def _open(self) -> None:
        stage = self.stage
        # The slowest first: Spark takes its ten seconds while lines are written and shipped already.
        for actor in (stage.pipeline, stage.agent, stage.writer):
            actor.start()
        self._writing_s = time.monotonic()
        rate = f"about {stage.plan.lines_per_s:,} lines/s"
        self._tell(f"a day of a web shop begins, {rate} into access.log; an agent tails it; Spark starts")
        await self._until(lambda: self.sight.agent.sent > 0, "the agent ships its first lines")
        self._now("the agent ships lines, Spark is starting")

    async def _node_dies(self) -> None:
        stage, sight = self.stage, self.sight
        await self._until(lambda: self._written_s() >= stage.plan.node_dies_s and sight.all_in_sync, "all is in sync")
        victim = next(each.leader for each in sight.partitions if each.partition == 0)
        led = sight.leads(victim)
        pid = await asyncio.to_thread(stage.nodes.kill, victim)
        killed_s = time.monotonic()
        sight.nodes[victim] = KILLED
        names = ", ".join(f"{TOPIC}-{each}" for each in led)
        self._tell(f"kill -9 {pid}: node {victim}, the leader of {names}, is gone", "crash")
        await self._until(lambda: sight.led_by_others(victim, led), "the other nodes lead what the dead one led")
        self.failover_s = time.monotonic() - killed_s
        self._tell(f"the others lead {names} after {self.failover_s:.1f} s; lines go on arriving", "good")
        await self._until(lambda: time.monotonic() - killed_s >= stage.plan.node_away_s, "it was away for a while")
        self._now(f"node {victim} comes back")
        sight.nodes[victim] = STARTING
        await asyncio.to_thread(stage.nodes.start, victim)
        back_s = time.monotonic()
        sight.nodes[victim] = UP
        await self._until(lambda: sight.all_in_sync, f"node {victim} is in sync again")
        self.in_sync_s = time.monotonic() - back_s
        self._tell(f"node {victim} is back and has copied what it missed in {self.in_sync_s:.1f} s", "good")

    async def _agent_dies(self) -> None:
        stage, sight = self.stage, self.sight
        await self._until(lambda: self._written_s() >= stage.plan.agent_dies_s, "it is time")
        pid = stage.kill_agent()
        killed_s = time.monotonic()
        self._tell(f"kill -9 {pid}: the agent is gone, a transaction open behind it; another one is started", "crash")
        await self._until(
            lambda: sight.agent.pid not in (0, pid) and sight.agent.sent > sight.agent.before,
            "the next agent goes on where the last commit stands",
        )
        self.agent_s = time.monotonic() - killed_s
        self._tell(f"the next agent has committed lines {self.agent_s:.1f} s after the crash", "good")

    async def _driver_dies(self, beside: asyncio.TaskGroup) -> None:
        stage, sight = self.stage, self.sight
        self._now("rows land in the table")
        await self._until(lambda: sight.table.commits > 0, "the first rows are in the table")
        await self._until(lambda: self._written_s() >= stage.plan.driver_dies_s, "it is time")
        pid = stage.kill_driver()
        if pid is None:
            raise DemoFailed(f"the pipeline has no driver to kill; its log ends with:\n{stage.pipeline.last_words()}")
        killed_s, stood = time.monotonic(), sight.table.version
        self._tell(f"kill -9 {pid}: the pipeline's driver, and Spark with it, is gone", "crash")
        beside.create_task(self._driver_returns(killed_s, stood))
        await self._until(lambda: time.monotonic() - killed_s >= AFTERMATH_S, "lines pile up")

    async def _driver_returns(self, killed_s: float, stood: int) -> None:
        """Beside the rest of the story: Spark takes its time, and lines are written meanwhile."""
        await self._until(lambda: self.sight.pipeline.restarts > 0, "the pipeline is started again")
        await self._until(lambda: self.sight.table.version > stood, "the pipeline goes on after its crash")
        self.pipeline_s = time.monotonic() - killed_s
        self._tell(f"the pipeline goes on where the table stands, {self.pipeline_s:.1f} s after its crash", "good")

    async def _last_line(self) -> None:
        stage = self.stage
        self._now("the log goes on, the pipeline comes back")
        await self._until(lambda: self._written_s() >= stage.plan.seconds, "the day is over")
        stage.writer.ask_to_end()
        if not await asyncio.to_thread(stage.writer.wait, WRITER_WITHIN_S):
            raise DemoFailed("the writer does not end")
        count = stage.count()
        if count is None or not count.done:
            raise DemoFailed(f"the writer ended without its count:\n{stage.writer.last_words()}")
        self._lines = count.lines
        self._tell(f"the last of {count.lines:,} lines is written, after {count.rotations} rotations")

    async def _ship(self) -> None:
        self._now("what is on its way arrives")
        await self._until(self._shipped(), "the agent has shipped everything")
        await plant(self.stage, drained=False)

    async def _land(self) -> None:
        self._now("the pipeline catches up")
        await self._until(self._landed(), "table and sums have everything that the topic has")
        await plant(self.stage, drained=True)
        self._tell("everything has arrived: now it is checked", "good")

    # -- what is waited for

    def _shipped(self) -> Callable[[], bool]:
        """All lines are in the table or told to be dead; or, if some never come, nothing more comes. The offsets of
        the topic do not say it: some of them hold markers, and what a killed agent had not committed."""
        still_since_s, seen = time.monotonic(), -1

        def look() -> bool:
            nonlocal still_since_s, seen
            records = self.sight.records
            if records != seen:
                still_since_s, seen = time.monotonic(), records
            patience_s = LATE_FOR_S if self.sight.agent.behind_bytes else STILL_FOR_S
            there = self.sight.table.rows + self.sight.table.dead
            return there >= self._lines or time.monotonic() - still_since_s >= patience_s

        return look

    def _landed(self) -> Callable[[], bool]:
        """Table and sums stand at the end of the topic, by looks that are newer than its last record."""
        ended_s = time.monotonic()

        def look() -> bool:
            newer = time.monotonic() - ended_s >= SETTLED_S
            return newer and self.sight.records > 0 and not self.sight.behind_records and not self.sight.behind_sums

        return look

    async def _until(self, probe: Callable[[], bool], what: str, patience_s: float = STEP_WITHIN_S) -> None:
        deadline_s = time.monotonic() + patience_s
        while not probe():
            self.stage.check()
            if time.monotonic() >= deadline_s:
                raise DemoFailed(self._waited_in_vain(what, patience_s))
            await asyncio.sleep(LOOK_EVERY_S)

    def _waited_in_vain(self, what: str, patience_s: float) -> str:
        sight = self.sight
        reasons = [
            f"it was waited {patience_s:.0f} s for this to become true: {what}",
            f"lines {sight.log.lines:,}, in the topic {sight.records:,}, in the table {sight.table.rows:,}, "
            f"behind {sight.behind_records:,} there and {sight.behind_sums:,} in the sums",
            *([f"the pipeline says: {sight.pipeline.error}"] if sight.pipeline.error else []),
            f"logs are in {self.stage.folder} (--keep keeps them)",
        ]
        return "\n  ".join(reasons)

    def _written_s(self) -> float:
        """How long lines have been written."""
        return time.monotonic() - self._writing_s

    # -- telling

    def _tell(self, words: str, kind: str = "step") -> None:
        event = Event(time.monotonic() - self.began_s, words, kind)
        self.sight.now = words
        self.sight.events.append(event)
        self.on_event(event)

    def _now(self, words: str) -> None:
        self.sight.now = words

    _writing_s: float = 0.0
    _lines: int = 0
