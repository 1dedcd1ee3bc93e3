"""Values that a client wrote twice by its own choice, which no broker can tell from two values.

A leader that steps down answers NOT_LEADER_OR_FOLLOWER, as Apache Kafka does, also to a batch that it has appended and
that its successor has. Sent again under its sequence number the batch is known there. But librdkafka (its issue 4953)
takes it for not written: if a later batch has overtaken it meanwhile, it begins a new producer epoch and sends both as
new ones. The copies of such a value have one producer id and rising epochs; a log that forgot what it holds would have
copies of one epoch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.faults.cluster.history import Anomaly, Kind
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import stored

LIBRDKAFKA = "confluent:"
_PRODUCER_AT = 43


class Origin(NamedTuple):
    """Whose batch it is."""

    producer_id: int
    epoch: int


def origins(directory: Path, offsets: Iterable[int]) -> list[Origin]:
    """Who wrote what is at these offsets of a partition; its node may still run."""
    batches = list(stored(directory, growing=True))
    return [
        Origin(*struct.unpack_from(">qh", batch, _PRODUCER_AT))
        for offset in sorted(offsets)
        for base, end, batch in batches
        if base <= offset < end
    ]


def by_choice(anomaly: Anomaly, directory: Path) -> bool:
    """Whether this is a value that librdkafka sent once more under a new epoch; `directory` is that of a replica."""
    if anomaly.kind is not Kind.DUPLICATE or not anomaly.words.startswith(LIBRDKAFKA):
        return False
    offsets = json.loads(anomaly.words.rpartition(" is at offsets ")[2])
    found = origins(directory, offsets)
    epochs = [each.epoch for each in found]
    return (
        len(found) == len(offsets) and len({each.producer_id for each in found}) == 1 and epochs == sorted(set(epochs))
    )


class ResentLoad(Load):
    """A load that holds nobody but librdkafka responsible for such values; `resent` says which they were."""

    resent: tuple[Anomaly, ...] = ()

    def judge(self) -> None:
        logs = next(node for node in self.cluster.brokers if node.running).data_dir
        found = self.history.check()
        self.resent = tuple(each for each in found if by_choice(each, logs / f"{self.topic}-{each.partition}"))
        left = [each for each in found if each not in self.resent]
        self.history.check = lambda **_: left  # type: ignore[method-assign]
        super().judge()
