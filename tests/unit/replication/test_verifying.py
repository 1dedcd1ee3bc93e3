"""What is asked of a transaction's coordinator, by version, and what its answer means to whom."""

from __future__ import annotations

import pytest

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NETWORK_EXCEPTION,
    NONE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    PRODUCER_FENCED,
    REQUEST_TIMED_OUT,
    TRANSACTION_ABORTABLE,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.replication.verifying import (
    VerifyMode,
    committer_told,
    is_busy,
    must_ask,
    offsets_mode,
    produce_mode,
    producer_told,
)

ADD, ABORTABLE, VERIFY = VerifyMode.ADD, VerifyMode.VERIFY_ABORTABLE, VerifyMode.VERIFY


def test_the_version_of_a_request_says_what_is_asked() -> None:
    assert [produce_mode(version) for version in (3, 10, 11, 12, 13)] == [VERIFY, VERIFY, ABORTABLE, ADD, ADD]
    assert [offsets_mode(version) for version in (0, 3, 4, 5)] == [VERIFY, VERIFY, ABORTABLE, ADD]


def test_only_looking_can_be_switched_off() -> None:
    assert [must_ask(mode, enabled=False) for mode in (ADD, ABORTABLE, VERIFY)] == [True, False, False]
    assert all(must_ask(mode, enabled=True) for mode in VerifyMode)


def test_it_is_worth_asking_again_whether_a_partition_can_be_added() -> None:
    assert [is_busy(CONCURRENT_TRANSACTIONS, mode) for mode in (ADD, ABORTABLE, VERIFY)] == [True, False, False]
    assert not is_busy(COORDINATOR_LOAD_IN_PROGRESS, ADD)


@pytest.mark.parametrize(
    ("answer", "mode", "producer", "committer"),
    [
        (NONE, VERIFY, NONE, NONE),
        (None, ADD, NOT_ENOUGH_REPLICAS, COORDINATOR_LOAD_IN_PROGRESS),
        (NETWORK_EXCEPTION, VERIFY, NOT_ENOUGH_REPLICAS, COORDINATOR_LOAD_IN_PROGRESS),
        (REQUEST_TIMED_OUT, VERIFY, NOT_ENOUGH_REPLICAS, COORDINATOR_LOAD_IN_PROGRESS),
        (NOT_COORDINATOR, ADD, NOT_ENOUGH_REPLICAS, NOT_COORDINATOR),
        (CONCURRENT_TRANSACTIONS, ADD, CONCURRENT_TRANSACTIONS, CONCURRENT_TRANSACTIONS),
        (CONCURRENT_TRANSACTIONS, VERIFY, NOT_ENOUGH_REPLICAS, CONCURRENT_TRANSACTIONS),
        (PRODUCER_FENCED, ADD, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_EPOCH),
        (TRANSACTION_ABORTABLE, VERIFY, INVALID_TXN_STATE, INVALID_TXN_STATE),
        (TRANSACTION_ABORTABLE, ABORTABLE, TRANSACTION_ABORTABLE, TRANSACTION_ABORTABLE),
        (CLUSTER_AUTHORIZATION_FAILED, ADD, INVALID_TXN_STATE, INVALID_TXN_STATE),
        (UNSUPPORTED_VERSION, ABORTABLE, NOT_ENOUGH_REPLICAS, COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_what_an_answer_means(
    answer: ErrorCode | None, mode: VerifyMode, producer: ErrorCode, committer: ErrorCode
) -> None:
    assert (producer_told(answer, mode), committer_told(answer, mode)) == (producer, committer)
