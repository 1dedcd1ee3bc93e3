"""Oracle 2 and the part of oracle 12 that is about records: every record follows from the one before.

Written from the table of the facts, and not from the code that is tested.
"""

from __future__ import annotations

from penstock.protocol.disk.transaction_records import TransactionLogValue

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
MAY_FOLLOW = {
    EMPTY: {None, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
    ONGOING: {EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT},
    PREPARE_COMMIT: {ONGOING},
    PREPARE_ABORT: {EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT},
    COMPLETE_COMMIT: {PREPARE_COMMIT},
    COMPLETE_ABORT: {PREPARE_ABORT},
}
EPOCH_LAST, EPOCH_MAX = 32_766, 32_767


def places(value: TransactionLogValue) -> set[tuple[str, int]]:
    return {(topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids}


def check_follows(before: TransactionLogValue | None, after: TransactionLogValue | None, version: int) -> None:
    """`before` is None when nothing was known of the id, `after` when it is forgotten."""
    if after is None:
        assert before is not None, "what is not known is forgotten"
        assert before.transaction_status in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT), "a busy id is forgotten"
        return
    status = after.transaction_status
    was = None if before is None else before.transaction_status
    assert was in MAY_FOLLOW[status], f"{status} follows {was}"
    assert 0 <= after.producer_epoch <= EPOCH_MAX
    assert (after.transaction_partitions is None) == (status == EMPTY)
    if status not in (PREPARE_COMMIT, PREPARE_ABORT):
        assert after.producer_epoch < EPOCH_MAX or status == COMPLETE_ABORT, "the epoch behind the last is kept"
        assert after.next_producer_id == -1
    if version:
        known = after if before is None else before
        # A producer that repeats itself after a rotation may do so again, so the former id stays known.
        repeats = (
            status == EMPTY and known.producer_id == after.producer_id and known.producer_epoch == after.producer_epoch
        )
        expected = known.previous_producer_id if repeats and before is not None else known.producer_id
        assert after.previous_producer_id in (expected, known.producer_id), "the previous producer id is not the former"
    if before is not None:
        _check_change(before, after, status, was)


def _check_change(before: TransactionLogValue, after: TransactionLogValue, status: int, was: int | None) -> None:
    raised = after.producer_epoch - before.producer_epoch
    same_producer = before.producer_id == after.producer_id
    match status:
        case 0:
            assert (same_producer and raised in (0, 1)) or (not same_producer and after.producer_epoch == 0)
            assert same_producer or before.producer_epoch >= EPOCH_LAST, "only an id whose epochs are used up rotates"
            assert after.transaction_start_timestamp_ms == -1
        case 1:
            assert same_producer
            assert raised == 0
            assert places(after) >= places(before)
            if was == ONGOING:
                assert after.transaction_start_timestamp_ms == before.transaction_start_timestamp_ms
            else:
                assert after.transaction_start_timestamp_ms == after.transaction_last_update_timestamp_ms
        case 2 | 3:
            assert same_producer
            assert raised in (0, 1)
            assert places(after) == places(before)
            assert after.next_producer_id == -1 or after.producer_epoch == EPOCH_MAX
        case 4 | 5:
            assert not places(after)
            if before.next_producer_id == -1:
                assert same_producer
                assert raised == 0
            else:
                assert (after.producer_id, after.producer_epoch) == (before.next_producer_id, 0)
            assert after.client_transaction_version == before.client_transaction_version
            assert after.transaction_start_timestamp_ms == before.transaction_start_timestamp_ms
