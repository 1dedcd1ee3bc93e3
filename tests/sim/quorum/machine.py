"""One node of the simulated quorum: the real machine, and a model of its log and its disk."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.quorum.events import Started
from penstock.quorum.fetching import LogPoint, LogView
from penstock.quorum.history import LoggedEntry, QuorumVersion, VoterHistory
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import QuorumSettings, QuorumState, ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet
from penstock.storage.checkpoints import EpochStart
from penstock.storage.epochs import Epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SETTINGS = QuorumSettings(election_timeout_ms=200, fetch_timeout_ms=400, election_backoff_max_ms=200)
DATA = -1


class Entry(NamedTuple):
    """A record: a control record of some kind, or data."""

    epoch: int
    kind: int
    value: bytes


class Parked(NamedTuple):
    """A fetch that waits at the end of a leader's log."""

    replica: ReplicaKey
    number: int
    epoch: Epoch
    end: int
    high_watermark: int


def key_of(number: int) -> ReplicaKey:
    return ReplicaKey(NodeId(number), Uuid(bytes([number]) * 16))


def voter_of(number: int) -> Voter:
    return Voter(key_of(number), (VoterEndpoint("CONTROLLER", "h", number),))


class Machine:
    """`log` is kept whole, so that it can be compared; what lies before `start` is only in a snapshot."""

    def __init__(self, number: int, voters: VoterSet, rng: Random) -> None:
        self.number, self.formatted, self.rng = number, voters, rng
        self.me = voter_of(number)
        self.key = self.me.key
        self.log: list[Entry] = []
        self.start = 0
        self.snapshot: tuple[LogPoint, QuorumVersion] | None = None
        self.disk: list[Entry] = []
        self.disk_state: QuorumState | None = None
        self.life = 0
        self.up = False
        self.held: list[tuple[Callable[..., None], tuple[object, ...]]] | None = None
        self.node: QuorumNode
        self.epochs: Epochs

    @property
    def end(self) -> Offset:
        return Offset(len(self.log))

    @property
    def last_epoch(self) -> Epoch:
        return Epoch(max(self.epochs.latest, 0))

    def power_on(self) -> None:
        """Begins a life with what is on the disk."""
        self.life += 1
        self.up, self.held = True, None
        self.fetch_number = self.fetching = 0
        self.fetched_at = 0.0
        self.patience = False
        self.flushing = False
        self.flush_again = False
        self.after_flush: list[int] = []
        self.timer_at: float | None = None
        self.parked: dict[ReplicaKey, Parked] = {}
        self.stance: object = None
        self.told: object = None
        self.high_watermark = 0
        self.silent = False
        self.log = list(self.disk)
        self._index()
        version = QuorumVersion(Offset(0), 1 if len(self.formatted) else 0, self.formatted)
        history = VoterHistory(version if self.snapshot is None else self.snapshot[1])
        history.read(self.controls(self.start))
        self.node = QuorumNode(self.me, history, self.rng, SETTINGS)

    def started(self, now: float) -> Started:
        return Started(now, self.disk_state, self.end, self.last_epoch)

    def controls(self, start: int) -> list[LoggedEntry]:
        """The control records from an offset on."""
        found = enumerate(self.log[start:], start)
        return [LoggedEntry(Offset(at), entry.kind, entry.value) for at, entry in found if entry.kind != DATA]

    def _index(self) -> None:
        self.epochs = Epochs([], lambda: Offset(len(self.log)))
        if self.snapshot is not None:
            self.epochs.assign(self.snapshot[0].epoch, self.snapshot[0].end)
        self._index_from(self.start)

    def _index_from(self, start: int) -> None:
        latest = self.epochs.latest
        for at in range(start, len(self.log)):
            epoch = self.log[at].epoch
            if epoch != latest:
                self.epochs.assign(Epoch(epoch), Offset(at))
                latest = Epoch(epoch)

    def append(self, entries: Sequence[Entry]) -> None:
        at = len(self.log)
        self.log.extend(entries)
        self._index_from(at)

    def truncate(self, to: int) -> None:
        del self.log[to:]
        self.epochs.truncate_from_end(to)
        if self.snapshot is not None and to == self.start:
            self.epochs.assign(self.snapshot[0].epoch, self.snapshot[0].end)

    def view(self) -> LogView:
        point = None if self.snapshot is None else self.snapshot[0]
        return LogView(Offset(self.start), LogPoint(self.end, self.last_epoch), self.epochs.end_of, point, point)

    def take_snapshot(self) -> None:
        """Everything committed goes into a snapshot, and the log before it goes."""
        end = Offset(self.high_watermark)
        if end <= self.start:
            return
        self.snapshot = (LogPoint(end, Epoch(self.log[end - 1].epoch)), self.node.history.at(end))
        self.start = end
        self.disk = list(self.log) if self.disk == self.log[: len(self.disk)] and len(self.disk) < end else self.disk
        self.epochs.truncate_from_start(end)
        if not self.epochs.entries() or self.epochs.entries()[-1].start > end:
            self._index()
        self.node.history.forget_before(end)

    def install(self, log: list[Entry], snapshot: tuple[LogPoint, QuorumVersion]) -> None:
        """A snapshot of another takes the place of the log; it is on the disk when it does."""
        self.log, self.start, self.snapshot = log, snapshot[0].end, snapshot
        self.disk = list(log)
        self.epochs = Epochs([EpochStart(snapshot[0].epoch, snapshot[0].end)], lambda: Offset(len(self.log)))

    def power_off(self, *, keeps_unsynced: bool, forgets_state: bool) -> None:
        """The power is cut; some of what was not synced may be on the disk all the same."""
        self.up, self.held = False, None
        if keeps_unsynced and len(self.log) >= self.start:
            self.disk = list(self.log)
        if forgets_state:
            self.disk_state = None
