"""The heart of the quorum on one node: steps `QuorumNode`, carries out its effects in order, and owns the log.

An event is stepped only when all effects of the one before are carried out. A vote has to be on the platter before it
is given, so what follows the writing of `quorum-state` waits; everything else is done at once, whatever the disk does:
the log takes appends in memory and writes them in their order. An effect that cannot be carried out, whatever the
reason, ends this node: one that went on would believe to lead, or to follow, and do neither. Other nodes are the matter
of `quorum_driver`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.snapshot import image_of
from penstock.model.errors import BROKER_NOT_AVAILABLE, KAFKA_STORAGE_ERROR, NOT_CONTROLLER, Refused, StorageFailed
from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.quorum import events
from penstock.quorum.history import QuorumVersion, VoterHistory
from penstock.quorum.state import ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet
from penstock.server.loops.duty import Unforeseen, duty, reason
from penstock.server.quorum.log import Decoded, QuorumLog
from penstock.server.quorum.pace import QuorumPace
from penstock.server.quorum.state_file import QUORUM_STATE, encode_quorum_state
from penstock.transport.deadline import Deadline

if TYPE_CHECKING:
    from penstock.metadata.records import VersionedRecord
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Files, Offload
    from penstock.protocol.disk.raft_records import VotersRecord
    from penstock.quorum.node import QuorumNode
    from penstock.server.quorum.metadata_driver import LogBatch, MetadataDriver
    from penstock.server.quorum.snapshot_file import Checkpoint, SnapshotId

log = logging.getLogger("penstock.quorum")

NO_PART: Final = "this node takes no part in the quorum any more"


class Standing(NamedTuple):
    """What the broker of this node may know of the quorum without asking: a value, replaced as a whole."""

    leading: bool = False
    leader: NodeId = NO_NODE
    kraft_version: int = 0


class QuorumCore:
    """The machine, its log and its timer. What leaves the node goes through `_send`; `_rested` sees every change."""

    def __init__(
        self,
        files: Files,
        offload: Offload,
        clock: Clock,
        directory: str,
        me: Voter,
        settings: BrokerSettings,
        metadata: MetadataDriver,
        on_fatal: Callable[[Exception], None],
    ) -> None:
        self._files, self._offload, self._clock = files, offload, clock
        self._me, self._settings, self._metadata, self._on_fatal = me, settings, metadata, on_fatal
        self.directory = directory
        self._log = QuorumLog(files, offload, clock, directory, settings, self._fail)
        self._log.on_flushed(self._flushed)
        self.pace = QuorumPace()
        self._node: QuorumNode | None = None
        self._events: deque[tuple[events.Event, asyncio.Future[events.Reply] | None]] = deque()
        self._effects: deque[events.Effect] = deque()
        self._asker: asyncio.Future[events.Reply] | None = None
        self._busy = self._starting = self._failed = self._closing = self._closed = False
        self._doing: events.Event | events.Effect | None = None
        self._failure: Exception | None = None
        self._begun: Epoch | None = None
        self.standing = Standing()
        self._timer: Deadline | None = None
        self._timer_ms: float | None = None
        self._idle: list[asyncio.Future[None]] = []
        self._lead: Callable[[], None] = lambda: None
        self._resign: Callable[[], None] = lambda: None
        self._follow: Callable[[NodeId, Epoch], None] = lambda _leader, _epoch: None
        self._send: Callable[[NodeId, events.Ask], None] = lambda _to, _ask: None
        self._rested: Callable[[QuorumNode], None] = lambda _node: None
        self._failing: Callable[[], None] = lambda: None

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

    # Reading back

    def _read_disk(self) -> VoterHistory:
        """Brings metadata and voters to the end of the log."""
        snapshot = self._log.open()
        history = VoterHistory.of(self._configured_voters(), 0)
        if snapshot is not None:
            content, end = snapshot.content, snapshot.id.end
            if content.voters is not None:
                history.add(version_of(content, end, self._configured_voters()))
            self._metadata.last_timestamp = content.last_contained_timestamp
            self._metadata.replace(image_of(content.records, Offset(end - 1), snapshot.id.epoch))
        for batch, entries in self._log.replay(self._metadata.published_end):
            self._metadata.learned(batch)
            history.read(entries)
        return history

    def _configured_voters(self) -> VoterSet:
        """Voters of a quorum whose log names none: those of the configuration, or nobody yet."""
        name = next(iter(self._settings.controller_listener_names), "CONTROLLER")
        return VoterSet(
            Voter(ReplicaKey(voter.node_id), (VoterEndpoint(name, voter.host, voter.port),))
            for voter in self._settings.quorum_voters
        )

    # Stepping

    def _step(self, event: events.Event, asker: asyncio.Future[events.Reply] | None = None) -> None:
        self._events.append((event, asker))
        self._run()

    def _run(self) -> None:
        """Steps events and carries out effects until none is left or one has to wait for the disk."""
        if self._busy or self._failed:
            return
        self._busy = True
        try:
            if self._obey():
                self._busy = False
                self._came_to_rest(self._opened)
        except Exception as broken:
            self._broke(self._doing, broken)

    def _obey(self) -> bool:
        """Whether everything is done; False when the rest waits for the disk."""
        node = self._opened
        while not self._failed:
            while self._effects:
                effect = self._effects.popleft()
                self._doing = effect
                if isinstance(effect, events.PersistState) and not self._starting:
                    duty(self._persist_then_run(effect), name="quorum-state")
                    return False
                self._carry_out(effect)
            if not self._events:
                return True
            event, self._asker = self._events.popleft()
            self._doing = event
            self._effects.extend(node.step(event))
        return False

    def _came_to_rest(self, node: QuorumNode) -> None:
        """Everything that was heard is acted on."""
        self._set_timer(None if self._closing else node.deadline)
        self._stand()
        self._rested(node)
        if self._idle and not self._busy:
            waiting, self._idle = self._idle, []
            _release(waiting)

    def _stand(self) -> None:
        standing = Standing(self.leading, self.leader, self.kraft_version)
        if standing != self.standing:
            self.standing = standing

    async def idle(self) -> None:
        """Returns when everything heard has been acted on, and is on the disk where it has to be."""
        while self._busy and not self._failed:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future

    async def _persist_then_run(self, effect: events.PersistState) -> None:
        try:
            await self._log.do(self._files.write_atomic, *self._state_file(effect))
        except (OSError, StorageFailed) as failure:
            self._fail(StorageFailed(self.directory, f"quorum-state cannot be written: {failure}"))
            return
        except Exception as broken:
            self._broke(effect, broken)
            return
        self._busy = False
        self._run()

    def _state_file(self, effect: events.PersistState) -> tuple[str, bytes]:
        newest = self._opened.history.newest
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
                self.pace.resigned()
                self._resign()
                self._metadata.resigned(Refused(NOT_CONTROLLER, "this node no longer leads the metadata quorum"))

    def _append_control(self, epoch: Epoch, entries: Sequence[tuple[int, bytes]]) -> None:
        self._learned([self._log.append_control(list(entries), epoch)])
        if self._begun != epoch:
            # Only now: the first record of an epoch is the leader's own.
            self._begun = epoch
            self._lead()

    def _learned(self, decoded: Sequence[Decoded]) -> None:
        """Batches are in the log."""
        for batch, _ in decoded:
            self._metadata.learned(batch)
        newest = decoded[-1].batch
        entries = tuple(entry for _, logged in decoded for entry in logged)
        # Not queued: nothing that is may be judged by a log that was shorter.
        appended = events.Appended(self._clock.monotonic_ms(), newest.end, newest.epoch, entries)
        try:
            self._effects.extend(self._opened.step(appended))
        except Exception as broken:
            self._broke(appended, broken)
            return
        self._run()

    def _committed_to(self, offset: Offset) -> None:
        self.pace.committed(offset, self._clock.monotonic_ms())
        self._log.commit_to(offset)
        self._metadata.commit_to(offset)

    def _flushed(self, end: Offset) -> None:
        self._step(events.Flushed(self._clock.monotonic_ms(), end))

    def disk_failed(self, failure: StorageFailed) -> None:
        self._fail(failure)

    def _broke(self, doing: events.Event | events.Effect | None, broken: Exception) -> None:
        """Something that is never expected to fail did."""
        why = reason(type(doing).__name__, broken)
        if isinstance(why, Unforeseen):
            log.error("the metadata quorum is broken", exc_info=broken)
        self._fail(why)

    def _fail(self, why: Exception) -> None:
        """The disk, the log or the machine is broken: this node can take no further part.

        `on_fatal` hears of it, or whoever starts this node and is still waiting for that.
        """
        if self._failed:
            return
        self._failed = True
        self.standing = self.standing._replace(leading=False)
        log.error("the metadata quorum stops on this node: %s", why)
        try:
            self._set_timer(None)
            _release(self._idle)
            self._refuse_askers()
            self._failing()
            self._resign()
            self._metadata.abandon(Refused(NOT_CONTROLLER, "the metadata log of this node has failed"))
        finally:
            self._failure = why
            if not self._starting:
                self._on_fatal(why)

    def _refuse_askers(self) -> None:
        for asker in (self._asker, *(each for _, each in self._events)):
            if asker is not None and not asker.done():
                asker.set_exception(Refused(BROKER_NOT_AVAILABLE, NO_PART))
        self._events.clear()

    @property
    def _opened(self) -> QuorumNode:
        assert self._node is not None, "the quorum is started before it is used"
        return self._node

    # Time

    def _set_timer(self, deadline: float | None) -> None:
        if self._failed:
            deadline = None
        if deadline == self._timer_ms:
            return
        self._timer_ms = deadline
        if self._timer is None:
            self._timer = Deadline(asyncio.get_running_loop(), self._clock, self._tick)
        if deadline is None:
            self._timer.cancel()
        else:
            self._timer.set(deadline)

    def _tick(self) -> None:
        self._timer_ms = None
        self._step(events.Tick(self._clock.monotonic_ms()))

    # Who leads

    @property
    def leading(self) -> bool:
        """Whether this node leads, and the log says so."""
        node = self._node
        return node is not None and node.role is Role.LEADER and self._begun == node.epoch and not self._failed

    @property
    def following(self) -> bool:
        """Whether this node has a leader that it heard of lately, and looks for no other."""
        return self._opened.role is Role.FOLLOWER and not self._failed

    @property
    def leader(self) -> NodeId:
        """Who leads, as far as this node knows; -1 for nobody."""
        return self._opened.leader

    @property
    def epoch(self) -> Epoch:
        return self._opened.epoch

    @property
    def state_name(self) -> str:
        """What this node is to the quorum, as Kafka spells it: one that follows without a vote is an observer."""
        node = self._opened
        observes = node.role is Role.FOLLOWER and self._me.key.id not in node.voters.ids
        return "observer" if observes else node.role.value

    @property
    def voted(self) -> NodeId:
        """Whom this node has voted for in its epoch; -1 for nobody."""
        return self._opened.voted.id

    @property
    def voters(self) -> VoterSet:
        return self._opened.voters

    # The controller's log

    @property
    def end(self) -> Offset:
        """Where the next record goes."""
        return self._log.end

    @property
    def high_watermark(self) -> Offset | None:
        return None if self._node is None else self._node.high_watermark

    @property
    def kraft_version(self) -> int:
        return 0 if self._node is None else self._node.kraft_version

    @property
    def syncs(self) -> int:
        """How many syncs the log has had."""
        return self._log.syncs

    def append(self, records: Sequence[VersionedRecord]) -> LogBatch:
        """One batch of metadata records: assigned when this returns, written and synced with whoever else waits."""
        if not self.leading:
            raise Refused(NOT_CONTROLLER, "this node does not lead the metadata quorum")
        if self._log.crowded:
            raise Refused(KAFKA_STORAGE_ERROR, "too many changes wait for the disk of the metadata log")
        batch = self._log.append_records(records, self._opened.epoch)
        self.pace.appended(len(records), batch.end, self._clock.monotonic_ms())
        self._learned([Decoded(batch, [])])
        self._log.want_flush()
        return batch

    async def committed(self, end: Offset) -> None:
        """Returns when everything before `end` is committed and published; Refused when this node leads no more."""
        await self._metadata.published(end, as_controller=True)

    # Snapshots

    @property
    def snapshots(self) -> list[SnapshotId]:
        """The snapshots on the disk, the oldest first."""
        return list(self._log.snapshots)

    def quorum_state_at(self, end: Offset) -> tuple[int, VotersRecord | None]:
        """(kraft.version, voters) before `end`; no voters when they are given in the configuration."""
        found = self._opened.history.at(end)
        return found.kraft_version, found.voters.to_record() if found.kraft_version > 0 else None

    def size_bytes(self) -> int:
        return self._log.size_bytes()

    def forget_before(self, to: Offset) -> None:
        self._log.forget_before(to)
        self._opened.history.forget_before(to)

    def snapshot_added(self, snapshot: SnapshotId) -> None:
        self._log.snapshot_added(snapshot)

    def snapshot_removed(self, snapshot: SnapshotId) -> None:
        self._log.snapshot_removed(snapshot)
        self._log.put(_gone, self._files, f"{self.directory}/{snapshot.file_name}")


def _gone(files: Files, path: str) -> None:
    if files.exists(path):
        files.remove(path)


def _release(waiting: Sequence[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)


def version_of(content: Checkpoint, end: Offset, configured: VoterSet) -> QuorumVersion:
    """What a snapshot says of the quorum; nothing where the voters are given in the configuration."""
    voters = configured if content.voters is None else VoterSet.of_record(content.voters)
    return QuorumVersion(end, content.kraft_version or 0, voters)
