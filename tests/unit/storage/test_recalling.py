"""After a clean stop the log still knows the batches of a producer that its snapshot does not hold."""

from __future__ import annotations

import pytest

from penstock.model.errors import OUT_OF_ORDER_SEQUENCE_NUMBER, Refused
from penstock.storage.log import Log
from penstock.storage.tickets import Ticket
from penstock.testing.memory_files import MemoryFiles

from .test_log_basics import append, batch, header_of, new_log, reopen

OTHERS = 30


def stopped(*, between: int = 0) -> Log:
    """A producer wrote six batches of two, others some in between; then the node stopped cleanly and came back."""
    files = MemoryFiles()
    log = new_log(files)
    for sequence in range(0, 12, 2):
        append(log, batch(2, producer=(7, 0, sequence)))
        for number in range(between):
            append(log, batch(1, producer=(8 + number, 0, sequence // 2)))
    log.close()
    return reopen(files, clean=True, recovery_point=int(log.next))


def again(log: Log, sequence: int, count: int = 2, *, producer: int = 7, epoch: int = 0) -> Ticket | None:
    return log.known_batch(header_of(batch(count, producer=(producer, epoch, sequence))))


@pytest.mark.parametrize("between", [0, OTHERS])
def test_the_last_five_batches_are_known_again(between: int) -> None:
    log = stopped(between=between)
    step = 2 + between
    for number in range(1, 6):
        found = again(log, 2 * number)
        assert found is not None
        assert (found.base, found.end) == (number * step, number * step + 2)
    with pytest.raises(Refused) as refusal:
        again(log, 0)
    assert refusal.value.error is OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_was_written_since_counts_among_the_five() -> None:
    log = stopped()
    for sequence in (12, 14):
        append(log, batch(2, producer=(7, 0, sequence)))
    assert [getattr(again(log, sequence), "base", None) for sequence in (6, 8, 10, 12, 14)] == [6, 8, 10, 12, 14]
    with pytest.raises(Refused):
        again(log, 4)


def test_a_hole_is_still_a_hole_and_the_next_is_still_new() -> None:
    log = stopped()
    with pytest.raises(Refused):
        again(log, 14)
    assert again(log, 12) is None
    with pytest.raises(Refused):
        again(log, 4, 1)  # it is in the log, but as part of another batch


def test_a_log_that_was_deleted_from_below_is_read_from_where_it_begins() -> None:
    log = stopped()
    log.log_start = log.log_start + 8
    found = again(log, 8)
    assert found is not None
    assert found.base == 8


def test_producers_are_known_although_the_only_snapshot_is_gone() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, batch(2, producer=(7, 0, 0)))
    log.close()
    (snapshot,) = (name for name in files.listdir(log.directory) if name.endswith(".snapshot"))
    files.remove(f"{log.directory}/{snapshot}")
    log = reopen(files, clean=True, recovery_point=int(log.next))
    found = again(log, 0)
    assert found is not None
    assert (found.base, found.end) == (0, 2)
    with pytest.raises(Refused):
        again(log, 4)
