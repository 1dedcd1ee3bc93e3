"""The time index of a sealed segment decides what retention takes: one that the log contradicts is made again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.model.ids import Millis, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.testing.memory_files import MemoryFiles

from .test_retention import HOUR, D, bases, log_of

SEALED = f"{D}/00000000000000000000.timeindex"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeroed": lambda data: bytes(len(data)),
    "emptied": lambda _: b"",
    "halved": lambda data: data[: len(data) // 24 * 12],
    "torn": lambda data: data[:-5],
    "of another century": lambda data: data[:-12] + bytes([data[-12] ^ 0x40]) + data[-11:],
    "of an hour ago": lambda data: data[:-12] + (HOUR).to_bytes(8, "big") + data[-4:],
    "scribbled": lambda data: b"\x17" * len(data),
    "extended": lambda data: data + b"\x7f" * 12,
}


def reopened(damage: str, crashed: bool) -> Log:
    """Three records to a segment, each an hour after the one before; the first segment's time index was damaged."""
    files = MemoryFiles()
    log = log_of(files=files, retention_ms=2 * HOUR, index_interval_bytes=50)
    assert bases(log) == [0, 3, 6, 9]
    log.close()
    data = files.read(SEALED)
    assert len(data) > 12, "there is something to lose"
    files.write_atomic(SEALED, DAMAGES[damage](data))
    return Log.open(
        files, D, TopicPartition("orders", 0), Uuid(b"1" * 16), log.settings, now=Millis(0), clean=not crashed,
        recovery_point=9,
    )  # fmt: skip


@pytest.mark.parametrize("crashed", [False, True], ids=["stopped", "crashed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_retention_takes_nothing_sooner_or_later_for_a_damaged_time_index(damage: str, crashed: bool) -> None:
    log = reopened(damage, crashed)
    log.commit_to(log.next)
    assert log.retain(Millis(4 * HOUR)) == [], "its newest record is two hours old"
    assert [segment.base for segment in log.retain(Millis(5 * HOUR))] == [0]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_search_by_time_finds_what_a_damaged_time_index_hides(damage: str) -> None:
    log = reopened(damage, crashed=False)
    assert [log.offset_for_time(hour * HOUR, 10) for hour in (1, 2, 3)] == [(hour * HOUR, hour) for hour in (1, 2, 3)]
