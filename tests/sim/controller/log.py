"""The metadata log under a controller: batches, how far they are committed, and what a failover leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from penstock.controller.batches import plan_batches
from penstock.controller.controller import Controller
from penstock.controller.decision import ControllerSettings, Decision
from penstock.metadata.features import ELR_VERSION, bootstrap_levels
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import frame_record, unframe_record
from penstock.metadata.snapshot import image_of, snapshot_records
from penstock.model.ids import Epoch, Offset
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from tests.unit.controller.desk import CLUSTER, broker_settings

SESSION_MS = 3_000

SETTINGS = {
    min_isr: ControllerSettings.of(
        broker_settings(min_insync_replicas=str(min_isr), broker_session_timeout_ms=str(SESSION_MS)), CLUSTER
    )
    for min_isr in (1, 2)
}


class MetadataLog:
    """An active controller and its log. Nothing is told to anybody before it is committed, as in a driver."""

    def __init__(self, rng: Random, min_isr: int, elr: bool, through_bytes: bool) -> None:
        self.rng = rng
        self.settings = SETTINGS[min_isr]
        self.elr, self.through_bytes = elr, through_bytes
        self.records: list[tuple[Any, int]] = []
        """Every record that was appended and not cut off, with the epoch of the controller that did."""
        self.ends: list[int] = [0]
        """Where batches end: what a commit and a cut can come to."""
        self.committed = 0
        self.epoch = 1
        self.published = ClusterImage()
        self.controller = Controller(ClusterImage(), rng, self.settings)
        self.waiting: list[tuple[int, Callable[[Any], None], Any]] = []
        self.snapshot: tuple[int, ClusterImage] | None = None
        levels = [FeatureLevelRecord(name=name, feature_level=level) for name, level in bootstrap_levels()]
        self.bootstrap = [each for each in levels if elr or each.name != ELR_VERSION]
        self.run(self.controller.activate(0.0, lambda: self.bootstrap))

    @property
    def end(self) -> Offset:
        return Offset(len(self.records))

    def run(self, decision: Decision) -> None:
        """Ask has happened: do and tell."""
        for batch in plan_batches(decision, self.controller.image.metadata_version):
            for record, version in batch:
                read = unframe_record(frame_record(record, version)) if self.through_bytes else record
                self.controller.apply(read, self.end, Epoch(self.epoch))
                self.records.append((read, self.epoch))
            self.ends.append(len(self.records))

    def ask(self, request: Any, now: float, told: Callable[[Any], None]) -> Any:
        """Decides on a request; `told` gets the reply when what it rests on is committed. The reply, for judges."""
        decision = self.controller.decide(
            request, now=now, next_offset=self.end, api_version=99, may_describe=lambda _name: False
        )
        self.run(decision)
        self.waiting.append((len(self.records), told, decision.reply))
        return decision.reply

    def commit(self) -> Iterator[None]:
        """The quorum has more of the log, mostly all of it. Yields when a batch is published: they come one by one."""
        ends = [end for end in self.ends if end > self.committed]
        if ends and self.rng.random() < 0.2:
            del ends[self.rng.randrange(len(ends)) :]
        for end in ends:
            for offset in range(self.committed, end):
                record, epoch = self.records[offset]
                self.published.apply(record, Offset(offset), Epoch(epoch))
            self.committed = end
            yield

    def tell(self) -> None:
        """Those who wait for something that is committed get their replies."""
        still: list[tuple[int, Callable[[Any], None], Any]] = []
        waiting, self.waiting = self.waiting, []
        for end, told, reply in waiting:
            if end <= self.committed:
                told(reply)
            else:
                still.append((end, told, reply))
        self.waiting = still + self.waiting

    def fail_over(self, now: float) -> None:
        """Another node takes over with what it has of the log; nobody is told what the old one was about to say."""
        keep = self.rng.choice([end for end in self.ends if end >= self.committed])
        del self.records[keep:]
        self.ends = [end for end in self.ends if end <= keep]
        self.waiting.clear()
        self.epoch += 1
        image = self.published.copy()
        self.controller = Controller(image, self.rng, self.settings)
        for offset in range(self.committed, keep):
            record, epoch = self.records[offset]
            self.controller.apply(record, Offset(offset), Epoch(epoch))
        self.run(self.controller.activate(now, lambda: self.bootstrap))

    def take_snapshot(self) -> None:
        """From here on a second image is built of a snapshot and what follows it."""
        if not self.published.in_transaction:
            taken = [record for record, _ in snapshot_records(self.published)]
            self.snapshot = (self.committed, image_of(taken, self.published.offset, self.published.epoch))

    def check_replays(self) -> None:
        """The whole log, and a snapshot with the rest of the log, both give the image that was published."""
        again = ClusterImage()
        starts = [(0, again)]
        if self.snapshot is not None:
            starts.append(self.snapshot)
        for start, image in starts:
            for offset in range(start, self.committed):
                record, epoch = self.records[offset]
                image.apply(record, Offset(offset), Epoch(epoch))
            assert image == self.published, f"a replay from {start} gives another image"
            assert image.in_transaction == self.published.in_transaction
