"""Workers in their places, and the supervisor that starts a successor, with the same ids, whenever one has ended."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.compat.cluster import Host
from tests.compat.processes import Child, wait_for
from tests.faults.transactions.history import Copy, Transcript
from tests.faults.transactions.libraries import Plan
from tests.faults.transactions.worker import OVER
from tests.patience import within

END_S = 60.0
AGAIN_S = 0.5
"""A worker that failed at once is not started again at once."""
SILENT_S = 8.0
"""A worker that says nothing for so long, not even that there is nothing to do, does not go on."""
FORGETFUL = {"kafka-python", "confluent"}
"""Libraries that may wait for good inside of a call; of others that would be charged."""
ABSENT = {"kafka-python"}
"""Libraries whose members may stop their heartbeats for good and are given nothing from then on."""
CLASSIC = {"confluent", "kafka-python", "aiokafka"}
"""Libraries whose transactions have no epoch of their own."""


class Team(NamedTuple):
    """Workers that do the same: fill the source, or copy it as one group."""

    library: str
    protocol: str = "classic"
    workers: int = 1
    static: bool = False
    """Whether its members have names, and a successor has its predecessor's partitions."""

    feeds: bool = False

    @property
    def name(self) -> str:
        return f"{self.library}-{'feeds' if self.feeds else self.protocol}"


class Timing(NamedTuple):
    rest_s: float = 0.2
    session_ms: int = 3_000
    transaction_ms: int = 20_000
    classic_notice_ms: int = 15_000
    own_notice_ms: int = 4_000


class Process:
    """One incarnation of a worker."""

    def __init__(self, plan: Plan, log: Path, prefix: tuple[str, ...]) -> None:
        self.library = plan.library
        self.transcript = Transcript(plan.name, plan.transactional_id, classic=plan.library in CLASSIC)
        command = [*prefix, sys.executable, "-m", "tests.faults.transactions.worker", json.dumps(plan._asdict())]
        # Two threads of a library that end a process at once must not wait for each other.
        self.child = Child(command, log)
        self.code: int | None = None
        self.began = self.heard = time.monotonic()
        self.frozen = False
        self._read = 0

    def listen(self) -> None:
        """Whole lines that are new."""
        with self.child.log.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        lines = whole.decode("utf-8", "replace").splitlines()
        if self.frozen or any(self._goes_on(line) for line in lines):
            self.heard = time.monotonic()
        for line in lines:
            self.transcript.hear(line)

    def _goes_on(self, line: str) -> bool:
        """There is always something to copy, for members; some are none any more and do not know it."""
        return self.library not in ABSENT or not line.endswith(" idle")

    def signal(self, number: int) -> None:
        if self.child.running():
            os.kill(self.child.pid, number)


class Slot:
    """The place of one worker, and everybody who has had it."""

    def __init__(self, team: Team, number: int, plan: Plan, home: Path, prefix: tuple[str, ...]) -> None:
        self.team, self.name, self._plan, self._home, self._prefix = team, f"{team.name}-{number}", plan, home, prefix
        self.all: list[Process] = []
        self.held = False
        """Whether a fault has it: nobody is started meanwhile."""

    @property
    def now(self) -> Process:
        return self.all[-1]

    def launch(self) -> None:
        name = f"{self.name}-{len(self.all)}"
        self.all.append(Process(self._plan._replace(name=name), self._home / f"{name}.log", self._prefix))

    @property
    def committed(self) -> int:
        return sum(each.transcript.committed for each in self.all)


class Workshop:
    """Runs from `with` until its end; a thread of it listens to workers and replaces those that ended."""

    def __init__(
        self,
        home: Path,
        bootstrap: str,
        source: str,
        partitions: int,
        teams: list[Team],
        hosts: list[Host],
        timing: Timing,
    ) -> None:
        self.source, self.teams = source, teams
        self.endings: Counter[str] = Counter()
        self.silent = 0
        self.failures: list[str] = []
        self.slots: list[Slot] = []
        self._turn = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="workshop")
        for team in teams:
            classic = team.library in CLASSIC
            for number in range(team.workers):
                plan = Plan(
                    team.library, team.protocol, "", bootstrap, f"{team.name}-{number}",
                    "" if team.feeds else source, source if team.feeds else f"{team.name}-out", team.name,
                    f"{team.name}-{number}" if team.static else "", partitions, timing.rest_s, timing.session_ms,
                    within(timing.transaction_ms),
                    within(timing.classic_notice_ms if classic else timing.own_notice_ms),
                )  # fmt: skip
                prefix = hosts[number % len(hosts)].prefix if hosts else ()
                self.slots.append(Slot(team, number, plan, home / "workers", prefix))

    @property
    def copies(self) -> list[Copy]:
        return [Copy(self.source, f"{team.name}-out", team.name) for team in self.teams if not team.feeds]

    @property
    def topics(self) -> list[str]:
        return [self.source, *(each.target for each in self.copies)]

    @property
    def transactional_ids(self) -> list[str]:
        return [slot.name for slot in self.slots]

    @property
    def groups(self) -> list[str]:
        return [each.group for each in self.copies]

    def __enter__(self) -> Workshop:
        for slot in self.slots:
            slot.launch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for process in self.processes:
            process.child.kill()

    @property
    def processes(self) -> list[Process]:
        return [process for slot in self.slots for process in slot.all]

    @property
    def transcripts(self) -> list[Transcript]:
        return [process.transcript for process in self.processes]

    # -- supervising

    def _supervise(self) -> None:
        while not self._over.wait(0.05):
            with self._turn:
                self._look()

    def _look(self) -> None:
        for slot in self.slots:
            for process in slot.all:
                if process.code is None:
                    self._look_at(process)
            now = slot.now
            if now.code is not None and not slot.held and time.monotonic() - now.began >= AGAIN_S:
                slot.launch()

    def _look_at(self, process: Process) -> None:
        ended = not process.child.running()
        process.listen()
        if not ended:
            if process.library in FORGETFUL and time.monotonic() - process.heard > within(SILENT_S):
                self.silent += 1
                process.signal(signal.SIGKILL)
            return
        process.code = process.child.wait(1)
        words = process.transcript.last_words
        if process.code == OVER:
            self.endings[words.partition("(")[0]] += 1
        elif process.code not in (0, -signal.SIGKILL):
            self.failures.append(f"{process.transcript.client} ended with {process.code}\n{process.child.tail()}")

    # -- faults

    def kill(self, slot: Slot) -> None:
        """kill -9; a successor follows at once."""
        with self._turn:
            slot.now.signal(signal.SIGKILL)

    def freeze(self, slot: Slot) -> Process:
        with self._turn:
            slot.now.frozen = True
            slot.now.signal(signal.SIGSTOP)
            return slot.now

    def replace(self, slot: Slot) -> None:
        """Somebody takes the place of a worker that lives."""
        with self._turn:
            slot.launch()

    def thaw(self, process: Process) -> None:
        process.signal(signal.SIGCONT)
        process.frozen = False

    def choose(self, chance: random.Random) -> Slot:
        return chance.choice([slot for slot in self.slots if not slot.held])

    # -- waiting

    def check(self) -> None:
        assert not self.failures, self.failures[0]

    def lagging(self, goals: dict[str, int]) -> list[str]:
        """Teams that have not committed so many transactions yet."""
        return [name for name, done in self.done().items() if done < goals[name]]

    def last_words(self, teams: list[str]) -> str:
        """What the workers of these said last, and where their threads stand."""
        slots = [slot for slot in self.slots if slot.team.name in teams]
        for slot in slots:
            slot.now.signal(signal.SIGUSR1)
            log = slot.now.child.log
            with suppress(AssertionError):
                wait_for("stacks", lambda log=log: b"Current thread" in log.read_bytes(), timeout_s=2)
        return "\n".join(f"--- {slot.now.transcript.client}\n{slot.now.child.tail(60)}" for slot in slots)

    def done(self) -> dict[str, int]:
        """How many transactions each team has committed."""
        found = dict.fromkeys((team.name for team in self.teams), 0)
        for slot in self.slots:
            found[slot.team.name] += slot.committed
        return found

    def finish(self, *, feeding: bool) -> None:
        """Ends those who feed, or those who copy, in order; whoever was replaced and still lives too."""
        slots = [slot for slot in self.slots if slot.team.feeds is feeding]
        with self._turn:
            for slot in slots:
                slot.held = True
                for process in slot.all:
                    process.signal(signal.SIGTERM)
        for slot in slots:
            for process in slot.all:
                wait_for(f"{process.transcript.client} to end", lambda p=process: p.code is not None, timeout_s=END_S)

    def summary(self) -> str:
        told, killed = sum(self.done().values()), sum(process.code == -signal.SIGKILL for process in self.processes)
        return (
            f"{told} transactions committed by {len(self.processes)} workers, {killed} of them killed, {self.silent} "
            f"of these because they said nothing any more; over by themselves: {dict(self.endings)}"
        )
