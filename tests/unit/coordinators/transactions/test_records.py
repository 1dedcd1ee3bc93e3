"""The bytes of `__transaction_state`, and which version of them a cluster writes."""

from __future__ import annotations

import pytest

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.transactions.records import state_of, state_record, tombstone, value_version
from penstock.coordinators.transactions.transaction import State, Status
from penstock.coordinators.transactions.transitions import first, ongoing
from penstock.model.ids import Millis, Offset
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue
from tests.unit.coordinators.transactions.scene import ID, P0, Scene

KEY = "00000004636f7079"
EMPTY = "000100000000000003e800000000ea6000000000018bcfe56800ffffffffffffffff01000800000000000003e8"
ONGOING = (
    "000100000000000003e800000000ea600102046f7574030000000000000003000000018bcfe568640000018bcfe5686402000800000000000003e8"
    "02020002"
)
BEGAN = Millis(1_700_000_000_000)


def bytes_of(record: StateRecord) -> tuple[str, str]:
    """Key and value as they lie in the log, each with the number it begins with."""
    assert record.value is not None
    version = record.value_version
    return "0000" + encode(record.key, 0).hex(), f"{version:04x}" + encode(record.value, version).hex()


def test_an_empty_transaction_has_kafkas_bytes() -> None:
    assert bytes_of(state_record(ID, first(1_000, 60_000, BEGAN), 1)) == (KEY, EMPTY)


def test_an_ongoing_transaction_has_kafkas_bytes() -> None:
    state = ongoing(first(1_000, 60_000, BEGAN), [("out", 3), ("out", 0)], 2, Millis(BEGAN + 100))
    assert bytes_of(state_record(ID, state, 1)) == (KEY, ONGOING)


def test_a_shard_writes_those_bytes() -> None:
    scene = Scene()
    scene.init()
    scene.wait(100)
    scene.add(1_000, 0, ("out", 0), ("out", 3))
    assert [bytes_of(record) for record in scene.log] == [(KEY, EMPTY), (KEY, ONGOING)]


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_version_of_values_follows_the_cluster(level: int, version: int) -> None:
    scene = Scene(level)
    scene.init()
    assert value_version(level) == version
    assert [record.value_version for record in scene.log] == [version]


def test_a_cluster_that_is_raised_writes_the_new_version_from_then_on() -> None:
    scene = Scene(0)
    scene.init()
    scene.raise_version(2)
    scene.add(1_000, 0)
    assert [record.value_version for record in scene.log] == [0, 1]
    assert scene.replayed().table.transactions[ID].state == scene.state()


def test_version_0_has_no_room_for_other_producer_ids_and_the_protocol() -> None:
    state = first(1_000, 60_000, BEGAN)._replace(
        previous_producer_id=7, next_producer_id=8, client_version=2, status=Status.PREPARE_COMMIT
    )
    record = state_record(ID, state, 0)
    assert isinstance(record.value, TransactionLogValue)
    assert state_of(record.value) == state._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("version", [0, 1])
def test_partitions_are_null_exactly_when_the_status_is_empty(status: Status, version: int) -> None:
    record = state_record(ID, first(1_000, 60_000, BEGAN)._replace(status=status), version)
    assert isinstance(record.value, TransactionLogValue)
    assert (record.value.transaction_partitions is None) == (status is Status.EMPTY)


def test_every_state_comes_back_as_it_was() -> None:
    state = State(1, 32_767, 60_000, Status.PREPARE_ABORT, frozenset({P0, ("in", 4)}), Millis(5), Millis(3), 1, 2, 2)
    record = state_record(ID, state, 1)
    assert record.value is not None
    value, _ = decode(TransactionLogValue, 1, encode(record.value, 1))
    assert state_of(value) == state


def test_the_next_epoch_of_later_releases_is_read_and_never_written() -> None:
    """Tag 3 exists in Kafka's trunk only."""
    later = TransactionLogValue(producer_id=1, next_producer_epoch=4, transaction_partitions=None)
    value, _ = decode(TransactionLogValue, 1, encode(later, 1))
    state = state_of(value)
    rewritten = state_record(ID, state, 1).value
    assert isinstance(rewritten, TransactionLogValue)
    assert rewritten.next_producer_epoch == -1


@pytest.mark.parametrize("status", [6, 7, -1, 8])
def test_a_status_that_is_never_written_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match="Status"):
        state_of(TransactionLogValue(transaction_status=status))


def test_a_null_value_forgets_the_id() -> None:
    scene = Scene()
    scene.init()
    scene.shard.apply(tombstone(ID), Offset(1))
    assert not scene.shard.table.transactions


def test_a_key_of_another_kind_is_passed_over() -> None:
    shard = Scene().shard
    shard.apply(StateRecord(object(), None), Offset(0))
    assert not shard.table.transactions
    assert isinstance(tombstone(ID).key, TransactionLogKey)
