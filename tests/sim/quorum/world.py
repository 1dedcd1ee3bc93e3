"""A quorum under a seed: messages lost, late, doubled and out of order, links cut one way, nodes that crash and pause.

Checked after every event, with the numbers of the facts: R1 one vote per epoch, and it is on the disk; R2 a leader only
appends; R3 whoever leads has everything committed; R4 a leader commits with a record of its own epoch; R5 one change of
the voters at a time; R6 the high watermark only rises; R7 what is committed is the same everywhere and stays; R8 the
voters are those of the newest record in the log. And an epoch has one leader, and one record at an offset.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.protocol.control import KRAFT_VOTERS
from penstock.quorum import events as e
from penstock.quorum.fetching import Diverges, LogPoint, NeedsSnapshot, judge_fetch, truncation_point
from penstock.quorum.history import QuorumVersion
from penstock.quorum.state import ReplicaKey, Role
from penstock.quorum.voters import VoterSet
from tests.sim.quorum.checks import Checks
from tests.sim.quorum.faults import SOUND, Faults, Planted
from tests.sim.quorum.machine import DATA, SETTINGS, Entry, Machine, Parked, voter_of

WAIT_MS = 130.0
RETRY_MS = 20.0
GIVE_UP_MS = 250.0
RECORDS_MAX = 5
FOLLOWS = (Role.FOLLOWER, Role.UNATTACHED, Role.RESIGNED)


class World:
    """Events by time. `telling` keeps the story of what happened."""

    def __init__(self, seed: int, *, planted: Planted = SOUND, telling: bool = False) -> None:
        self.rng = Random(seed)
        self.random = self.rng.random
        self.faults, self.planted = Faults.drawn(self.rng), planted
        self.now = 0.0
        self.story: list[str] | None = [] if telling else None
        self._queue: list[tuple[float, int, int, int, Any, tuple[Any, ...]]] = []
        self._order = 0
        self.cuts: set[tuple[int, int]] = set()
        size, spare = self.rng.choice(((3, 0), (3, 0), (3, 1), (1, 2), (2, 1), (4, 0), (5, 0)))
        voters = VoterSet(voter_of(number) for number in range(1, size + 1))
        self.machines = {
            number: Machine(number, voters if number <= size else VoterSet([]), self.rng)
            for number in range(1, size + spare + 1)
        }
        self.numbers = list(self.machines)
        self.checks = Checks(planted)
        self.events = 0
        self._written = 0
        for machine in self.machines.values():
            self._power_on(machine)
        for what, every_ms in self._troubles():
            self._trouble_later(what, every_ms)

    # Time

    def _later(self, machine: Machine, what: Callable[..., None], delay: float, *args: Any) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now + delay, self._order, machine.number, machine.life, what, args))

    def run(self, until: float) -> None:
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, number, life, what, args = heapq.heappop(queue)
            self.events += 1
            if number == 0:
                self._trouble(what)
                continue
            machine = self.machines[number]
            if life == machine.life and machine.up:
                if machine.held is not None:
                    machine.held.append((what, args))
                else:
                    what(machine, *args)
        self.now = until

    def tell(self, machine: Machine, what: str, detail: Any = "") -> None:
        if self.story is not None:
            node = machine.node
            self.story.append(
                f"{self.now:8.1f} n{machine.number} {node.role.value}@{node.epoch} end {len(machine.log)}"
                f" hw {node.high_watermark}: {what} {detail}"
            )

    # Stepping

    def step(self, machine: Machine, event: e.Event, asker: tuple[int, int] | None = None) -> None:
        first = machine.node.step(event)
        if self.story is not None:
            self.tell(machine, type(event).__name__, event)
        effects: deque[e.Effect] | tuple[()] = deque(first) if first else ()
        while effects:
            effect = effects.popleft()
            kind = effect.__class__
            if kind is e.Send:
                self._post(machine, effect.to, self.asked, machine.number, machine.life, effect.message)  # type: ignore[union-attr]
                self.checks.asks(machine, effect.message)  # type: ignore[union-attr]
            elif kind is e.PersistState:
                self.checks.persists(machine, effect.state)  # type: ignore[union-attr]
                machine.disk_state = effect.state  # type: ignore[union-attr]
            elif kind is e.Append:
                entries = [Entry(effect.epoch, *each) for each in effect.entries]  # type: ignore[union-attr]
                effects.extend(self._appended(machine, entries))
            elif kind is e.Flush:
                self._flush(machine)
            elif kind is e.Answer:
                self._answer(machine, effect.message, asker)  # type: ignore[union-attr]
            elif kind is e.HighWatermark:
                self.checks.commits(machine, effect.offset)  # type: ignore[union-attr]
            elif kind is e.BecameLeader:
                self.checks.leads(machine, effect.epoch)  # type: ignore[union-attr]
        self._rest(machine)

    def _appended(self, machine: Machine, entries: list[Entry]) -> list[e.Effect]:
        at = len(machine.log)
        machine.append(entries)
        self.checks.appends(machine, at)
        controls = machine.controls(at)
        effects = machine.node.step(
            e.Appended(self.now, machine.end, Epoch(entries[-1].epoch), tuple(controls) if controls else ())
        )
        if controls and any(entry.kind == KRAFT_VOTERS for entry in entries):
            self.checks.voters(machine)
        return effects

    def _rest(self, machine: Machine) -> None:
        """After a step: timers, fetches that wait, and whom to fetch from."""
        node = machine.node
        deadline = node.deadline
        if deadline is not None and (machine.timer_at is None or deadline < machine.timer_at):
            machine.timer_at = deadline
            self._later(machine, self.tick, max(deadline - self.now, 0.0))
        if machine.parked:
            told = (len(machine.log), node.high_watermark, node.epoch, node.role)
            if told != machine.told:
                machine.told = told
                for parked in list(machine.parked.values()):
                    self._look(machine, parked)
        stance = (node.role, node.epoch, node.leader)
        if stance != machine.stance:
            machine.stance, machine.silent = stance, False
            self._fetch_soon(machine, 0.0)

    def tick(self, machine: Machine) -> None:
        machine.timer_at = None
        deadline = machine.node.deadline
        if deadline is not None and self.now >= deadline:
            self.step(machine, e.Tick(self.now))
        else:
            self._rest(machine)

    # Messages

    def _post(self, sender: Machine, to: int, what: Callable[..., None], *args: Any) -> None:
        faults = self.faults
        if to == sender.number or to not in self.machines or (sender.number, to) in self.cuts:
            return
        if faults.lost and self.random() < faults.lost:
            return
        self._later(self.machines[to], what, 0.5 + self.random() * faults.delay_max_ms, *args)
        if faults.doubled and self.random() < faults.doubled:
            self._later(self.machines[to], what, 0.5 + self.random() * faults.delay_max_ms * 3, *args)

    def asked(self, machine: Machine, by: int, life: int, message: e.Ask) -> None:
        self.step(machine, e.Asked(self.now, message), (by, life))

    def _answer(self, machine: Machine, message: e.Reply, asker: tuple[int, int] | None) -> None:
        self.checks.answers(machine, message)
        if asker is not None and self.machines[asker[0]].life == asker[1]:
            self._post(machine, asker[0], self.answered, machine.number, message)

    def answered(self, machine: Machine, by: int, message: e.Reply) -> None:
        self.step(machine, e.Answered(self.now, NodeId(by), message))

    # The disk

    def _flush(self, machine: Machine, then_fetch: bool = False) -> None:
        if then_fetch:
            machine.after_flush.append(machine.fetch_number)
        if machine.flushing:
            machine.flush_again = True
            return
        machine.flushing = True
        self._later(machine, self.flushed, self.random() * self.faults.sync_max_ms, len(machine.log))

    def flushed(self, machine: Machine, target: int) -> None:
        machine.flushing = False
        machine.disk = machine.log[:target]
        self.step(machine, e.Flushed(self.now, Offset(target)))
        if machine.flush_again:
            machine.flush_again = False
            self._flush(machine)
        elif machine.after_flush:
            machine.after_flush.clear()
            self._fetch_soon(machine, 0.0)

    # Following

    def _fetch_soon(self, machine: Machine, delay: float) -> None:
        machine.fetch_number += 1
        if machine.node.role in FOLLOWS:
            self._later(machine, self.fetch, delay, machine.fetch_number)

    def fetch(self, machine: Machine, number: int) -> None:
        node = machine.node
        if number != machine.fetch_number or node.role not in FOLLOWS:
            return
        if machine.flushing and not self.planted.fetches_unsynced:
            # What it has must be on the platter before it says so.
            self._flush(machine, then_fetch=True)
            return
        to = int(node.leader)
        if to == NO_NODE or machine.silent:
            machine.silent = False
            to = self.rng.choice(self.numbers)
        elif self._refused(machine, to):
            machine.silent = True
            self.step(machine, e.LeaderGone(self.now, node.leader, node.epoch))
            if number == machine.fetch_number:
                self._fetch_soon(machine, RETRY_MS)
            return
        hw = -1 if node.high_watermark is None else node.high_watermark
        self._post(
            machine, to, self.serve, machine.key, machine.life, number, node.epoch, machine.end, machine.last_epoch, hw
        )
        machine.fetching, machine.fetched_at = number, self.now
        if not machine.patience:
            machine.patience = True
            self._later(machine, self.give_up, GIVE_UP_MS)

    def _refused(self, machine: Machine, to: int) -> bool:
        """Whether a link to a node cannot be made: it is down and its host says so, or the way is barred."""
        if (machine.number, to) in self.cuts or (to, machine.number) in self.cuts:
            return False
        if self.machines[to].up:
            return self.faults.lost > 0 and self.random() < 0.02
        return self.random() < 0.7

    def give_up(self, machine: Machine) -> None:
        """Looks whether a fetch is without an answer for too long; one timer does for all of them."""
        machine.patience = False
        if machine.fetching != machine.fetch_number:
            return
        left = machine.fetched_at + GIVE_UP_MS - self.now
        if left > 0:
            machine.patience = True
            self._later(machine, self.give_up, left)
        else:
            machine.silent = True
            self._fetch_soon(machine, 0.0)

    def serve(
        self, machine: Machine, replica: ReplicaKey, life: int, number: int, epoch: Epoch, end: Offset, last: Epoch,
        hw: int,
    ) -> None:  # fmt: skip
        node = machine.node
        if self.machines[replica.id].life != life:
            return
        if node.check_fetch(epoch).code:
            self._served(machine, replica, number, "refused", None)
            return
        verdict = judge_fetch(machine.view(), end, last)
        if isinstance(verdict, Diverges):
            self._served(machine, replica, number, "diverges", verdict.point)
        elif isinstance(verdict, NeedsSnapshot):
            assert machine.snapshot is not None
            self.step(machine, e.ReplicaFetched(self.now, replica, None))
            content = (machine.log[: verdict.snapshot.end], machine.snapshot)
            self._served(machine, replica, number, "snapshot", content)
        else:
            self.step(machine, e.ReplicaFetched(self.now, replica, end))
            parked = Parked(replica, number, epoch, end, hw)
            machine.parked[replica] = parked
            if not self._look(machine, parked):
                self._later(machine, self.waited, WAIT_MS, parked)

    def _look(self, machine: Machine, parked: Parked) -> bool:
        """Answers a fetch that waits, if there is something to say."""
        node = machine.node
        if node.check_fetch(parked.epoch).code:
            del machine.parked[parked.replica]
            self._served(machine, parked.replica, parked.number, "refused", None)
            return True
        hw = node.high_watermark
        if len(machine.log) > parked.end or (hw is not None and hw > parked.high_watermark):
            self._release(machine, parked)
            return True
        return False

    def waited(self, machine: Machine, parked: Parked) -> None:
        if machine.parked.get(parked.replica) is parked and not self._look(machine, parked):
            self._release(machine, parked)

    def _release(self, machine: Machine, parked: Parked) -> None:
        del machine.parked[parked.replica]
        records = machine.log[parked.end : parked.end + RECORDS_MAX]
        self._served(machine, parked.replica, parked.number, "records", (parked.end, records))

    def _served(self, machine: Machine, replica: ReplicaKey, number: int, kind: str, content: Any) -> None:
        node = machine.node
        hw = -1 if node.high_watermark is None else node.high_watermark
        self._post(machine, replica.id, self.take, number, node.epoch, node.leader, kind, content, hw)

    def take(
        self, machine: Machine, number: int, epoch: Epoch, leader: NodeId, kind: str, content: Any, hw: int
    ) -> None:
        if number != machine.fetch_number:
            return
        at = machine.node.epoch
        self.step(machine, e.Answered(self.now, leader, e.EpochAnswer(epoch, leader)))
        node = machine.node
        if kind == "refused":
            if number == machine.fetch_number:
                machine.silent = True
                self._fetch_soon(machine, RETRY_MS)
            return
        if node.role is not Role.FOLLOWER or node.leader != leader or node.epoch != epoch or at != epoch:
            if number == machine.fetch_number:
                self._fetch_soon(machine, RETRY_MS)
            return
        if kind == "records":
            self._take_records(machine, leader, epoch, content[0], content[1], hw)
        elif machine.flushing:
            self._fetch_soon(machine, 1.0)
        elif kind == "diverges":
            self._cut(machine, leader, epoch, content)
        else:
            self._install(machine, leader, epoch, *content)

    def _take_records(
        self, machine: Machine, leader: NodeId, epoch: Epoch, at: int, records: list[Entry], hw: int
    ) -> None:
        if at != len(machine.log):
            self._fetch_soon(machine, 0.0)
            return
        machine.fetch_number += 1
        if records:
            effects = self._appended(machine, records)
            assert not effects, "who only follows does nothing about what it appends"
        self.step(machine, e.FetchedFromLeader(self.now, leader, epoch, Offset(hw)))
        if records:
            self._flush(machine, then_fetch=True)
            if self.planted.fetches_unsynced:
                self._fetch_soon(machine, 0.0)
        else:
            self._fetch_soon(machine, 0.0)

    def _cut(self, machine: Machine, leader: NodeId, epoch: Epoch, point: LogPoint) -> None:
        to = truncation_point(machine.end, machine.epochs.end_of, point)
        self.checks.cuts(machine, to)
        machine.truncate(to)
        self.step(machine, e.Truncated(self.now, machine.end, machine.last_epoch))
        self.checks.voters(machine)
        self.step(machine, e.FetchedFromLeader(self.now, leader, epoch, None))
        self._flush(machine, then_fetch=True)

    def _install(
        self, machine: Machine, leader: NodeId, epoch: Epoch, log: list[Entry],
        snapshot: tuple[LogPoint, QuorumVersion],
    ) -> None:  # fmt: skip
        if snapshot[0].end <= machine.high_watermark:
            self._fetch_soon(machine, RETRY_MS)
            return
        machine.install(list(log), snapshot)
        self.step(machine, e.SnapshotInstalled(self.now, snapshot[0].end, snapshot[0].epoch, snapshot[1]))
        self.checks.voters(machine)
        self._fetch_soon(machine, 0.0)

    # Trouble

    def _troubles(self) -> list[tuple[str, int]]:
        faults = self.faults
        return [
            ("crash", faults.crash_every_ms), ("pause", faults.pause_every_ms), ("cut", faults.cut_every_ms),
            ("change", faults.change_every_ms), ("snapshot", faults.snapshot_every_ms),
            ("append", faults.append_every_ms),
        ]  # fmt: skip

    def _trouble_later(self, what: str, every_ms: int) -> None:
        if every_ms:
            self._order += 1
            at = self.now + self.rng.expovariate(1 / every_ms)
            heapq.heappush(self._queue, (at, self._order, 0, 0, what, ()))

    def _trouble(self, what: str) -> None:
        self._trouble_later(what, dict(self._troubles()).get(what, 0))
        if what in ("restart", "resume", "mend"):
            getattr(self, what)()
        else:
            getattr(self, what)(self.machines[self.rng.choice(self.numbers)])

    def _power_on(self, machine: Machine) -> None:
        machine.power_on()
        self.step(machine, machine.started(self.now))
        self.tell(machine, "starts")

    def crash(self, machine: Machine) -> None:
        """The power is cut for one node, or for all of them."""
        for each in self.machines.values() if self.random() < 0.2 else (machine,):
            if each.up:
                self.tell(each, "crashes")
                each.power_off(keeps_unsynced=self.random() < 0.3, forgets_state=self.planted.votes_forgotten)
                self._trouble_later("restart", 60 if self.random() < 0.6 else 600)

    def restart(self) -> None:
        down = [machine for machine in self.machines.values() if not machine.up]
        if down:
            self._power_on(self.rng.choice(down))

    def pause(self, machine: Machine) -> None:
        if machine.up and machine.held is None:
            self.tell(machine, "pauses")
            machine.held = []
            self._trouble_later("resume", 300)

    def resume(self) -> None:
        for machine in self.machines.values():
            if machine.up and machine.held is not None:
                held, machine.held = machine.held, None
                self.tell(machine, "goes on")
                for what, args in held:
                    what(machine, *args)

    def cut(self, machine: Machine) -> None:
        others = [number for number in self.numbers if number != machine.number]
        way = self.rng.randrange(4)
        for other in others if way else others[:1]:
            if way != 1:
                self.cuts.add((machine.number, other))
            if way != 2:
                self.cuts.add((other, machine.number))
        self._trouble_later("mend", 500)

    def mend(self) -> None:
        self.cuts.clear()

    def snapshot(self, machine: Machine) -> None:
        if machine.up and machine.held is None:
            machine.take_snapshot()

    def append(self, _machine: Machine) -> None:
        for leader in self._leaders():
            self._written += 1
            data = Entry(leader.node.epoch, DATA, b"%d" % self._written)
            assert not self._appended(leader, [data]), "data changes nothing but the log"
            self._rest(leader)
            self._flush(leader)

    def change(self, machine: Machine) -> None:
        """Somebody asks every leader to add or remove a node."""
        for leader in self._leaders():
            voters = leader.node.voters
            add = voters.get(machine.key.id) is None
            ask: e.Ask = e.AddAsk(machine.me) if add else e.RemoveAsk(machine.key)
            self.step(leader, e.Asked(self.now, ask))

    def _leaders(self) -> list[Machine]:
        return [
            machine
            for machine in self.machines.values()
            if machine.up and machine.held is None and machine.node.role is Role.LEADER
        ]

    # The end

    def calm_down(self) -> None:
        """Everything is mended and everybody is up."""
        self.faults = Faults.none()
        self.cuts.clear()
        self.resume()
        for machine in self.machines.values():
            if not machine.up:
                self._power_on(machine)

    def settled(self) -> bool:
        """One leader, whom everybody follows, with nothing left to commit."""
        leaders = self._leaders()
        if not leaders:
            return False
        leader = max(leaders, key=lambda each: each.node.epoch)
        epoch, end = leader.node.epoch, leader.end
        return leader.node.high_watermark == end and all(
            machine.node.epoch == epoch and machine.end == end and machine.node.high_watermark == end
            for machine in self.machines.values()
        )


def simulate(seed: int, *, planted: Planted = SOUND, telling: bool = False, trouble_ms: float = 2_000) -> World:
    """A world that had its trouble and came to rest; AssertionError where it broke a promise."""
    world = World(seed, planted=planted, telling=telling)
    try:
        world.run(trouble_ms)
        world.calm_down()
        limit = world.now + 60 * SETTINGS.fetch_timeout_ms
        while not world.settled():
            assert world.now < limit, "nobody leads, or not everybody follows, long after all is well"
            world.run(world.now + 100)
    except AssertionError as broken:
        broken.args = (f"seed {seed}: {broken}", *(world.story or ())[-60:])
        raise
    return world
