"""A table whose files alone do not tell its rows is refused by whoever reads, rewrites, counts or sweeps it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.lake_output import summary
from penstock.spark.lake.audit import gather
from penstock.spark.lake.delta.features import foreign_features, refusal
from penstock.spark.lake.iceberg.features import renamed
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.query import dataset_of
from penstock.spark.lake.reading import files_of
from penstock.spark.lake.store import BatchCommit, NotUnderstood, TableStore
from penstock.spark.union.snapshot import rows_of
from penstock.spark.values.letter_table import LetterTable
from penstock.spark.values.letters import DeadLetter, Reader
from tests.unit.spark.lake.foreign import log_entry, protocol
from tests.unit.spark.lake.tables import SCHEMA, append, made, numbers

FUTURE = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)


def metadata(path: Path, properties: dict[str, str]) -> dict[str, Any]:
    """What the table said of itself when it was made, with other properties."""
    made = [json.loads(line) for line in (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()]
    said: dict[str, Any] = next(each for each in made if "metaData" in each)
    return {"metaData": {**said["metaData"], "configuration": properties}}


def with_deletion_vectors(path: Path) -> TableStore:
    """The property is off again, and two rows of the first file stay deleted beside it."""
    store = filled(path, "delta")
    (added,) = (
        json.loads(line)["add"]
        for line in (path / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
        if line.startswith('{"add"')
    )
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    vector |= {"sizeInBytes": 40, "cardinality": 2}
    gone = {"path": added["path"], "dataChange": True, "deletionTimestamp": 1}
    said = metadata(path, {"delta.enableDeletionVectors": "false"})
    log_entry(path, protocol("deletionVectors"), said, {"remove": gone}, {"add": {**added, "deletionVector": vector}})
    return store


def with_mapped_columns(path: Path) -> TableStore:
    store = filled(path, "delta")
    said = metadata(path, {"delta.columnMapping.mode": "name"})
    schema = json.loads(said["metaData"]["schemaString"])
    for number, field in enumerate(schema["fields"]):
        field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    said["metaData"]["schemaString"] = json.dumps(schema)
    log_entry(path, protocol(reader=2), said)
    return store


def with_an_unknown_feature(path: Path) -> TableStore:
    store = filled(path, "delta")
    log_entry(path, protocol("typeWidening"))
    return store


def with_renamed_columns(path: Path) -> TableStore:
    store = filled(path, "iceberg")
    with store.table.update_schema() as update:  # type: ignore[attr-defined]  # pyiceberg's own table
        update.rename_column("word", "label")
    return store


def of_the_next_version(path: Path) -> TableStore:
    """Its metadata as another engine upgrades it: pyiceberg itself writes no such table."""
    store = filled(path, "iceberg")
    file = Path(store.table.metadata_location.removeprefix("file://"))  # type: ignore[attr-defined]  # pyiceberg's own
    file.write_text(json.dumps({**json.loads(file.read_text()), "format-version": 3, "next-row-id": 30}))
    return store


def filled(path: Path, table_format: str) -> TableStore:
    store = made(path, table_format)
    for batch in range(3):
        append(store, batch * 10, batch * 10 + 10, batch=batch)
        store.refresh()
    return store


FOREIGN: dict[Callable[[Path], TableStore], str] = {
    with_deletion_vectors: "the Delta feature deletionVectors: .* DROP FEATURE",
    with_mapped_columns: "the Delta feature columnMapping: its files have other column names",
    with_an_unknown_feature: "the Delta feature typeWidening",
    with_renamed_columns: r"columns that were renamed, .*\(label, word\)",
    of_the_next_version: "format version 3",
}

READERS: dict[str, Callable[[TableStore], object]] = {
    "lake query": dataset_of,
    "union reads": lambda store: rows_of(None, None, store, None),  # type: ignore[arg-type]  # they are not reached
    "lake audit": gather,
    "lake tables": lambda store: summary("t", store),
    "compaction": lambda store: store.compact(1 << 20),
    "sweeping": lambda store: store.vacuum(FUTURE),
    "overwriting": lambda store: store.commit(BatchCommit("q", 9, overwrite=True)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda each: each.__name__)
def test_nobody_reads_what_is_not_understood(
    tmp_path: Path, foreign: Callable[[Path], TableStore], reader: str
) -> None:
    store = foreign(tmp_path / "t")
    store.refresh()
    with pytest.raises(NotUnderstood, match=FOREIGN[foreign]):
        READERS[reader](store)


@pytest.mark.parametrize("foreign", [with_deletion_vectors, with_mapped_columns, with_renamed_columns])
def test_spark_reads_it_neither(tmp_path: Path, foreign: Callable[[Path], TableStore]) -> None:
    table_format = foreign(tmp_path / "t").format
    with pytest.raises(NotUnderstood):
        files_of(LakeOptions(path=str(tmp_path / "t"), table_format=table_format))


@pytest.mark.parametrize("foreign", [with_deletion_vectors, with_mapped_columns, of_the_next_version])
def test_a_batch_does_not_enter_a_table_that_is_not_understood(
    tmp_path: Path, foreign: Callable[[Path], TableStore]
) -> None:
    store = foreign(tmp_path / "t")
    store.refresh()
    with pytest.raises(NotUnderstood, match=FOREIGN[foreign]):
        append(store, 30, 40, batch=3)


def test_an_older_version_is_judged_by_its_own_protocol(tmp_path: Path) -> None:
    store = with_deletion_vectors(tmp_path / "t")
    store.refresh()
    assert len(store.files(version=3)) == 3


def test_a_feature_that_even_the_library_does_not_know_is_told_as_a_sentence(tmp_path: Path) -> None:
    store = filled(tmp_path / "t", "delta")
    log_entry(tmp_path / "t", protocol("domesticated"))
    with pytest.raises(NotUnderstood, match=r"'domesticated' is not supported.*: read it with an engine"):
        store.refresh()


def test_letters_do_not_enter_a_table_that_is_not_understood(tmp_path: Path) -> None:
    letters = LetterTable(str(tmp_path / "dead"))
    letter = DeadLetter("t", 0, 1, None, None, b"x", (), "why")
    letters.append([letter], Reader("q", 0), FUTURE)
    log_entry(tmp_path / "dead", protocol("deletionVectors"))
    with pytest.raises(NotUnderstood, match="deletionVectors"):
        letters.append([letter], Reader("q", 1), FUTURE)


@pytest.mark.parametrize("features", [("timestampNtz",), ("v2Checkpoint", "vacuumProtocolCheck"), ("columnMapping",)])
def test_features_that_change_no_row_are_read(tmp_path: Path, features: tuple[str, ...]) -> None:
    store = filled(tmp_path / "t", "delta")
    log_entry(tmp_path / "t", protocol(*features))
    store.refresh()
    assert sorted(numbers(store)) == list(range(30))


def test_the_protocol_decides_and_not_a_property() -> None:
    assert foreign_features(3, ["deletionVectors"], {"delta.enableDeletionVectors": "false"}) == ["deletionVectors"]
    assert foreign_features(1, None, {"delta.enableDeletionVectors": "true"}) == []
    assert foreign_features(2, None, {}) == []
    assert foreign_features(2, None, {"delta.columnMapping.mode": "id"}) == ["columnMapping"]
    assert foreign_features(4, None, {}) == ["reader version 4"]
    assert "variantType, x: this reader does not know" in refusal("/t", ["variantType", "x"])


def test_a_column_is_renamed_when_its_id_or_its_name_had_another_partner() -> None:
    assert renamed([(1, "a"), (2, "b"), (1, "a")]) == []
    assert renamed([(1, "a"), (1, "b"), (2, "c")]) == ["a", "b"]
    assert renamed([(1, "a"), (2, "a")]) == ["a"]


def test_a_widened_column_and_a_new_one_are_no_renaming(tmp_path: Path) -> None:
    import pyarrow as pa

    store = filled(tmp_path / "t", "iceberg")
    store.evolve(pa.schema([*SCHEMA, ("more", pa.string())]))
    store.refresh()
    assert len(store.files()) == 3
