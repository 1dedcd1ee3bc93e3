"""What a leader asks the coordinator of a transaction before it lets the transaction's first batch in. Pure.

| Produce | TxnOffsetCommit | it is asked | a partition that is not part of the transaction |
|---|---|---|---|
| 12 on | 5 | to add the partition | becomes part of it |
| 11 | 4 | whether the partition was added | TRANSACTION_ABORTABLE |
| to 10 | to 3 | whether the partition was added | INVALID_TXN_STATE |

The coordinator's answer is not always the client's: old clients do not retry what they do not know.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NETWORK_EXCEPTION,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    PRODUCER_FENCED,
    REQUEST_TIMED_OUT,
    TRANSACTION_ABORTABLE,
    UNSUPPORTED_VERSION,
    ErrorCode,
)

_PRODUCE_ADDS_SINCE: Final = 12
_PRODUCE_ABORTABLE_SINCE: Final = 11
_OFFSETS_ADD_SINCE: Final = 5
_OFFSETS_ABORTABLE_SINCE: Final = 4

NO_ANSWER: Final = frozenset({NETWORK_EXCEPTION, REQUEST_TIMED_OUT, UNSUPPORTED_VERSION})
"""Nobody knows what the coordinator would say. One that cannot be asked is of a release without transactions: whatever
is let in unseen, nobody would end. (Kafka lets it in, whose older releases have coordinators.)"""
_ELSEWHERE: Final = frozenset({COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR})


class VerifyMode(Enum):
    """What the coordinator is asked, and what its client can be told."""

    ADD = "adds the partition"
    VERIFY_ABORTABLE = "looks whether it was added; the client knows TRANSACTION_ABORTABLE"
    VERIFY = "looks whether it was added"


def produce_mode(version: int) -> VerifyMode:
    """By the version of Produce."""
    if version >= _PRODUCE_ADDS_SINCE:
        return VerifyMode.ADD
    return VerifyMode.VERIFY_ABORTABLE if version >= _PRODUCE_ABORTABLE_SINCE else VerifyMode.VERIFY


def offsets_mode(version: int) -> VerifyMode:
    """By the version of TxnOffsetCommit."""
    if version >= _OFFSETS_ADD_SINCE:
        return VerifyMode.ADD
    return VerifyMode.VERIFY_ABORTABLE if version >= _OFFSETS_ABORTABLE_SINCE else VerifyMode.VERIFY


def must_ask(mode: VerifyMode, *, enabled: bool) -> bool:
    """`transaction.partition.verification.enable` is about looking; what is not added would never be ended."""
    return enabled or mode is VerifyMode.ADD


def is_busy(error: ErrorCode, mode: VerifyMode) -> bool:
    """Whether the transaction before has still to end, which takes a moment: worth asking again."""
    return error is CONCURRENT_TRANSACTIONS and mode is VerifyMode.ADD


def producer_told(error: ErrorCode | None, mode: VerifyMode) -> ErrorCode:
    """What to tell a producer when the coordinator says `error`; NONE lets the batch in. None is no answer."""
    if error is None or error in NO_ANSWER or error in _ELSEWHERE:
        return NOT_ENOUGH_REPLICAS  # retried by every client, without another look at the metadata
    if error is CONCURRENT_TRANSACTIONS:
        return error if mode is VerifyMode.ADD else NOT_ENOUGH_REPLICAS
    return _told(error, mode)


def committer_told(error: ErrorCode | None, mode: VerifyMode) -> ErrorCode:
    """The same for whoever commits offsets in a transaction: it knows coordinators."""
    if error is None or error in NO_ANSWER:
        return COORDINATOR_LOAD_IN_PROGRESS
    return _told(error, mode)


def _told(error: ErrorCode, mode: VerifyMode) -> ErrorCode:
    if error is PRODUCER_FENCED:
        return INVALID_PRODUCER_EPOCH
    if error is CLUSTER_AUTHORIZATION_FAILED or (error is TRANSACTION_ABORTABLE and mode is VerifyMode.VERIFY):
        return INVALID_TXN_STATE
    return error
