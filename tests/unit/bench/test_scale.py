"""How the suite `scale` judges growth, and that its large log is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scale import sparse_log
from bench.scale.fit import fit
from penstock.kernels import crc_holds, scan_batches
from penstock.protocol.batch import read_records
from penstock.storage.files import DiskFiles
from penstock.storage.segment import Segment

SIZES = (10.0, 100.0, 1_000.0, 10_000.0)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((30.0, 30.5, 29.5, 31.0), "flat"),
        ((30.0, 29.0, 28.0, 20.0), "flat"),
        ((30.0, 31.0, 37.0, 107.0), "linear"),
        ((30.0, 31.0, 37.0, 807.0), "steeper than linear"),
        ((30.0, 130.0, 230.0, 240.0), "flatter than linear"),
    ],
)
def test_growth_is_judged_by_the_last_stretch(values: tuple[float, ...], verdict: str) -> None:
    assert fit(list(zip(SIZES, values, strict=True)), noise=2.0).verdict == verdict


def test_a_slope_is_what_one_more_costs() -> None:
    assert fit([(size, 30.0 + 0.007 * size) for size in SIZES], noise=2.0).slope == pytest.approx(0.007)


def test_every_batch_of_a_sparse_segment_is_whole_and_indexed(tmp_path: Path) -> None:
    end = sparse_log._write_segment(tmp_path, 5_000, 1_000_000)
    path = tmp_path / f"{5_000:020d}.log"
    assert path.stat().st_blocks * 512 < path.stat().st_size / 100, "it is mostly holes"
    segment = Segment(DiskFiles(), str(tmp_path), 5_000, size=path.stat().st_size, created_ms=0, has_aborted=False)
    assert (end, segment.end(), segment.indexes_doubtful()) == (6_000, 6_000, False)
    found = segment.find(5_321)
    assert found is not None
    data = segment.file.pread(found.size, found.position)
    ((_at, header),) = scan_batches(data)
    assert (header.base_offset, header.size) == (5_321, sparse_log.BATCH_BYTES)
    (record,) = read_records(data)
    assert crc_holds(data, 0, header.size)
    assert (record.offset, record.timestamp) == (5_321, 1_000_000 + 2 * sparse_log.STEP_MS)
    assert record.value == bytes(len(record.value or b""))
    segment.close()
