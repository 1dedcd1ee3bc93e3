"""One coordinator, its log, the members of one group, and a network between them; time is a number.

After every event the invariants hold: a partition has one owner in a generation, the offsets are those of the last
commit that was taken, and a shard that replays the log holds the same as the one that wrote it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from penstock.coordinators.decision import Answer, Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.metadata.image import ClusterImage
from penstock.model.errors import NOT_COORDINATOR
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.protocol.disk.classic_group_records import GroupMetadataKey, OffsetCommitKey
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest
from tests.sim.groups.faults import Faults
from tests.sim.groups.member import Member
from tests.unit.coordinators.durable import durable, round_trip

GROUP = "g"
WALL_AT_START = 1_700_000_000_000
PROPERTIES = {"group.initial.rebalance.delay.ms": 500, "offsets.retention.check.interval.ms": 20_000}

Fetch = OffsetFetchRequest.OffsetFetchRequestGroup


class Post:
    """A request on its way, and the life of the member that sent it: a later life knows nothing of it."""

    __slots__ = ("life", "member", "request")

    def __init__(self, member: Member, life: int, request: Any) -> None:
        self.member, self.life, self.request = member, life, request


class World:
    """Events by time. `settings` may add properties; `partitions` says how many each topic has."""

    def __init__(self, seed: int, partitions: dict[str, int], **properties: Any) -> None:
        self.rng = Random(seed)
        self.faults = Faults.drawn(self.rng)
        self.time = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self.members: list[Member] = []
        self._lives: dict[str, int] = {}
        self._rates: dict[str, float] = {}
        self._wakes: dict[str, int] = {}
        self.settings = GroupSettings.fixed({**PROPERTIES, **properties})
        self.image = _image(partitions)
        self.partitions = frozenset(
            TopicPartition(topic, index) for topic, count in partitions.items() for index in range(count)
        )
        self.log: list[StateRecord] = []
        self._committed = 0
        self._commit_at = 0
        self._incarnation = 0
        self._fails_at_write = False
        self._wall_skew = self._tick_skew = 0
        self._coordinator_wake: int | None = None
        self.shard: GroupShard | None = None
        self._twin = self._new_shard()
        # What members heard of, by (life of the group, generation or epoch, partition).
        self._checked = -1
        self._claims: dict[tuple[int, int, TopicPartition], str] = {}
        # Where each commit that was taken is in the log.
        self._commits: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.story: list[str] = []
        self._load()

    # Time

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (self.time + delay_ms, self._order, act))

    def run(self, until: int) -> None:
        """Everything up to `until`, checked after each event."""
        while self._events and self._events[0][0] <= until:
            self.time, _, act = heapq.heappop(self._events)
            act()
            self.check()
        self.time = until

    def note(self, what: str) -> None:
        self.story.append(f"{self.time:>7} {what}")

    # Members

    def add(self, member: Member) -> None:
        drift = self.faults.clock_drift
        self.members.append(member)
        self._lives[member.name] = 0
        self._rates[member.name] = 1 + self.rng.uniform(-drift, drift)
        self.after(self.rng.randrange(3_000), lambda: self._wake(member))

    def clock_of(self, member: Member) -> int:
        return int(self.time * self._rates[member.name])

    def _wake(self, member: Member) -> None:
        self._wakes.pop(member.name, None)
        member.on_time(self.clock_of(member))
        self._plan(member)

    def _plan(self, member: Member) -> None:
        """Sees to it that the member is woken when it wants to be."""
        at = member.wake_at
        if at is None:
            return
        when = max(int(at / self._rates[member.name]) + 1, self.time)
        planned = self._wakes.get(member.name)
        if planned is None or when < planned:
            self._wakes[member.name] = when
            self.after(when - self.time, lambda: self._wake_planned(member, when))

    def _wake_planned(self, member: Member, when: int) -> None:
        if self._wakes.get(member.name) == when:
            self._wake(member)

    def crash(self, member: Member) -> None:
        self.note(f"{member.name} crashes")
        self._lives[member.name] += 1
        member.crash()
        self._wakes[member.name] = self.time + self.rng.randrange(100, 15_000)
        when = self._wakes[member.name]
        self.after(when - self.time, lambda: self._wake_planned(member, when))

    def kill(self, member: Member) -> None:
        """It crashes and never comes back."""
        self.note(f"{member.name} is gone for good")
        self._lives[member.name] += 1
        member.crash()
        self._wakes[member.name] = -1
        self.members.remove(member)

    def pause(self, member: Member) -> None:
        """Nothing reaches it and it does nothing for a while; then it goes on as if no time had passed."""
        self.note(f"{member.name} is paused")
        when = self.time + self.rng.randrange(500, 25_000)
        self._wakes[member.name] = when
        self.after(when - self.time, lambda: self._wake_planned(member, when))

    def trouble(self, until: int) -> None:
        """Plans crashes, pauses, departures and failovers, at the rates of this world."""

        def plan(every_ms: int, act: Callable[[], None]) -> None:
            if not every_ms:
                return
            at = self.rng.expovariate(1 / every_ms)
            while at < until:
                self.after(int(at), act)
                at += self.rng.expovariate(1 / every_ms)

        def anybody() -> Member:
            return self.rng.choice(self.members)

        plan(self.faults.crash_every_ms, lambda: self.crash(anybody()))
        plan(self.faults.pause_every_ms, lambda: self.pause(anybody()))
        plan(self.faults.leave_every_ms, lambda: anybody().leave())
        plan(self.faults.failover_every_ms, self._fail_soon)

    def check_settled(self) -> None:
        """Faults are over for a while: everybody is in, and every partition is owned by exactly one member."""
        assert self.shard is not None
        unsettled = [member.name for member in self.members if not member.settled()]
        assert not unsettled, f"not settled: {unsettled}"
        owned = [partition for member in self.members for partition in member.owned()]
        assert sorted(owned) == sorted(self.partitions), "every partition has one owner"
        (group,) = self.shard.listed(self.moment())
        assert group.group_state == "Stable"

    def claim(self, member: Member, generation: int, partitions: Iterable[TopicPartition]) -> None:
        """A member was given partitions in a generation."""
        life = sum(1 for r in self.log[: self._committed] if isinstance(r.key, GroupMetadataKey) and r.value is None)
        for partition in partitions:
            owner = self._claims.setdefault((life, generation, partition), member.name)
            assert owner == member.name, f"{partition} belongs to {owner} and {member.name} in generation {generation}"

    # The network

    def send(self, member: Member, request: Any, version: int) -> None:
        """A request from a member; it may be late, lost or come twice."""
        post = Post(member, self._lives[member.name], request)
        if self.rng.random() >= self.faults.lost:
            self.after(self._delay(), lambda: self._deliver(post, version))
        if self.rng.random() < self.faults.doubled:
            # Nobody waits for the answer to a double, and it may come when the world has moved on.
            ghost = Post(member, -1, request)
            self.after(
                self._delay() + self.rng.randrange(self.rng.choice((1_000, 20_000))),
                lambda: self._deliver(ghost, version),
            )

    def _delay(self) -> int:
        return self.rng.randrange(self.faults.delay_max_ms) if self.faults.delay_max_ms > 1 else 0

    def _deliver(self, post: Post, version: int) -> None:
        if self.shard is None:
            self._reply(Answer(post, _refused(post.request)))
            return
        caller = Caller(post.member.name, "/127.0.0.1", version, post)
        if isinstance(post.request, Fetch):
            reply = self.shard.fetch_offsets(post.request, caller, self.moment())
            self._carry_out(Decision(answers=[Answer(post, reply)]))
            return
        decision = self.shard.decide(post.request, caller, self.moment())
        if decision.reply is not None:
            decision.answers.append(Answer(post, decision.reply))
        self._check_generation(post.request, decision)
        if isinstance(post.request, OffsetCommitRequest):
            self._note_commits(decision)
        self._carry_out(decision)

    def _reply(self, answer: Answer) -> None:
        post = answer.token
        assert isinstance(post, Post)
        if self.rng.random() >= self.faults.lost:
            self.after(self._delay(), lambda: self._hand_over(post, answer.reply))

    def _hand_over(self, post: Post, reply: Any) -> None:
        if post.life == self._lives[post.member.name]:
            post.member.on_reply(post.request, reply, self.clock_of(post.member))
            self._plan(post.member)

    # The coordinator

    def moment(self) -> Moment:
        return Moment(Millis(WALL_AT_START + self.time + self._wall_skew), self.time + self._tick_skew)

    def _new_shard(self) -> GroupShard:
        def new_id() -> str:
            return f"{self.rng.getrandbits(32):08x}-0000-0000-0000-000000000000"

        return GroupShard(self.settings, self.image, new_id=new_id)

    def _carry_out(self, decision: Decision) -> None:
        """Writes and applies at once; answers leave when everything written so far is committed."""
        assert self.shard is not None
        for record in decision.records:
            self._check_order(record)
            stored = round_trip(record)
            self.log.append(stored)
            self.shard.apply(record)
            self._twin.apply(stored)
        end, incarnation = len(self.log), self._incarnation
        delay = self.rng.randint(0, self.faults.commit_delay_max_ms) if decision.records else 0
        self._commit_at = max(self._commit_at, self.time + delay)
        if decision.records or decision.answers:
            self.after(self._commit_at - self.time, lambda: self._commit(end, incarnation, decision.answers))
        if self._fails_at_write and decision.records:
            self._fails_at_write = False
            self.after(self.rng.randint(0, delay), self.fail_over)
        self._plan_coordinator()

    def _commit(self, end: int, incarnation: int, answers: list[Answer]) -> None:
        if incarnation == self._incarnation:
            self._committed = max(self._committed, end)
            for answer in answers:
                self._reply(answer)

    def _plan_coordinator(self) -> None:
        assert self.shard is not None
        deadline = self.shard.next_deadline()
        if deadline is None:
            return
        when = max(deadline - self._tick_skew, self.time)
        if self._coordinator_wake is None or when < self._coordinator_wake:
            self._coordinator_wake = when
            self.after(when - self.time, lambda: self._coordinator_time(when))

    def _coordinator_time(self, when: int) -> None:
        if self._coordinator_wake != when or self.shard is None:
            return
        self._coordinator_wake = None
        for decision in self.shard.expire(self.moment()):
            self._carry_out(decision)
        self._plan_coordinator()

    def _fail_soon(self) -> None:
        """At once, or between the next write and its commit, where it hurts most."""
        if self.rng.random() < 0.5:
            self.fail_over()
        else:
            self._fails_at_write = True

    def fail_over(self) -> None:
        """The coordinator goes down. What was not committed may be lost, from some point on."""
        if self.shard is None:
            return
        if self.rng.random() < 0.5:
            for answer in self.shard.unload():
                self._reply(answer)
        self.shard = None
        self._incarnation += 1
        self._coordinator_wake = None
        kept = self.rng.randint(self._committed, len(self.log))
        self.note(f"the coordinator fails; {len(self.log) - kept} records are lost")
        del self.log[kept:]
        for commits in self._commits.values():
            while commits and commits[-1][0] >= kept:
                commits.pop()
        self._committed = kept
        self.after(self.rng.randrange(3_000), self._load)

    def _load(self) -> None:
        """Another coordinator reads the log, which may have been compacted in the meantime."""
        self._wall_skew, self._tick_skew = self.rng.randint(-5_000, 5_000), self.rng.randrange(1_000_000)
        self.shard, self._twin = self._new_shard(), self._new_shard()
        for record in compacted(self.log) if self.rng.random() < 0.5 else self.log:
            self.shard.apply(record)
        for record in self.log:
            self._twin.apply(record)
        assert durable(self.shard.table) == durable(self._twin.table), "compaction changed what the log says"
        self._commit_at = self.time
        for decision in self.shard.loaded(self.moment()):
            self._carry_out(decision)
        self._plan_coordinator()

    # Invariants

    def check(self) -> None:
        if self.shard is None:
            return
        table = self.shard.table
        taken = {key: commits[-1][1] for key, commits in self._commits.items() if commits}
        held = {key: committed.offset for key, committed in table.offsets.get(GROUP, {}).items()}
        assert held == taken, "offsets are those of the last commits"
        if len(self.log) != self._checked:
            self._checked = len(self.log)
            live, replayed = durable(table), durable(self._twin.table)
            assert live.offsets == replayed.offsets
            for group_id, state in live.groups.items():
                assert state is None or state == replayed.groups[group_id], "the log says what the coordinator holds"

    def _check_generation(self, request: Any, decision: Decision) -> None:
        """Only members of the generation that holds may commit, and only its leader may assign."""
        if isinstance(request, OffsetCommitRequest) and decision.records:
            last = self._last_group_record()
            assert last is not None
            assert last.value is not None
            assert request.generation_id_or_member_epoch == last.value.generation, "a former member commits"
        elif isinstance(request, SyncGroupRequest) and decision.records:
            assert request.generation_id == decision.records[-1].value.generation, "a former leader assigns"

    def _last_group_record(self) -> StateRecord | None:
        return next((record for record in reversed(self.log) if isinstance(record.key, GroupMetadataKey)), None)

    def _note_commits(self, decision: Decision) -> None:
        for position, record in enumerate(decision.records, start=len(self.log)):
            key = (record.key.topic, record.key.partition)
            assert record.value is not None
            self._commits.setdefault(key, []).append((position, record.value.offset))

    def _check_order(self, record: StateRecord) -> None:
        """Offsets of the only group are not deleted here, and generations only rise while the group lives."""
        if isinstance(record.key, OffsetCommitKey):
            assert record.value is not None, "nothing expires within minutes"
        elif isinstance(record.key, GroupMetadataKey) and record.value is not None:
            last = self._last_group_record()
            if last is not None and last.value is not None:
                assert record.value.generation >= last.value.generation, "generations rise"


def compacted(log: list[StateRecord]) -> list[StateRecord]:
    """The last record of every key, in the order of the log."""
    last = {repr(record.key): position for position, record in enumerate(log)}
    return [log[position] for position in sorted(last.values())]


def _image(partitions: dict[str, int]) -> ClusterImage:
    image = ClusterImage()
    for topic, count in partitions.items():
        topic_id = Uuid(topic.encode().ljust(16, b"\0"))
        image.apply(TopicRecord(name=topic, topic_id=topic_id), Offset(image.offset + 1), Epoch(1))
        for index in range(count):
            record = PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0
            )
            image.apply(record, Offset(image.offset + 1), Epoch(1))
    image.take_delta()
    return image


def _refused(request: Any) -> Any:
    """What a broker says that does not coordinate the group."""
    if isinstance(request, Fetch):
        return OffsetFetchResponse.OffsetFetchResponseGroup(group_id=GROUP, error_code=NOT_COORDINATOR.code)
    if isinstance(request, OffsetCommitRequest):
        from penstock.coordinators.groups.offsets import commit_refused

        reply: OffsetCommitResponse = commit_refused(request, NOT_COORDINATOR)
        return reply
    module = __import__(type(request).__module__, fromlist=["_"])
    return getattr(module, type(request).__name__.replace("Request", "Response"))(error_code=NOT_COORDINATOR.code)
