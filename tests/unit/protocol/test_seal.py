"""Batches of builders: sealed, sealed again, given another producer."""

from __future__ import annotations

import pytest

from penstock.kernels import Record, RecordsBuilder, check_batch, crc_holds, read_header
from penstock.protocol.batch import CODECS, build_batch, is_transactional, read_records, resequence, seal

RECORDS = [Record(i, 1_000 + i % 7, b"k%d" % i, b"value " * 20, (("h", b"1"),)) for i in range(50)]


def built() -> RecordsBuilder:
    builder = RecordsBuilder(1 << 20)
    for record in RECORDS:
        assert builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder


@pytest.mark.parametrize("codec", sorted(CODECS.values()))
def test_a_sealed_batch_is_the_one_that_its_records_make(codec: int) -> None:
    batch = seal(built(), codec=codec, producer_id=9, producer_epoch=2, base_sequence=40)
    assert batch == build_batch(RECORDS, codec=codec, producer_id=9, producer_epoch=2, base_sequence=40)
    check_batch(batch)
    assert read_records(batch) == RECORDS


def test_without_a_codec_it_is_the_memory_of_the_builder() -> None:
    builder = built()
    batch = seal(builder)
    assert batch is builder.frame()
    assert seal(builder, producer_id=1, producer_epoch=0, base_sequence=0) is batch
    assert read_header(batch).producer_id == 1
    check_batch(batch)


def test_a_transaction_marks_its_batches() -> None:
    assert is_transactional(read_header(seal(built(), transactional=True, codec=4)).attributes)
    assert not is_transactional(read_header(seal(built(), codec=4)).attributes)


@pytest.mark.parametrize("codec", [0, 3])
def test_another_producer_may_send_a_sealed_batch(codec: int) -> None:
    batch = seal(built(), codec=codec, producer_id=1, producer_epoch=5, base_sequence=70, transactional=True)
    before = read_header(batch)
    resequence(batch, producer_id=2, producer_epoch=0, base_sequence=0)
    after = read_header(batch)
    assert after == before._replace(producer_id=2, producer_epoch=0, base_sequence=0, crc=after.crc)
    assert crc_holds(batch, 0, len(batch))
    assert read_records(batch) == RECORDS


def test_what_is_sealed_takes_no_more() -> None:
    builder = built()
    seal(builder, codec=1)
    with pytest.raises(ValueError, match="closed"):
        builder.append(1, None, None)
