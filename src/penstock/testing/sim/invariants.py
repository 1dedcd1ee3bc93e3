"""What must never happen, looked at after every event on the node that it happened to.

R (the quorum): a voter gives one vote in an epoch, through all its lives; an epoch has one leader; epochs do not fall;
what is committed is the same everywhere. I (partitions): an epoch has one leader; a leader's high watermark does not
fall; a committed batch has the same bytes on every replica, for ever, and no replica that has it cuts it away, whether
it has heard that it is committed or not; the leader is in sync, and who is in sync is a replica that is not fenced.
Images: equal at equal offsets. D (deletion): a log begins where `truth.py`
allows it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from penstock.model.errors import Refused
from penstock.model.ids import NO_NODE
from penstock.quorum.state import Role
from penstock.storage.epochs import NO_EPOCH
from penstock.testing.sim.replicas import (
    batches,
    forgotten_producers,
    metadata_of,
    partitions_of,
    quorum_of,
    readable,
    records_of,
    voter_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.metadata.delta import Delta
    from penstock.metadata.entities import PartitionImage
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import TopicSettings
    from penstock.model.ids import PartitionKey
    from penstock.quorum.node import QuorumNode
    from penstock.server.node import Node
    from penstock.server.partitions.hosted import Hosted
    from penstock.storage.checkpoints import EpochStart
    from penstock.storage.log import Log
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.replicas import Piece
    from penstock.testing.sim.story import Story
    from penstock.testing.sim.truth import PartitionTruth, Truth


class Seen:
    """What was last seen of one replica in one life of its node."""

    __slots__ = (
        "epoch", "epochs", "high_watermark", "leading", "log", "settings", "start", "truth", "verified", "written",
    )  # fmt: skip

    def __init__(self, log: Log | None, truth: PartitionTruth) -> None:
        self.log, self.truth = log, truth
        self.settings: TopicSettings | None = None
        self.start = -1
        self.written = 1 << 62  # a log that is new here is looked at as one that was cut
        self.epochs: list[EpochStart] = []  # which leaders wrote it
        self.epoch = -1
        self.leading = False
        self.high_watermark = -1
        self.verified = -1  # its committed batches were compared up to here

    def note_written(self, log: Log) -> None:
        self.written = log.written
        if not self.epochs or self.epochs[-1].epoch != log.epochs.latest:
            self.epochs = log.epochs.entries()

    def epoch_at(self, offset: int) -> int:
        return max((entry.epoch for entry in self.epochs if entry.start <= offset), default=NO_EPOCH)


class LifeSeen:
    """What was last seen of one life of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.quorum_epoch = -1
        self.quorum_high_watermark = -1
        self.published = -1
        self.listening = False
        self.replicas: dict[PartitionKey, Seen] = {}
        self.by_hosted: dict[Hosted, Seen] = {}
        """The same, found without the hash of a key: nearly all that happens is that nothing has changed."""


class Invariants:
    """Holds what is known of the whole cluster, and compares every node with it."""

    def __init__(self, story: Story, truth: Truth, *, producers_expire: bool = False) -> None:
        self._story, self._truth, self._producers_expire = story, truth, producers_expire
        self._lives: dict[SimLoop, tuple[Machine, LifeSeen]] = {}
        self._votes: dict[tuple[int, int], int] = {}  # (voter, epoch): the candidate that has its vote
        self._voted_last: dict[int, int] = {}
        self._quorum_leaders: dict[int, int] = {}
        self._leaders: dict[tuple[PartitionKey, int], int] = {}
        self._committed: dict[PartitionKey, dict[int, Piece]] = {}
        self._ends: dict[PartitionKey, int] = {}
        self._images: dict[int, bytes] = {}
        self.on_batch: Callable[[PartitionTruth, bytes], None] | None = None
        """Is told of every batch when it is first seen to be committed."""

        self.on_opened: Callable[[Machine, Log], None] | None = None
        """Is told of every log that was opened or cut, unless the disk of its machine is in trouble."""

        self.checks = 0

    def node_made(self, machine: Machine, node: Node) -> None:
        assert machine.loop is not None, "a node is made on its loop"
        life = (machine, LifeSeen(node))
        for loop in machine.loops:
            self._lives[loop] = life

    def node_ending(self, machine: Machine) -> None:
        """A last look: what it answered in its last moment is on its way."""
        assert machine.loop is not None, "it runs"
        life = self._lives.get(machine.loop)
        if life is not None:
            self._look_at_control(*life)
            self._look_at_broker(*life)

    def disk_replaced(self, node_id: int) -> None:
        """Whoever has this node id now is another voter."""
        self._voted_last.pop(node_id, None)

    def node_ended(self, machine: Machine) -> None:
        assert machine.loop is not None, "it ran"
        for loop in machine.loops:
            self._lives.pop(loop, None)

    def after_instant(self, touched: list[SimLoop]) -> None:
        lives = self._lives
        for loop in touched:
            life = lives.get(loop)
            if life is None:
                continue
            self.checks += 1
            # Each part of a node lives on its own loop: what the other has is as it was.
            if loop is life[0].control_loop:
                self._look_at_control(*life)
            else:
                self._look_at_broker(*life)

    def _look_at_control(self, machine: Machine, seen: LifeSeen) -> None:
        node = seen.node
        quorum = quorum_of(node)
        if quorum is None:
            return
        if not seen.listening:
            metadata = metadata_of(node)
            assert metadata is not None, "it is built before the quorum"
            metadata.on_publish(lambda image, delta: self._published(machine, seen, image, delta))
            seen.listening = True
        voter = voter_of(quorum)
        if voter is not None:
            self._look_at_quorum(machine, seen, voter)

    def _look_at_broker(self, machine: Machine, seen: LifeSeen) -> None:
        partitions = partitions_of(seen.node)
        if partitions is None:
            return
        by_hosted = seen.by_hosted
        if len(by_hosted) > len(partitions):
            for before, last in by_hosted.items():
                if before.gone and last.leading and last.log is not None:
                    last.truth.went(last.log.written)
            by_hosted.clear()
        for hosted in partitions:
            known, state, log = by_hosted.get(hosted), hosted.state, hosted.log
            if known is None:
                known = seen.replicas.get(hosted.key)
                if known is not None:
                    by_hosted[hosted] = known
            # Nearly all of them are as they were; a call for each would take a tenth of the whole run.
            if (
                known is None
                or known.log is not log
                or known.high_watermark != state.high_watermark
                or known.epoch != state.epoch
                or (log is not None and (known.start != log.log_start or log.written < known.written))
            ):
                self._look_at_replica(machine, seen, hosted)
            elif log is not None and log.written != known.written:
                known.note_written(log)

    # -- the quorum

    def _look_at_quorum(self, machine: Machine, seen: LifeSeen, voter: QuorumNode) -> None:
        epoch = voter.epoch
        if seen.quorum_epoch < 0:
            self._check_memory(machine, voter)
        if epoch != seen.quorum_epoch:
            if epoch < seen.quorum_epoch:
                self._bad(machine, f"its quorum epoch fell from {seen.quorum_epoch} to {epoch}")
            seen.quorum_epoch = epoch
        if voter.role is Role.CANDIDATE or voter.role is Role.LEADER:
            self._count_votes(machine, voter)
        high_watermark = voter.high_watermark
        if high_watermark is not None and high_watermark != seen.quorum_high_watermark:
            if high_watermark < seen.quorum_high_watermark:
                self._bad(machine, f"R6: its metadata high watermark fell to {high_watermark}")
            seen.quorum_high_watermark = high_watermark

    def _count_votes(self, machine: Machine, voter: QuorumNode) -> None:
        """Votes count when a candidate has them: one that was decided and not sent may be forgotten in a crash."""
        epoch, granted = voter.epoch, voter._ballot.granted
        if voter.leadership is not None:
            leader = self._quorum_leaders.setdefault(epoch, machine.node_id)
            if leader != machine.node_id:
                self._bad(machine, f"it leads the quorum in epoch {epoch}, which {leader} led")
        if len(granted) < 2:
            return
        for node_id in granted:
            candidate = self._votes.get((node_id, epoch))
            if candidate is None:
                candidate = self._votes[node_id, epoch] = machine.node_id
                self._voted_last[node_id] = max(epoch, self._voted_last.get(node_id, -1))
            if candidate != machine.node_id:
                self._bad(machine, f"R1: {node_id} voted for it in epoch {epoch}, and for {candidate}")

    def _check_memory(self, machine: Machine, voter: QuorumNode) -> None:
        """A new life knows of the last vote that somebody has from the lives before."""
        last = self._voted_last.get(machine.node_id)
        if last is None or voter.epoch > last:
            return
        if voter.epoch < last:
            self._bad(machine, f"R1: it voted in epoch {last} and begins anew in {voter.epoch}")
            return
        candidate = self._votes[machine.node_id, last]
        remembers = voter.leader != NO_NODE or voter.voted.id == candidate or voter.role is Role.RESIGNED
        if not remembers:
            self._bad(machine, f"R1: it has forgotten that it voted for {candidate} in epoch {last}")

    def _published(self, machine: Machine, seen: LifeSeen, image: ClusterImage, delta: Delta) -> None:
        if machine.loop is None or machine.loop.dead:
            return
        if image.offset < seen.published:
            self._bad(machine, f"it published offset {image.offset} after {seen.published}")
        seen.published = image.offset
        looks = signature(image)
        if self._images.setdefault(image.offset, looks) != looks:
            self._bad(machine, f"its image at offset {image.offset} is not that of others")
        for topic_id, numbers in delta.partitions.items():
            topic = image.topics.get(topic_id)
            for number in sorted(numbers):
                if topic is not None:
                    self._check_partition(machine, image, f"{topic.name}-{number}", topic.partitions[number])

    def _check_partition(self, machine: Machine, image: ClusterImage, name: str, partition: PartitionImage) -> None:
        isr, replicas, elr, leader = partition.isr, partition.replicas, partition.elr, partition.leader
        if leader >= 0 and leader not in isr:
            self._bad(machine, f"I2: {name} is led by {leader}, which is not in sync: {isr}")
        if not set(isr) <= set(replicas) or set(isr) & set(elr):
            self._bad(machine, f"I2: {name} has replicas {replicas}, in sync {isr}, eligible {elr}")
        if not (isr or elr or partition.last_known_elr):
            self._bad(machine, f"I2: {name} has nobody in sync, nobody eligible and nobody who was")
        for member in isr if leader >= 0 else ():
            broker = image.brokers.get(member)
            if broker is None or broker.fenced:
                self._bad(machine, f"I8: {name} has {member} in sync, which is fenced")

    # -- partitions

    def _look_at_replica(self, machine: Machine, life: LifeSeen, hosted: Hosted) -> None:
        state = hosted.state
        log = hosted.log
        seen = life.replicas.get(hosted.key)
        if seen is None or seen.log is not log:
            # New here, or its log is another one: it was moved to another directory, or went away and came back.
            seen = Seen(log, self._truth.of(hosted.key, hosted.name))
            life.replicas[hosted.key] = life.by_hosted[hosted] = seen
        if log is not None and log.log_start != seen.start:
            self._start_moved(machine, hosted, seen, log)
        seen.settings = hosted.settings
        if log is not None:
            if log.written < seen.written and log.failure is None:
                self._check_cut(machine, hosted, seen, log)
                if not machine.troubled:
                    self._check_producers(machine, log)
                    if self.on_opened is not None:
                        self.on_opened(machine, log)
            seen.note_written(log)
        if log is not None and log.written < seen.verified:
            self._bad(machine, f"I3: {hosted.name}: cut to {log.written}, though {seen.verified} was committed")
            seen.verified = log.written
        epoch, leading, high_watermark = state.epoch, state.leading, state.high_watermark
        if epoch != seen.epoch or leading != seen.leading:
            self._role_changed(machine, hosted, seen)
        elif high_watermark == seen.high_watermark:
            return
        if leading and epoch == seen.epoch and seen.leading and high_watermark < seen.high_watermark:
            self._bad(machine, f"I4: {hosted.name}: the high watermark fell to {high_watermark} in epoch {epoch}")
        seen.epoch, seen.leading, seen.high_watermark = epoch, leading, high_watermark
        log = readable(hosted)
        if log is None:
            return
        if not machine.troubled and not log.log_start <= high_watermark <= log.written:
            self._bad(machine, f"I4: {hosted.name}: {log.log_start} <= {high_watermark} <= {log.written} does not hold")
            return
        # Also where a disk of the machine is broken: what this leader commits may be gone when others could tell of it.
        with machine.disk.looked_at():
            self._compare(machine, hosted, seen, log)

    def _role_changed(self, machine: Machine, hosted: Hosted, seen: Seen) -> None:
        state = hosted.state
        if state.epoch < seen.epoch:
            self._bad(machine, f"I1: {hosted.name}: the leader epoch fell from {seen.epoch} to {state.epoch}")
        if state.leading:
            leader = self._leaders.setdefault((hosted.key, state.epoch), machine.node_id)
            if leader != machine.node_id:
                self._bad(machine, f"I1: {hosted.name} is led by {machine.node_id} and {leader} in epoch {state.epoch}")

    def _compare(self, machine: Machine, hosted: Hosted, seen: Seen, log: Log) -> None:
        """Committed batches are the same on all replicas; the first to call one committed says what it is."""
        if self._truth.forgiven(hosted.name.topic):
            return
        high_watermark = hosted.state.high_watermark
        start = max(seen.verified, log.log_start)
        if high_watermark <= start:
            return
        known = self._committed.setdefault(hosted.key, {})
        end, truth = self._ends.get(hosted.key, 0), seen.truth
        try:
            for piece, body in batches(log, start, high_watermark):
                there = known.get(piece.base)
                if there is None and (piece.base >= end or truth.compacted):
                    known[piece.base] = piece
                    truth.learn(records_of(body), piece.end, self._story.clock())
                    if self.on_batch is not None:
                        self.on_batch(truth, body)
                elif there is None:
                    self._bad(machine, f"I3: {hosted.name}: a batch begins at {piece.base}, where others have none")
                elif there != piece and not truth.compacted:
                    self._bad(machine, f"I5: {hosted.name}: {_told(piece)} here, {_told(there)} elsewhere")
                seen.verified = piece.end
        except (OSError, Refused) as broken:
            self._bad(machine, f"{hosted.name}: committed records cannot be read: {broken}")
        self._ends[hosted.key] = max(end, seen.verified)

    def _check_cut(self, machine: Machine, hosted: Hosted, seen: Seen, log: Log) -> None:
        """A log was cut. Two logs whose leader of some offset is the same are the same up to it: by that it is known
        how much of what is committed was there before."""
        had = min(seen.written, self._ends.get(hosted.key, 0))
        if log.written >= had or self._truth.forgiven(hosted.name.topic):
            return
        batches_there = self._committed.get(hosted.key, {}).values()
        last = next((piece for piece in batches_there if piece.base < had <= piece.end), None)
        if last is not None and last.epoch == seen.epoch_at(had - 1):
            self._bad(machine, f"I3: {hosted.name}: cut to {log.written}, though it had {had}, which is committed")

    def _check_producers(self, machine: Machine, log: Log) -> None:
        """After a start or a cut a log remembers its producers, or it would take their last batches once more."""
        try:
            for words in forgotten_producers(log, may_expire=self._producers_expire)[:1]:
                self._bad(machine, f"I9: {words}")
        except (OSError, Refused) as broken:
            self._bad(machine, f"{log.name}: its batches cannot be read: {broken}")

    def _start_moved(self, machine: Machine, hosted: Hosted, seen: Seen, log: Log) -> None:
        """What lies before a log's start is gone from this replica: it has to be allowed by what was in force."""
        start, seen.start = log.log_start, log.log_start
        if self._truth.forgiven(hosted.name.topic) or machine.clock is None:
            return
        in_force = [hosted.settings] if seen.settings is None else [hosted.settings, seen.settings]
        objections = [
            seen.truth.objection(start, settings, log.size_bytes, machine.clock.now_ms()) for settings in in_force
        ]
        if None not in objections:
            self._bad(machine, f"D: {objections[0]}")

    def _bad(self, machine: Machine, what: str) -> None:
        self._story.violated(f"{machine.host}: {what}")


def signature(image: ClusterImage) -> bytes:
    """What two equal images have in common and different ones have not."""
    parts = (
        sorted((topic.name, topic.id, tuple(topic.partitions)) for topic in image.topics.values()),
        sorted(image.brokers.items()),
        sorted(image.features.items()),
        sorted((key, sorted(values.items())) for key, values in image.configs.items()),
        image.producer_ids,
    )
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def _told(piece: Piece) -> str:
    return f"offsets {piece.base} to {piece.end} of epoch {piece.epoch} ({piece.digest.hex()[:8]})"
