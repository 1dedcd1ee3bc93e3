"""Runs the quorum: feeds events to `QuorumNode`, carries out its effects in order, and owns the metadata log.

An event is stepped only when all effects of the one before are carried out. Writing `quorum-state` is off the loop, so
what follows it waits; everything else is done at once. With one voter nothing is ever sent; with several, requests go
out through `send` and come in through `asked`, `answered` and `replica_fetched`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.metadata.snapshot import image_of
from penstock.model.errors import NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER, Refused, StorageFailed
from penstock.model.ids import METADATA_TOPIC, Epoch, NodeId, Offset
from penstock.protocol.codec import decode
from penstock.protocol.control import KRAFT_VERSION, KRAFT_VOTERS
from penstock.protocol.disk.raft_records import KRaftVersionRecord, VotersRecord
from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse
from penstock.quorum import events
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import QuorumSettings, ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet
from penstock.server.drivers.quorum_log import ControlEntry, QuorumLog
from penstock.server.drivers.quorum_state_file import QUORUM_STATE, encode_quorum_state, read_quorum_state
from penstock.server.peers import Address
from penstock.transport.deadline import Deadline

if TYPE_CHECKING:
    from random import Random

    from penstock.metadata.records import VersionedRecord
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Files, Offload
    from penstock.server.drivers.metadata_driver import LogBatch, MetadataDriver
    from penstock.server.drivers.snapshot_file import SnapshotId
    from penstock.server.peers import Peers

log = logging.getLogger("penstock.quorum")

Send = Callable[[NodeId, events.Ask], None]


@dataclass(frozen=True, slots=True)
class QuorumVersion:
    """What the log says of the quorum from `offset` on."""

    offset: Offset
    kraft_version: int
    voters: VoterSet


class QuorumDriver:
    """The metadata log's leader or follower on this node. The doors `Services.quorum` and the controller's log."""

    def __init__(
        self,
        files: Files,
        offload: Offload,
        clock: Clock,
        random: Random,
        directory: str,
        me: Voter,
        settings: BrokerSettings,
        metadata: MetadataDriver,
        *,
        peers: Peers | None = None,
        is_controller: bool = True,
        on_fatal: Callable[[Exception], None] = lambda _why: None,
    ) -> None:
        self._files, self._offload, self._clock, self._random = files, offload, clock, random
        self._me, self._settings, self._metadata = me, settings, metadata
        self._peers, self._is_controller, self._send = peers, is_controller, _drop
        self._on_fatal = on_fatal
        self.directory = directory
        self._log = QuorumLog(files, offload, clock, directory, settings, self._fail)
        self._log.on_flushed(self._flushed)
        self._node: QuorumNode | None = None
        self._history: list[QuorumVersion] = []
        self._events: deque[tuple[events.Event, asyncio.Future[Any] | None]] = deque()
        self._effects: deque[events.Effect] = deque()
        self._asker: asyncio.Future[Any] | None = None
        self._busy = self._starting = self._failed = False
        self._timer: Deadline | None = None
        self._lead: Callable[[], None] = lambda: None
        self._resign: Callable[[], None] = lambda: None
        self._follow: Callable[[NodeId, Epoch], None] = lambda _leader, _epoch: None
        self._leader_listeners: list[Callable[[], None]] = []
        self.snapshots: list[SnapshotId] = []
        """The snapshots found at the start, the oldest first."""

    def attach(
        self,
        *,
        lead: Callable[[], None],
        resign: Callable[[], None],
        follow: Callable[[NodeId, Epoch], None] | None = None,
    ) -> None:
        """Who is told when this node begins to lead (its first record is in the log then), stops, or follows."""
        self._lead, self._resign = lead, resign
        if follow is not None:
            self._follow = follow

    # Life

    def start(self) -> None:
        """Reads the disk and takes part. A quorum of one leads when this returns; nothing is committed yet."""
        snapshot, self.snapshots = self._log.open()
        self._history = [QuorumVersion(Offset(0), 0, self._configured_voters())]
        logged = False
        if snapshot is not None:
            content, end = snapshot.content, snapshot.id.end
            if content.voters is not None:
                self._learn(end, content.kraft_version or 0, VoterSet.of_record(content.voters))
                logged = end > 0
            self._metadata.last_timestamp = content.last_contained_timestamp
            self._metadata.replace(image_of(content.records, Offset(end - 1), snapshot.id.epoch))
        for batch, entries in self._log.replay(self._metadata.published_end):
            self._metadata.learned(batch)
            logged = self._learn_entries(entries) or logged
        newest = self._history[-1]
        self._node = QuorumNode(
            self._me,
            newest.voters,
            self._random,
            QuorumSettings(
                self._settings.number("controller.quorum.election.timeout.ms"),
                self._settings.number("controller.quorum.fetch.timeout.ms"),
                self._settings.number("controller.quorum.election.backoff.max.ms"),
            ),
            kraft_version=newest.kraft_version,
        )
        state = read_quorum_state(self._files, self.directory)
        self._starting = True
        try:
            now = self._clock.monotonic_ms()
            self._step(events.Started(now, state, self._log.end, self._log.last_epoch, logged))
        finally:
            self._starting = False

    async def close(self) -> None:
        """Steps down, syncs and lets go of the files."""
        if self._node is not None and not self._failed:
            self._step(events.ShutDown(self._clock.monotonic_ms()))
        self._set_timer(None)
        await self._log.close()

    def _configured_voters(self) -> VoterSet:
        """Voters of a quorum whose log names none: those of the configuration, or this node alone."""
        fixed = self._settings.quorum_voters
        if not fixed:
            return VoterSet([self._me])
        name = next(iter(self._settings.controller_listener_names), "CONTROLLER")
        return VoterSet(
            Voter(ReplicaKey(voter.node_id), (VoterEndpoint(name, voter.host, voter.port),)) for voter in fixed
        )

    def _learn(self, offset: Offset, kraft_version: int, voters: VoterSet) -> None:
        self._history.append(QuorumVersion(offset, kraft_version, voters))

    def _learn_entries(self, entries: Sequence[ControlEntry]) -> bool:
        """Takes in what control records say of the quorum; whether they named the voters."""
        named = False
        for entry in entries:
            newest = self._history[-1]
            if entry.kind == KRAFT_VERSION:
                level = decode(KRaftVersionRecord, 0, entry.value)[0].kraft_version
                self._learn(Offset(entry.offset + 1), level, newest.voters)
            elif entry.kind == KRAFT_VOTERS:
                voters = VoterSet.of_record(decode(VotersRecord, 0, entry.value)[0])
                self._learn(Offset(entry.offset + 1), newest.kraft_version, voters)
                named = True
        return named

    # Stepping

    def _step(self, event: events.Event, asker: asyncio.Future[Any] | None = None) -> None:
        self._events.append((event, asker))
        self._run()

    def _run(self) -> None:
        """Steps events and carries out effects until none is left or one has to wait for the disk."""
        if self._busy or self._failed:
            return
        self._busy = True
        node = self._opened
        while True:
            while self._effects:
                effect = self._effects.popleft()
                if isinstance(effect, events.PersistState) and not self._starting:
                    asyncio.get_running_loop().create_task(self._persist_then_run(effect), name="quorum-state")
                    return
                self._carry_out(effect)
            if not self._events:
                break
            event, self._asker = self._events.popleft()
            self._effects.extend(node.step(event))
        self._busy = False
        self._set_timer(node.deadline)

    async def _persist_then_run(self, effect: events.PersistState) -> None:
        try:
            await self._offload.call(self._files.write_atomic, *self._state_file(effect))
        except OSError as failure:
            self._fail(StorageFailed(self.directory, f"quorum-state cannot be written: {failure}"))
            return
        self._busy = False
        self._run()

    def _state_file(self, effect: events.PersistState) -> tuple[str, bytes]:
        newest = self._history[-1]
        fixed = None if newest.kraft_version > 0 else newest.voters.ids
        return f"{self.directory}/{QUORUM_STATE}", encode_quorum_state(effect.state, static_voters=fixed)

    def _carry_out(self, effect: events.Effect) -> None:
        match effect:
            case events.PersistState():
                self._files.write_atomic(*self._state_file(effect))
            case events.BecameLeader(epoch, start):
                log.info("leading the metadata quorum in epoch %d from offset %d", epoch, start)
            case events.Append(epoch, entries):
                self._append_control(epoch, entries)
            case events.Flush():
                self._log.want_flush()
            case events.HighWatermark(offset):
                self._committed_to(offset)
            case events.Send(to, message):
                self._send(to, message)
            case events.Answer(message):
                if self._asker is not None and not self._asker.done():
                    self._asker.set_result(message)
            case events.BecameFollower(leader, epoch):
                log.info("following node %d in epoch %d", leader, epoch)
                self._follow(leader, epoch)
            case events.Resigned(epoch):
                log.info("no longer leading the metadata quorum in epoch %d", epoch)
                self._resign()
                self._metadata.abandon(Refused(NOT_CONTROLLER, "this node no longer leads the metadata quorum"))

    def _append_control(self, epoch: Epoch, entries: Sequence[tuple[int, bytes]]) -> None:
        try:
            batch = self._log.append_control(list(entries), epoch)
        except StorageFailed as failure:
            self._fail(failure)
            return
        self._metadata.learned(batch)
        self._learn_entries(
            [ControlEntry(Offset(batch.base + at), epoch, kind, value) for at, (kind, value) in enumerate(entries)]
        )
        self._events.append((events.Appended(self._clock.monotonic_ms(), batch.end, epoch), None))
        if self._opened.role is Role.LEADER:
            # Only now: the first record of an epoch is the leader's own.
            self._lead()

    def _committed_to(self, offset: Offset) -> None:
        self._log.commit_to(offset)
        try:
            self._metadata.commit_to(offset)
        except Exception as broken:
            log.exception("a committed record cannot be applied")
            self._fail(broken)

    def _flushed(self, end: Offset) -> None:
        self._step(events.Flushed(self._clock.monotonic_ms(), end))

    def _fail(self, why: Exception) -> None:
        """The disk or the log is broken: this node can take no further part."""
        if self._failed:
            return
        self._failed = True
        log.error("the metadata quorum stops on this node: %s", why)
        self._set_timer(None)
        self._resign()
        self._metadata.abandon(Refused(NOT_CONTROLLER, "the metadata log of this node has failed"))
        self._on_fatal(why)

    @property
    def _opened(self) -> QuorumNode:
        assert self._node is not None, "the quorum is started before it is used"
        return self._node

    # Time

    def _set_timer(self, deadline: float | None) -> None:
        if self._timer is None:
            self._timer = Deadline(asyncio.get_running_loop(), self._clock, self._tick)
        if deadline is None or self._failed:
            self._timer.cancel()
        else:
            self._timer.set(deadline)

    def _tick(self) -> None:
        self._step(events.Tick(self._clock.monotonic_ms()))

    # The controller's log

    @property
    def leading(self) -> bool:
        return self._node is not None and self._node.role is Role.LEADER and not self._failed

    @property
    def leader(self) -> NodeId:
        """Who leads, as far as this node knows; -1 for nobody."""
        return self._opened.leader

    @property
    def epoch(self) -> Epoch:
        return self._opened.epoch

    @property
    def leader_address(self) -> Address | None:
        """Where the active controller listens; None while nobody is known."""
        leading = self._opened.voters.get(self.leader)
        return Address(*leading.endpoints[0][1:]) if leading is not None and leading.endpoints else None

    def when_leader_changes(self, listener: Callable[[], None]) -> None:
        """Calls back when the leader or its address has changed."""
        self._leader_listeners.append(listener)

    @property
    def end(self) -> Offset:
        """Where the next record goes."""
        return self._log.end

    @property
    def high_watermark(self) -> Offset | None:
        return None if self._node is None else self._node.high_watermark

    @property
    def kraft_version(self) -> int:
        return self._history[-1].kraft_version if self._history else 0

    @property
    def syncs(self) -> int:
        """How many syncs the log has had."""
        return self._log.syncs

    def append(self, records: Sequence[VersionedRecord]) -> LogBatch:
        """One batch of metadata records: assigned and written when this returns, synced with whoever else waits."""
        if not self.leading:
            raise Refused(NOT_CONTROLLER, "this node does not lead the metadata quorum")
        node = self._opened
        batch = self._log.append_records(records, node.epoch)
        self._metadata.learned(batch)
        self._step(events.Appended(self._clock.monotonic_ms(), batch.end, node.epoch))
        self._log.want_flush()
        return batch

    async def committed(self, end: Offset) -> None:
        """Returns when everything before `end` is committed and published on this node."""
        await self._metadata.published(end)

    # Snapshots

    def quorum_state_at(self, end: Offset) -> tuple[int, VotersRecord | None]:
        """(kraft.version, voters) before `end`; no voters when they are given in the configuration."""
        newest = next(each for each in reversed(self._history) if each.offset <= end)
        return newest.kraft_version, newest.voters.to_record() if newest.kraft_version > 0 else None

    def size_bytes(self) -> int:
        return self._log.size_bytes()

    def forget_before(self, to: Offset) -> None:
        self._log.forget_before(to)

    # Other nodes

    def asked(self, message: events.Ask) -> asyncio.Future[events.Reply]:
        """A node sent a request; the future holds the answer."""
        answer: asyncio.Future[events.Reply] = asyncio.get_running_loop().create_future()
        self._step(events.Asked(self._clock.monotonic_ms(), message), answer)
        return answer

    def answered(self, by: NodeId, message: events.Reply) -> None:
        """A node answered what `send` sent it."""
        self._step(events.Answered(self._clock.monotonic_ms(), by, message))

    def replica_fetched(self, replica: ReplicaKey, end: Offset) -> None:
        """A replica fetched at `end`: it has everything before."""
        self._step(events.ReplicaFetched(self._clock.monotonic_ms(), replica, end))

    # Describing

    def describe(self) -> DescribeQuorumResponse:
        """The reply to DescribeQuorum; only the leader knows it."""
        node = self._opened
        if not self.leading:
            partition = DescribeQuorumResponse.PartitionData(
                error_code=NOT_LEADER_OR_FOLLOWER.code,
                error_message="This node does not lead the metadata quorum.",
                leader_id=node.leader,
                leader_epoch=node.epoch,
                high_watermark=-1,
            )
            nodes: list[DescribeQuorumResponse.Node] = []
        else:
            partition = self._describe_leading(node)
            nodes = [_described_node(voter) for voter in node.voters]
        topic = DescribeQuorumResponse.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        return DescribeQuorumResponse(error_message=None, topics=[topic], nodes=nodes)

    def _describe_leading(self, node: QuorumNode) -> DescribeQuorumResponse.PartitionData:
        leadership = node.leadership
        assert leadership is not None, "a leader leads"
        voters = [self._described(voter.key) for voter in node.voters]
        observers = [self._described(key) for key in leadership.replicas if not node.voters.has(key)]
        return DescribeQuorumResponse.PartitionData(
            error_message=None,
            leader_id=node.leader,
            leader_epoch=node.epoch,
            high_watermark=-1 if node.high_watermark is None else node.high_watermark,
            current_voters=voters,
            observers=observers,
        )

    def _described(self, key: ReplicaKey) -> DescribeQuorumResponse.ReplicaState:
        node, now = self._opened, self._clock.now_ms()
        if key.id == self._me.key.id:
            return DescribeQuorumResponse.ReplicaState(
                replica_id=key.id,
                replica_directory_id=key.directory,
                log_end_offset=self._log.end,
                last_fetch_timestamp=now,
                last_caught_up_timestamp=now,
            )
        assert node.leadership is not None, "a leader leads"
        progress = node.leadership.progress(key)
        return DescribeQuorumResponse.ReplicaState(
            replica_id=key.id,
            replica_directory_id=key.directory,
            log_end_offset=progress.end,
            last_fetch_timestamp=self._wall(progress.fetched_ms),
            last_caught_up_timestamp=self._wall(progress.caught_up_ms),
        )

    def _wall(self, monotonic_ms: float | None) -> int:
        """A moment of the monotonic clock as a timestamp; -1 for never."""
        if monotonic_ms is None:
            return -1
        return int(self._clock.now_ms() - (self._clock.monotonic_ms() - monotonic_ms))


def _drop(to: NodeId, message: events.Ask) -> None:
    log.debug("nobody carries %s to node %d", message.__class__.__name__, to)


def _described_node(voter: Voter) -> DescribeQuorumResponse.Node:
    return DescribeQuorumResponse.Node(
        node_id=voter.key.id,
        listeners=[
            DescribeQuorumResponse.Listener(name=name, host=host, port=port) for name, host, port in voter.endpoints
        ],
    )
