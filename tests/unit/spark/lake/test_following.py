"""What a stream of a table takes of its versions, held to the rows themselves, in both formats."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.errors import BadOption, DataLost
from penstock.spark.lake.delta import thinning
from penstock.spark.lake.followed import history_kept, keep_history
from penstock.spark.lake.following.differences import differences
from penstock.spark.lake.following.stores import brought_by, followed_id
from penstock.spark.lake.following.versions import Brought, RowsRemoved, cut, start_of, taken
from penstock.spark.lake.iceberg import store as iceberg_store
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.store import BatchCommit, Expiry, TableFile, TableStore, WrittenFile
from penstock.spark.lake.upkeep import Thinnable, tidy, write_down
from penstock.spark.stores.storage import FROM_ENVIRONMENT
from tests.properties import examples

ROWS = pa.schema([("id", pa.int64()), ("word", pa.string())])


def file_of(name: str) -> TableFile:
    return TableFile(name, 1, 1)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 6))
def test_batches_have_all_versions_in_turn_and_about_as_many_files_as_they_may(counts: list[int], most: int) -> None:
    versions = [Brought(n, tuple(file_of(f"{n}-{i}") for i in range(count))) for n, count in enumerate(counts, 5)]
    begin, end = 5, 5 + len(counts)
    while begin < end:
        left = [each for each in versions if each.version >= begin]
        reached = cut(left, begin, end, most)
        assert begin < reached <= end
        files = [len(each.added) for each in left if each.version < reached]
        assert sum(files) <= max(most, files[0])
        begin = reached


def test_versions_that_took_rows_away_end_a_stream_or_are_passed_over() -> None:
    versions = [Brought(1, (file_of("a"),)), Brought(2, (file_of("b"),), (file_of("a"),)), Brought(3, ())]
    with pytest.raises(RowsRemoved, match=r"version 2 of t took rows away .* removals = \"ignore\""):
        taken(versions, "fail", "t")
    assert [each.version for each in taken(versions, "ignore", "t")] == [1, 3]


def test_a_start_is_a_word_or_the_version_after_which_it_begins() -> None:
    assert [start_of(text) for text in ("earliest", "LATEST", "0", "12")] == [0, None, 1, 13]
    with pytest.raises(BadOption, match=r"earliest .all rows, then changes., latest, or a version"):
        start_of("yesterday")


def filled(store: TableStore, directory: Path, ids: list[int], *, overwrite: bool = False) -> None:
    name = f"part-{ids[0]}-{len(ids)}.parquet"
    table = pa.table({"id": ids, "word": [str(each) for each in ids]}, schema=ROWS)
    where = Path(store.layout().directory)
    where.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, where / name)
    stats = f'{{"numRecords": {len(ids)}}}'
    file = WrittenFile(name, (where / name).stat().st_size, len(ids), stats=stats)
    store.refresh()
    store.commit(BatchCommit(f"write-{ids}", -1, files=(file,), rows=len(ids), overwrite=overwrite))


def ids_of(files: tuple[TableFile, ...]) -> list[int]:
    return sorted(row for file in files for batch in rows_of(file.path, ROWS) for row in batch["id"].to_pylist())


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_versions_tell_what_they_brought_and_a_compaction_brings_nothing(tmp_path: Path, table_format: str) -> None:
    store = open_store(LakeOptions(path=str(tmp_path / "t"), table_format=table_format))
    store.create(ROWS, [])
    store.refresh()
    begin = store.version() + 1
    for ids in ([1, 2], [3], [4]):
        filled(store, tmp_path, ids)
    store.refresh()
    store.compact(1 << 20)
    filled(store, tmp_path, [5])
    filled(store, tmp_path, [6, 7], overwrite=True)
    filled(store, tmp_path, [8])
    store.refresh()
    versions = brought_by(store, begin, store.version() + 1)
    told = [(ids_of(each.added), ids_of(each.removed)) for each in versions if each.added or each.removed]
    assert told == [([1, 2], []), ([3], []), ([4], []), ([5], []), ([6, 7], [1, 2, 3, 4, 5]), ([8], [])]
    assert followed_id(store).startswith("table:")
    assert len(followed_id(store)) > 20


def test_appends_whose_snapshots_were_thinned_out_are_told_with_the_next_one(tmp_path: Path) -> None:
    store = open_store(LakeOptions(path=str(tmp_path / "t"), table_format="iceberg"))
    store.create(ROWS, [])
    store.refresh()
    for number in range(1, 6):
        filled(store, tmp_path, [number])
    store.refresh()
    line = sorted(store.table.snapshots(), key=lambda each: each.sequence_number)  # type: ignore[attr-defined]
    going = [line[1].snapshot_id, line[2].snapshot_id]
    store.table.maintenance.expire_snapshots().by_ids(going).commit()  # type: ignore[attr-defined]
    again = open_store(LakeOptions(path=str(tmp_path / "t"), table_format="iceberg"))
    again.refresh()
    assert [ids_of(each.added) for each in brought_by(again, 2, 6)] == [[2, 3, 4], [5]]
    assert [ids_of(each.added) for each in brought_by(again, 4, 6)] == [[4], [5]], "it stood at a version that is gone"
    again.table.maintenance.expire_snapshots().by_ids([line[0].snapshot_id]).commit()  # type: ignore[attr-defined]
    last = open_store(LakeOptions(path=str(tmp_path / "t"), table_format="iceberg"))
    last.refresh()
    with pytest.raises(DataLost, match=r"version 3 of .* is no longer told"):
        brought_by(last, 4, 6)


@settings(max_examples=examples(8))
@given(
    before=st.dictionaries(st.integers(0, 9), st.sampled_from("abc"), max_size=8),
    after=st.dictionaries(st.integers(0, 9), st.sampled_from("abc"), max_size=8),
    keyed=st.booleans(),
)
def test_differences_turn_the_rows_before_into_those_after(
    tmp_path_factory: pytest.TempPathFactory, before: dict[int, str], after: dict[int, str], keyed: bool
) -> None:
    folder = tmp_path_factory.mktemp("differences")
    files = []
    for name, rows in (("before", before), ("after", after)):
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table({"id": list(rows), "word": list(rows.values())}, schema=ROWS), path)
        files.append(TableFile(str(path), path.stat().st_size, len(rows)))
    told = differences(files[:1], files[1:], ROWS, ["id"] if keyed else [], FROM_ENVIRONMENT)
    state, words = set(before.items()), []
    for word, batch in told:
        for row in batch.to_pylist():
            words.append(word)
            if word == "update":
                state = {each for each in state if each[0] != row["id"]}
            (state.discard if word == "delete" else state.add)((row["id"], row["word"]))
    assert state == set(after.items())
    changed = {key for key in before.keys() & after.keys() if before[key] != after[key]}
    assert words.count("update") == (len(changed) if keyed else 0)


def commits_to(path: Path, table_format: str, followed: bool, count: int) -> TableStore:
    """A table that a stream follows, or not, and appends to it, one a version. All is written down."""
    store = open_store(LakeOptions(path=str(path / "t"), table_format=table_format))
    store.create(ROWS, [])
    store.refresh()
    if followed:
        keep_history(store, days=7)
    for number in range(1, count + 1):
        filled(store, path, [number])
    store.refresh()
    if table_format == "delta":
        DeltaTable(store.location).create_checkpoint()
    write_down(store)
    return store


def reopened(path: Path, table_format: str) -> TableStore:
    store = open_store(LakeOptions(path=str(path / "t"), table_format=table_format))
    store.refresh()
    return store


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_stream_that_paused_for_days_finds_the_history_of_a_table_that_it_follows(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinning, "KEEP_NEWEST", 0)
    monkeypatch.setattr(iceberg_store, "KEEP_NEWEST", 1)
    store = commits_to(tmp_path, table_format, True, 8)
    stands = store.version() - 5
    days = datetime.now(UTC) + timedelta(days=6)
    assert isinstance(store, Thinnable)
    store.thin(days)
    again = reopened(tmp_path, table_format)
    assert len(list(again.commits())) <= 2, "its own history is short"
    brought = brought_by(again, stands, again.version() + 1)
    assert sorted(each for version in brought for each in ids_of(version.added)) == [3, 4, 5, 6, 7, 8]
    store.thin(datetime.now(UTC) + timedelta(days=8))
    filled(store, tmp_path, [9])
    store.thin(datetime.now(UTC) + timedelta(days=8))
    with pytest.raises(DataLost, match=r"history\.keep\.days"):
        brought_by(reopened(tmp_path, table_format), stands, again.version() + 1)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_table_that_nobody_follows_keeps_no_more_than_it_did(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinning, "KEEP_NEWEST", 0)
    monkeypatch.setattr(iceberg_store, "KEEP_NEWEST", 1)
    store = commits_to(tmp_path, table_format, False, 8)
    assert isinstance(store, Thinnable)
    store.thin(datetime.now(UTC) + timedelta(days=1))
    assert not (tmp_path / "t" / "_penstock" / "history").exists()
    again = reopened(tmp_path, table_format)
    with pytest.raises(DataLost, match=r"is no longer told .*history\.keep\.days"):
        brought_by(again, again.version() - 5, again.version() + 1)


def test_files_of_versions_that_a_follower_may_need_outlive_their_expiry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[datetime] = []
    store = commits_to(tmp_path, "delta", True, 1)
    monkeypatch.setattr(type(store), "expire", lambda _, before: asked.append(before) or Expiry())
    tidy(store, expire_before=datetime.now(UTC) - timedelta(days=1))
    assert datetime.now(UTC) - asked[0] >= timedelta(days=7)


def test_a_wish_is_only_ever_raised(tmp_path: Path) -> None:
    store = commits_to(tmp_path, "delta", True, 1)
    version = store.version()
    keep_history(store, days=3)
    assert (history_kept(store), store.version()) == (timedelta(days=7), version)
    keep_history(store, days=9)
    assert history_kept(store) == timedelta(days=9)
