"""Options of format("penstock-lake")."""

from __future__ import annotations

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.lake.options import LakeOptions


def test_names_are_the_same_in_any_case_and_sizes_have_units() -> None:
    made = LakeOptions.of(
        {
            "PATH": "/t",
            "Partition.By": "day, shop",
            "target.file.bytes": "64m",
            "deadletters": "table:/d",
            "ROWS": "Record",
        }
    )
    assert (made.path, made.partition_by, made.target_file_bytes) == ("/t", ("day", "shop"), 64 << 20)
    assert (made.dead_letters_path, made.rows, made.table_format) == ("/d", "record", "delta")


def test_what_spark_adds_is_taken() -> None:
    made = LakeOptions.of({"path": "/t", "checkpointLocation": "/c", "queryName": "q"})
    assert (made.checkpoint, made.query_name) == ("/c", "q")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs a path"),
        ({"path": "/t", "partition.bye": "a"}, "did you mean partition.by"),
        ({"path": "/t", "table.format": "hudi"}, "delta, iceberg"),
        ({"path": "/t", "target.file.bytes": "12"}, "4096 or more"),
        ({"path": "/t", "compact.every": "-1"}, "compact.every"),
        ({"path": "/t", "expire.after.days": "soon"}, "expire.after.days"),
        ({"path": "/t", "deadLetters": "topic:x"}, "table:PATH"),
        ({"path": "/t", "catalog": "sqlite:///x"}, "for Iceberg"),
        ({"table.format": "iceberg", "catalog": "sqlite:///x"}, "a catalog and a table"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        LakeOptions.of(given)
