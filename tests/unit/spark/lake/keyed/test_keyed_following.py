"""Keyed tables on real files equal a plain model, whatever comes between a batch and its commit; both formats."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.errors import BadOption, CommitRefused
from penstock.spark.lake.keyed import graves, landing
from penstock.spark.lake.keyed.buckets import bucket_of_file
from penstock.spark.lake.keyed.watching import OrderLost
from penstock.spark.lake.store import BatchCommit, Commit, Conflicted, MergeCounts, TableStore
from tests.faults.counts import SOAKING
from tests.properties import examples
from tests.unit.spark.lake.keyed.following import BUCKETS, Following, Killed, delete, upsert
from tests.unit.spark.lake.keyed.model import histories

FORMATS = ("delta", "iceberg")
EXAMPLES = {"delta": 2_000 if SOAKING else examples(60), "iceberg": 600 if SOAKING else examples(15)}


@pytest.fixture
def place() -> Iterator[Path]:
    parent = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    path = Path(tempfile.mkdtemp(prefix="penstock-keyed-", dir=parent))
    yield path / "t"
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(params=FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def live(data: st.DataObject, table_format: str, *, in_log_order: bool) -> None:
    """A table's life, drawn."""
    parent = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="penstock-keyed-", dir=parent) as directory:
        world = Following(Path(directory) / "t", table_format, in_log_order=in_log_order)
        for _ in range(data.draw(st.integers(1, 8))):
            world.send(data.draw(histories(in_log_order=in_log_order, gaps=in_log_order, most=12)))
            step(data, world)
            world.check()
        while (commit := quietly(world.batch)) is not None and commit.ranges:
            pass
        world.check()
        world.check_proof()


def step(data: st.DataObject, world: Following) -> None:
    """One batch with what happens to it, or something of others'."""
    beside = {
        "nothing": None,
        "compaction": lambda: world.exists() and world.foreign_compaction(),
        "delete": lambda: world.exists() and world.foreign_delete(data.draw(st.integers(0, 4))),
        "successor": lambda: world.replay_last(),
        "recreated": world.recreate if not world.in_log_order else None,
    }
    act = data.draw(st.sampled_from(["batch"] * 6 + ["compaction", "delete", "lost", "replay", "buckets"]))
    match act:
        case "batch":
            meanwhile = beside[data.draw(st.sampled_from(list(beside)))]
            killed = data.draw(st.sampled_from(["", "", "", "before", "written", "committed"]))
            quietly(lambda: world.batch(data.draw(st.sampled_from([2, 100])), beside=meanwhile, killed=killed))
        case "compaction" | "delete":
            found = beside[act]
            assert found is not None
            found()
        case "lost":
            world.lose_checkpoint()
        case "replay":
            assert world.replay(data.draw(st.integers(0, 2))) is None, "what is there already does not enter again"
        case "buckets":
            world.rebucket(data.draw(st.integers(1, 5)))


def quietly(act: Callable[[], Commit | None]) -> Commit | None:
    try:
        return act()
    except Killed:
        return None


@settings(max_examples=EXAMPLES["delta"])
@given(st.data(), st.booleans())
def test_a_delta_table_is_what_its_changes_come_to(data: st.DataObject, in_log_order: bool) -> None:
    live(data, "delta", in_log_order=in_log_order)


@settings(max_examples=EXAMPLES["iceberg"])
@given(st.data(), st.booleans())
def test_an_iceberg_table_is_what_its_changes_come_to(data: st.DataObject, in_log_order: bool) -> None:
    live(data, "iceberg", in_log_order=in_log_order)


def test_a_compaction_between_reading_and_commit_makes_the_merge_be_done_anew(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(id, "a") for id in range(9)])
    world.batch()
    world.send([upsert(1, "b"), delete(2)])
    world.batch(beside=world.foreign_compaction)
    world.check()
    store = world.store
    store.refresh()
    assert all(bucket_of_file(file.path, BUCKETS) is not None for file in store.files()), "rows are in buckets again"
    kinds = [commit.kind for commit in store.commits()]
    assert kinds[-2:] == ["compact", "merge"]
    world.check_proof()


def test_a_row_that_another_engine_deletes_meanwhile_stays_deleted(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(id, "a") for id in range(9)])
    world.batch()
    world.send([upsert(1, "b")])
    world.batch(beside=lambda: world.foreign_delete(4))
    assert sorted(key[0] for key in world.rows()) == [0, 1, 2, 3, 5, 6, 7, 8]
    world.check()


def test_our_own_upkeep_leaves_buckets_alone(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(id, "a") for id in range(9)])
    world.batch()
    store = world.store
    store.refresh()
    before = store.version()
    assert store.compact(1 << 30).files_removed == 0
    store.refresh()
    assert store.version() == before


def test_a_topic_made_anew_or_with_more_partitions_stops_a_table_that_follows_offsets(
    place: Path, table_format: str
) -> None:
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(1, "a")])
    world.batch()
    world.topic.partitions.append([])
    with pytest.raises(OrderLost, match="has 4 partitions and had 3: keys have moved to others"):
        world.batch()
    world.lose_checkpoint()
    world.recreate()
    world.send([upsert(1, "b")])
    with pytest.raises(OrderLost, match=r"was deleted and created anew .its id was topic-0, now it is topic-1"):
        world.batch()
    world.check()


def test_a_topic_made_anew_goes_on_by_its_sequence(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=False)
    world.send([upsert(1, "a", seq=7), upsert(2, "a", seq=7)])
    world.batch(beside=world.recreate)
    world.send([upsert(1, "old", seq=6), upsert(2, "new", seq=8)])
    world.batch()
    assert world.rows() == {(1, ""): ("a", None, 0), (2, ""): ("new", None, 0)}
    world.check_proof()


def test_changes_of_another_query_that_overlap_are_refused(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(1, "a"), upsert(1, "b")])
    world.batch(1)
    plan = world.planned(query="other", spans=((0, 0), (0, 2), (0, 0)))
    with pytest.raises(CommitRefused, match="an overlap of 1 offsets"):
        world.carry_out(plan)
    world.check()


def test_a_table_that_has_rows_without_keys_takes_none(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=True)
    store = world.store
    store.create(world.columns.rows, ())
    store.refresh()
    world.send([upsert(1, "a")])
    world.batch()
    world.check()
    store.refresh()
    store.set_properties({"penstock.keyed": world.settings.to_property().replace('"part"', '"name"')})
    world.send([upsert(1, "b")])
    with pytest.raises(
        BadOption, match=r"keys of the table .* is id, name, and is to be id, part: rows that are there"
    ):
        world.batch()


def test_deletes_are_remembered_through_other_numbers_of_buckets(place: Path, table_format: str) -> None:
    world = Following(place, table_format, in_log_order=False)
    world.send([upsert(id, "a", seq=1) for id in range(6)] + [delete(id, seq=9) for id in range(6)])
    world.batch()
    assert world.rows() == {}
    world.rebucket(2)
    world.send([upsert(3, "late", seq=8), upsert(4, "new", seq=10)])
    found = world.batch()
    assert found is not None
    assert found.merged == MergeCounts(inserted=1, superseded=1)
    world.check()
    world.forget_deletes_after(1)
    world.now_ms += 1_000
    world.send([upsert(3, "very late", seq=8)])
    world.batch()
    assert (3, "") in world.rows(), "a delete is remembered for as long as keep_deletes says"


def test_a_table_that_is_never_still_is_given_up_without_harm(
    place: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "WAIT_S_FIRST", 0.0)
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(1, "a")])
    world.batch()
    world.send([upsert(1, "b")])

    def conflicted(self: TableStore, batch: BatchCommit) -> None:
        raise Conflicted("somebody was first")

    with monkeypatch.context() as patched:
        patched.setattr(type(world.store), "commit", conflicted)
        with pytest.raises(CommitRefused, match=r"10 times others committed while it was. Nothing was lost"):
            world.batch()
    world.check()
    world.batch()
    assert world.rows() == {(1, ""): ("b", None, 0)}


def test_files_of_an_older_version_would_be_seen(place: Path, table_format: str) -> None:
    """A planted fault: a merge that is not done anew after a compaction."""
    world = Following(place, table_format, in_log_order=True)
    world.send([upsert(id, "a") for id in range(9)])
    world.batch()
    world.keeps_files = True
    world.send([upsert(1, "b")])
    world.batch(beside=world.foreign_compaction)
    with pytest.raises(AssertionError):
        world.check()


def test_forgotten_deletes_would_be_seen(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: without what footers remember a late change brings a row back."""
    world = Following(place, "delta", in_log_order=False)
    world.send([upsert(1, "a", seq=1), delete(1, seq=5)])
    world.batch()
    monkeypatch.setattr(graves, "encode", lambda found: {})
    world.send([upsert(1, "b", seq=2), delete(2, seq=9)])
    world.batch()
    world.check()
    world.send([upsert(2, "late", seq=3)])
    world.batch()
    with pytest.raises(AssertionError):
        world.check()
