"""From one state of a transactional id to the next: a function for each row of the table.

| to | from | sets |
|---|---|---|
| Empty | nothing, Empty, Complete* | epoch or producer id, timeout; no partitions, no start |
| Ongoing | Empty, Ongoing, Complete* | more partitions; start unless it was Ongoing |
| PrepareCommit | Ongoing | with an epoch per transaction: epoch + 1; the next producer id when epochs are used up |
| PrepareAbort | Ongoing; with an epoch per transaction also Empty, Complete* | as above; start when nothing was added |
| CompleteCommit, CompleteAbort | its Prepare* | no partitions; the next producer id and epoch 0, if there is one |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.coordinators.transactions.requests import CLASSIC, Partition
from penstock.coordinators.transactions.transaction import (
    NO_PARTITIONS,
    NO_PRODUCER,
    NO_TIME,
    State,
    Status,
)
from penstock.model.ids import Millis

ALLOWED: Final = {
    Status.EMPTY: frozenset({Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}),
    Status.ONGOING: frozenset({Status.EMPTY, Status.ONGOING, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}),
    Status.PREPARE_COMMIT: frozenset({Status.ONGOING}),
    Status.PREPARE_ABORT: frozenset({Status.ONGOING, Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}),
    Status.COMPLETE_COMMIT: frozenset({Status.PREPARE_COMMIT}),
    Status.COMPLETE_ABORT: frozenset({Status.PREPARE_ABORT}),
}
"""The states that each may follow."""


class Outcome(NamedTuple):
    """How a transaction ends, and with which epoch its markers are written."""

    commits: bool
    epoch: int
    next_producer_id: int
    client_version: int


def first(producer_id: int, timeout_ms: int, wall: Millis) -> State:
    """An id that nobody knew."""
    return State(
        producer_id, 0, timeout_ms, Status.EMPTY, NO_PARTITIONS, wall, NO_TIME, producer_id, NO_PRODUCER, CLASSIC
    )


def emptied(state: State, epoch: int, timeout_ms: int, wall: Millis) -> State:
    """A producer begins anew, with another epoch of the same producer id."""
    _check(state, Status.EMPTY)
    return state._replace(
        epoch=epoch,
        timeout_ms=timeout_ms,
        status=Status.EMPTY,
        partitions=NO_PARTITIONS,
        updated_ms=wall,
        started_ms=NO_TIME,
        previous_producer_id=state.producer_id,
    )


def repeated(state: State, timeout_ms: int, wall: Millis) -> State:
    """A producer has begun anew and asks once more. It may ask again, so the producer id that it names stays known."""
    return emptied(state, state.epoch, timeout_ms, wall)._replace(previous_producer_id=state.previous_producer_id)


def rotated(state: State, producer_id: int, timeout_ms: int, wall: Millis) -> State:
    """A producer begins anew with another producer id, because the epochs of the old one are used up."""
    return emptied(state, 0, timeout_ms, wall)._replace(producer_id=producer_id)


def ongoing(state: State, partitions: Iterable[Partition], client_version: int, wall: Millis) -> State:
    """Partitions join; the first of them begin the transaction."""
    _check(state, Status.ONGOING)
    return state._replace(
        status=Status.ONGOING,
        partitions=state.partitions.union(partitions),
        updated_ms=wall,
        started_ms=state.started_ms if state.status is Status.ONGOING else wall,
        previous_producer_id=state.producer_id,
        client_version=client_version,
    )


def prepared(state: State, outcome: Outcome, wall: Millis) -> State:
    """It is decided how the transaction ends."""
    status = Status.PREPARE_COMMIT if outcome.commits else Status.PREPARE_ABORT
    _check(state, status)
    return state._replace(
        epoch=outcome.epoch,
        status=status,
        updated_ms=wall,
        started_ms=state.started_ms if state.status is Status.ONGOING else wall,
        previous_producer_id=state.producer_id,
        next_producer_id=outcome.next_producer_id,
        client_version=outcome.client_version,
    )


def completed(state: State, wall: Millis) -> State:
    """Every partition has its marker."""
    status = Status.COMPLETE_COMMIT if state.status is Status.PREPARE_COMMIT else Status.COMPLETE_ABORT
    _check(state, status)
    complete = state._replace(
        status=status,
        partitions=NO_PARTITIONS,
        updated_ms=wall,
        previous_producer_id=state.producer_id,
        next_producer_id=NO_PRODUCER,
    )
    if state.next_producer_id == NO_PRODUCER:
        return complete
    return complete._replace(producer_id=state.next_producer_id, epoch=0)


def _check(state: State, status: Status) -> None:
    assert state.status in ALLOWED[status], f"{status.name} cannot follow {state.status.name}"
