"""Which error codes each version of a request is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.coordinators.transactions import answers
from penstock.coordinators.transactions.requests import PartitionsAdded, client_version_of
from penstock.model import errors
from penstock.model.errors import ErrorCode
from tests.unit.coordinators.transactions.scene import P0, P1, P2

Told = Callable[[ErrorCode, int], ErrorCode]


@pytest.mark.parametrize(
    ("told", "versions", "since"),
    [
        (answers.told_by_init, 6, 4),
        (answers.told_by_add_partitions, 5, 2),
        (answers.told_by_add_offsets, 4, 2),
        (answers.told_by_end, 5, 2),
    ],
)
def test_old_versions_know_a_fenced_producer_by_its_epoch(told: Told, versions: int, since: int) -> None:
    for version in range(versions + 1):
        expected = errors.PRODUCER_FENCED if version >= since else errors.INVALID_PRODUCER_EPOCH
        assert told(errors.PRODUCER_FENCED, version) is expected
        for other in (errors.NONE, errors.CONCURRENT_TRANSACTIONS, errors.INVALID_TXN_STATE, errors.NOT_COORDINATOR):
            assert told(other, version) is other


@pytest.mark.parametrize(("version", "code"), [(0, 47), (3, 47), (4, 90), (5, 90)])
def test_a_reply_of_init_producer_id(version: int, code: int) -> None:
    reply = answers.init_reply(answers.init_refused(errors.PRODUCER_FENCED), version)
    assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (code, -1, -1)
    assert answers.init_reply(answers.init_refused(errors.NOT_COORDINATOR), version).error_code == 16


@pytest.mark.parametrize(("version", "code"), [(0, 47), (1, 47), (2, 90), (4, 90)])
def test_replies_of_add_offsets_and_end(version: int, code: int) -> None:
    assert answers.add_offsets_reply(answers.add_offsets_refused(errors.PRODUCER_FENCED), version).error_code == code
    assert answers.add_offsets_reply(answers.add_offsets_refused(errors.NONE), version).error_code == 0
    reply = answers.end_reply(answers.end_refused(errors.PRODUCER_FENCED), version)
    assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (code, -1, -1)
    assert answers.end_reply(answers.end_refused(errors.INVALID_TXN_STATE), version).error_code == 48


def test_a_client_adds_all_partitions_or_none() -> None:
    unknown, forbidden = errors.UNKNOWN_TOPIC_OR_PARTITION, errors.TOPIC_AUTHORIZATION_FAILED
    assert answers.all_or_nothing({P0: errors.NONE, P1: errors.NONE}) is None
    assert answers.all_or_nothing({}) is None
    assert answers.all_or_nothing({P0: errors.NONE, P1: unknown, P2: forbidden}) == {
        P0: errors.OPERATION_NOT_ATTEMPTED,
        P1: unknown,
        P2: forbidden,
    }


def test_the_version_of_a_request_picks_the_protocol() -> None:
    assert [client_version_of(version) for version in range(6)] == [0, 0, 0, 0, 2, 2]


def test_when_nobody_could_be_asked_every_partition_hears_the_same() -> None:
    assert PartitionsAdded.all_with(errors.NOT_COORDINATOR, (P0, P1)).errors == {
        P0: errors.NOT_COORDINATOR,
        P1: errors.NOT_COORDINATOR,
    }
