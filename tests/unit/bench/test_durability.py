"""How the suite `durability` counts what a hanging disk did."""

from __future__ import annotations

from bench.durability.steady import Place, Verdict, Wait, Writers, judge
from bench.durability.story import Story, told
from penstock.metadata.records import record_batch
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.codec import encode
from penstock.protocol.control import LEADER_CHANGE, control_batch
from penstock.protocol.disk.metadata_brokers import BrokerRegistrationChangeRecord
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from penstock.protocol.disk.raft_records import LeaderChangeMessage

NOW = Millis(1_000)


def leader_change(base: int, epoch: int) -> bytes:
    return control_batch(
        [(LEADER_CHANGE, encode(LeaderChangeMessage(leader_id=1), 0))],
        base_offset=base,
        leader_epoch=epoch,
        timestamp=NOW,
    )


def test_a_metadata_log_tells_of_elections_fences_and_isrs() -> None:
    fenced, back = BrokerRegistrationChangeRecord(broker_id=2, fenced=1), BrokerRegistrationChangeRecord(fenced=-1)
    shrunk, handed_over = PartitionChangeRecord(isr=[1, 3]), PartitionChangeRecord(leader=3)
    batches = [
        leader_change(10, 4),
        record_batch([(fenced, 1), (shrunk, 1)], base=Offset(11), epoch=Epoch(4), now=NOW),
        leader_change(13, 7),
        record_batch([(back, 1), (handed_over, 1)], base=Offset(14), epoch=Epoch(7), now=NOW),
    ]
    assert told(batches, epoch=3) == Story(
        controllers_elected=2, epochs=4, brokers_fenced=1, isr_changes=1, leader_changes=1
    )
    assert told([], epoch=3) == Story()


def test_what_is_not_stored_or_not_read_is_lost_and_what_is_there_twice_is_counted() -> None:
    stored = [b"a:0 ", b"a:1 ", b"a:1 ", b"a:3 "]
    read = {"a:0": 2, "a:1": 1}
    assert judge({"a:0", "a:1", "a:2", "a:3"}, stored, read) == Verdict(acknowledged=4, lost=2, doubled=1, read_twice=1)


def test_the_longest_wait_is_that_of_records_under_way_in_between() -> None:
    here, there = Place("t", 0), Place("t", 1)
    writers = Writers("127.0.0.1:1", [], interval_s=1)
    writers.waits = [Wait(here, 0, 9.9), Wait(here, 9.8, 15), Wait(here, 16, 16.5), Wait(there, 11, 18)]
    assert writers.longest_wait_s({here}, since_s=10, until_s=16) == 15 - 9.8
