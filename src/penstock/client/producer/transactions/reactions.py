"""What an error means for a transaction: the two tables that the machine looks up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final

from penstock.client.errors import ClientError
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NOT_COORDINATOR,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_PRODUCER_ID,
    UNSUPPORTED_VERSION,
    ErrorCode,
    error_of,
)


class Reaction(Enum):
    """What follows from an error, the worst first."""

    FENCED = auto()  # the producer is over; a new one may go on
    FATAL = auto()  # the producer is over
    ABORT_AND_BUMP = auto()  # the transaction can only be aborted, and sequence numbers begin again after it
    ABORT = auto()  # the transaction can only be aborted
    ELSEWHERE = auto()  # look for the coordinator and ask again
    AGAIN = auto()  # ask again after a pause


class Api(Enum):
    """What a coordinator is asked."""

    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    END = "EndTxn"


_ANSWERS: Final[Mapping[ErrorCode, Reaction]] = {
    COORDINATOR_NOT_AVAILABLE: Reaction.ELSEWHERE,
    NOT_COORDINATOR: Reaction.ELSEWHERE,
    PRODUCER_FENCED: Reaction.FENCED,
    INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    INVALID_TXN_STATE: Reaction.FENCED,
    INVALID_PRODUCER_ID_MAPPING: Reaction.FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
    UNKNOWN_PRODUCER_ID: Reaction.ABORT_AND_BUMP,
    TRANSACTION_ABORTABLE: Reaction.ABORT,
    TOPIC_AUTHORIZATION_FAILED: Reaction.ABORT,
    GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
    OPERATION_NOT_ATTEMPTED: Reaction.ABORT,
}

_ANSWERS_OF: Final[Mapping[tuple[Api, ErrorCode], Reaction]] = {
    # Nothing is lost yet, and somebody may be about to grant it: whoever begins again asks again.
    (Api.INIT, TRANSACTIONAL_ID_AUTHORIZATION_FAILED): Reaction.ABORT,
    (Api.INIT, CLUSTER_AUTHORIZATION_FAILED): Reaction.ABORT,
    # The consumer was replaced: its successor reads from the committed offsets.
    (Api.COMMIT_OFFSETS, UNKNOWN_MEMBER_ID): Reaction.ABORT,
    (Api.COMMIT_OFFSETS, ILLEGAL_GENERATION): Reaction.ABORT,
    (Api.COMMIT_OFFSETS, FENCED_INSTANCE_ID): Reaction.ABORT,
    (Api.COMMIT_OFFSETS, REQUEST_TIMED_OUT): Reaction.ELSEWHERE,
}

_BATCHES: Final[Mapping[ErrorCode, Reaction]] = {
    PRODUCER_FENCED: Reaction.FENCED,
    INVALID_PRODUCER_ID_MAPPING: Reaction.FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
    CLUSTER_AUTHORIZATION_FAILED: Reaction.FATAL,
    UNSUPPORTED_VERSION: Reaction.FATAL,
}


def to_answer(api: Api, error: ErrorCode) -> Reaction:
    """What an error means that a coordinator answered."""
    found = _ANSWERS_OF.get((api, error)) or _ANSWERS.get(error)
    if found is not None:
        return found
    return Reaction.AGAIN if error.retriable else Reaction.FATAL


def to_answers(api: Api, codes: Iterable[int]) -> tuple[Reaction, ErrorCode] | None:
    """The worst of what partitions were answered, and its code; None when all are fine.

    A partition that was not looked at because of another one says nothing by itself.
    """
    errors = {error_of(code) for code in codes if code}
    if len(errors) > 1:
        errors.discard(OPERATION_NOT_ATTEMPTED)
    found = [(to_answer(api, error), error) for error in errors]
    return min(found, key=lambda pair: (pair[0].value, pair[1].code), default=None)


def to_failed_batch(failure: ClientError) -> Reaction:
    """What it means for the transaction that records were not delivered."""
    if failure.error is None:
        return Reaction.ABORT_AND_BUMP
    return _BATCHES.get(failure.error, Reaction.ABORT_AND_BUMP)
