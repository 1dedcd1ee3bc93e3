"""Whatever is wrong with the records that came back, a check says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.checks import Read, Tally, judge, planted
from demo.orders import CUSTOMERS, number_of, order

COUNT = 3 * CUSTOMERS
PARTITIONS = 6


def records() -> Iterator[Read]:
    """Every order as a consumer sees it: all of a customer in one partition, offsets from zero."""
    offsets = [0] * PARTITIONS
    for number in range(COUNT):
        customer, value = order(number)
        partition = customer % PARTITIONS
        yield Read(partition, offsets[partition], customer, value)
        offsets[partition] += 1


def failed_checks(fault: str | None) -> set[str]:
    sent, read = Tally(), Tally()
    for number in range(COUNT):
        sent.sent(*order(number))
    for record in planted(fault, records(), COUNT // 2):
        read.read(record)
    return {verdict.name for verdict in judge(sent, read) if not verdict.good}


@pytest.mark.parametrize(
    ("fault", "failed"),
    [
        (None, set()),
        ("lost", {"count", "offsets", "checksum"}),
        ("doubled", {"count", "order", "offsets", "checksum"}),
        ("swapped", {"order", "offsets", "checksum"}),
        ("altered", {"checksum"}),
    ],
)
def test_every_fault_fails_its_checks_and_no_others(fault: str | None, failed: set[str]) -> None:
    assert failed_checks(fault) == failed


def test_the_number_of_an_order_is_read_back() -> None:
    assert [number_of(order(number)[1]) for number in (0, 7, 123_456, 999_999_999)] == [0, 7, 123_456, 999_999_999]
