"""Where a lake table stands, as the start of a read."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import BatchCommit
from penstock.spark.source.tables import lake_options, standing

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def fed(options: dict[str, str], *ranges: TableRange) -> None:
    store = open_store(LakeOptions.of(options))
    store.create(pa.schema([pa.field("a", pa.int64())]), [])
    store.refresh()
    store.commit(BatchCommit("query", 0, ranges))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_reading_goes_on_where_the_table_stands(tmp_path: Path, kind: str) -> None:
    where = str(tmp_path / "orders")
    fed(
        {"path": where, "table.format": kind},
        TableRange("t", "ID-T", 0, 5, 70),
        TableRange("u", "OLD", 0, 0, 9),
    )
    # Another partition, and a topic that was made anew since: of neither the table has anything.
    assert standing(where, {"t": "ID-T", "u": "NEW"}, [T0, T1, U0]) == {T0: 70}


def test_a_table_that_was_fed_without_ids_knows_names(tmp_path: Path) -> None:
    where = str(tmp_path / "orders")
    fed({"path": where}, TableRange("t", "", 0, 5, 70))
    assert standing(where, {"t": "ID-T"}, [T0]) == {T0: 70}


def test_a_table_that_is_not_there_yet_has_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert standing(str(tmp_path / "none"), {}, [T0]) == {}
    assert "there is no such table yet, so reading begins at the earliest" in caplog.text


def test_a_table_may_be_named_in_a_catalog(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    assert lake_options(f"{catalog}#sales.orders") == {
        "table.format": "iceberg",
        "catalog": catalog,
        "table": "sales.orders",
    }
    assert lake_options(str(tmp_path))["table.format"] == "delta"
