"""Whatever the bytes, both twins give the same result or raise the same exception."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import BadBytes, Record, _pure
from tests.properties import examples

compiled = pytest.importorskip("penstock.kernels._compiled")

COUNTS = st.integers(-2, 6) | st.sampled_from([2**31 - 1, -(2**31)])


def outcome(kernel: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return kernel(*arguments)
    except BadBytes as refused:
        return type(refused), str(refused)


def agree(call: Callable[[ModuleType], Any]) -> None:
    assert outcome(call, _pure) == outcome(call, compiled)


# Bytes that look like varints of small lengths, so that random records get past their first field.
NEAR_RECORDS = st.lists(
    st.sampled_from([0, 0, 1, 2, 4, 6, 12, 14, 16, 0x7F, 0x80, 0xFF, 0x0F, 0x10]) | st.integers(0, 255), max_size=60
).map(bytes)


@settings(max_examples=examples(400), deadline=None)
@given(NEAR_RECORDS | st.binary(max_size=80), COUNTS)
def test_random_payloads(payload: bytes, count: int) -> None:
    agree(lambda twin: twin.walk_records(payload, count))
    agree(lambda twin: twin.decode_records(payload, count, 10, 1_000))
    agree(lambda twin: twin.index_records(payload, count))


@st.composite
def mutated_batches(draw: st.DrawFn) -> bytes:
    """A good batch with a few bytes changed, cut or doubled, sometimes with its checksum made good again."""
    count = draw(st.integers(0, 4))
    records = [
        Record(
            i,
            1_000 + i * draw(st.integers(-2, 300)),
            draw(st.none() | st.just(b"key")),
            b"v" * draw(st.integers(0, 90)),
        )
        for i in range(count)
    ]
    batch = bytearray(61) + _pure.encode_records(records, 0, 1_000)
    struct.pack_into(
        ">qiibIhiqqqhii", batch, 0, 0, len(batch) - 12, -1, 2, 0, 0, count - 1, 1_000, 1_000, -1, -1, -1, count
    )
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(batch) - 1))
        batch[at] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        struct.pack_into(">I", batch, 17, _pure.crc32c(memoryview(batch)[21:]))
    return bytes(batch[: len(batch) - draw(st.sampled_from([0, 0, 0, 1, 30]))])


@settings(max_examples=examples(400), deadline=None)
@given(mutated_batches(), st.integers(-1, 3))
def test_mutated_batches(batch: bytes, position: int) -> None:
    padded = b"\x00" * max(position, 0) + batch
    for buf in (padded, memoryview(padded)):
        agree(lambda twin: twin.check_batch(buf, position))  # noqa: B023
        agree(lambda twin: twin.read_header(buf, position))  # noqa: B023
        agree(lambda twin: twin.scan_batches(buf, position))  # noqa: B023
        agree(lambda twin: twin.crc_holds(buf, position, len(batch)))  # noqa: B023
    agree(lambda twin: twin.scan_batches(batch + batch))


@settings(deadline=None)
@given(st.binary(max_size=70), st.integers(-100, 100), st.integers(-100, 100))
def test_random_bytes_as_batches(data: bytes, position: int, size: int) -> None:
    agree(lambda twin: twin.check_batch(data, position))
    agree(lambda twin: twin.scan_batches(data, position))
    agree(lambda twin: twin.crc_holds(data, position, size))


@settings(deadline=None)
@given(mutated_batches(), st.integers(-1, 3), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_writes_in_place(batch: bytes, position: int, number: int, epoch: int) -> None:
    def stamped(twin: ModuleType) -> bytes:
        buf = bytearray(batch)
        twin.stamp(buf, position, number, epoch)
        return bytes(buf)

    def retimed(twin: ModuleType) -> bytes:
        buf = bytearray(batch)
        twin.retime(buf, position, len(batch) - max(position, 0), epoch % 128, number)
        return bytes(buf)

    agree(stamped)
    agree(retimed)
