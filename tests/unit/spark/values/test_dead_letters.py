"""Letters arrive where the user wants them, with their origin; in a table each once, whoever writes."""

from __future__ import annotations

import multiprocessing
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.blocking import Admin, Consumer
from penstock.spark.errors import BadOption, SparkRoomError, Undecodable
from penstock.spark.values.dead_letters import DeadLetter, DeadLetters, Reader, producer_settings, reader_now
from penstock.spark.values.letter_table import SCHEMA, LetterTable
from penstock.testing import broker
from tests.patience import within
from tests.unit.spark.values.letter_writer import READER, WHEN, letter, write_all


def contents(path: Path) -> list[dict[str, Any]]:
    return ds.dataset(DeltaTable(str(path)).file_uris(), schema=SCHEMA).to_table().to_pylist()


def offsets(path: Path) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in contents(path))


@pytest.mark.parametrize("text", ["", "keep", "fail:x", "topic:", "table: ", "topic"])
def test_a_policy_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match="fail, drop, topic:NAME or table:PATH"):
        DeadLetters.of(text)


def test_policies_pickle() -> None:
    for text in ("fail", "Drop", "topic:dead", "table:/lake/dead:letters"):
        policy = DeadLetters.of(text, {"bootstrap.servers": "localhost:9092"})
        assert pickle.loads(pickle.dumps(policy)) == policy
    assert DeadLetters.of("table:/lake/dead:letters").target == "/lake/dead:letters"


def test_fail_says_which_record_it_was_and_what_to_do() -> None:
    with pytest.raises(Undecodable) as told:
        DeadLetters.of("fail").deliver([letter(9), letter(5)])
    assert str(told.value).startswith("orders, partition 0, offset 5: broken (and 1 more beside it). Put such records")
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


def test_drop_and_no_letters_do_nothing() -> None:
    DeadLetters.of("drop").deliver([letter(1)])
    DeadLetters.of("fail").deliver([])


def test_letters_in_a_table_keep_everything(tmp_path: Path) -> None:
    DeadLetters.of(f"table:{tmp_path / 'dead'}").deliver([letter(5)], READER)
    (row,) = contents(tmp_path / "dead")
    seen_at = row.pop("seen_at")
    assert abs((datetime.now(UTC) - seen_at).total_seconds()) < 60
    assert row == {
        "topic": "orders",
        "partition": 0,
        "offset": 5,
        "timestamp": WHEN,
        "key": b"k",
        "value": b"\xff5",
        "headers": [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
        "error": "broken",
        "query": "orders to lake",
        "batch_id": 7,
    }


def test_a_batch_played_again_adds_only_what_is_missing(tmp_path: Path) -> None:
    table = LetterTable(str(tmp_path / "dead"))
    assert table.append([letter(5), letter(7)], READER, WHEN) == 2
    assert table.append([letter(5), letter(7)], READER, WHEN) == 0
    assert table.append([letter(6), letter(7), letter(8), letter(8), letter(5, partition=1)], READER, WHEN) == 3
    assert offsets(tmp_path / "dead") == [(0, 5), (0, 6), (0, 7), (0, 8), (1, 5)]


def test_a_topic_made_anew_has_letters_of_its_own(tmp_path: Path) -> None:
    table = LetterTable(str(tmp_path / "dead"))
    table.append([letter(5)], READER, WHEN)
    assert table.append([letter(5, when=WHEN.replace(year=2027))], READER, WHEN) == 1


def test_letters_survive_compaction(tmp_path: Path) -> None:
    table = LetterTable(str(tmp_path / "dead"))
    for offset in range(4):
        table.append([letter(offset)], READER, WHEN)
    DeltaTable(str(tmp_path / "dead")).optimize.compact()
    assert table.append([letter(offset) for offset in range(6)], READER, WHEN) == 2
    assert offsets(tmp_path / "dead") == [(0, offset) for offset in range(6)]


def test_a_table_of_something_else_is_left_alone(tmp_path: Path) -> None:
    import pyarrow as pa

    write_deltalake(str(tmp_path / "orders"), pa.table({"id": [1]}))
    with pytest.raises(BadOption, match="a table of something else, with columns id"):
        LetterTable(str(tmp_path / "orders")).append([letter(1)], READER, WHEN)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(SparkRoomError, match="cannot be made"):
        LetterTable(str(tmp_path / "file" / "dead")).append([letter(1)], READER, WHEN)


def test_twins_that_write_at_once_leave_each_letter_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(3)
    path = tmp_path / "dead"
    twins = [spawn.Process(target=write_all, args=(str(path), ready, 0, 26)) for _ in range(2)]
    for twin in twins:
        twin.start()
    write_all(str(path), ready, 1, 10)
    for twin in twins:
        twin.join(within(100))
    assert [twin.exitcode for twin in twins] == [0, 0]
    assert offsets(path) == [(0, offset) for offset in range(26)] + [(1, offset) for offset in range(10)]


def test_letters_in_a_topic_carry_their_origin() -> None:
    with broker() as running:
        with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topic("dead")
        policy = DeadLetters.of("topic:dead", {"bootstrap_servers": running.bootstrap_servers, "isolation_level": "x"})
        policy.deliver([letter(5), DeadLetter("orders", 1, 6, None, None, None, (), "no value")])
        with Consumer("dead", bootstrap_servers=running.bootstrap_servers, offset_reset="earliest") as consumer:
            found: list[Any] = []
            while len(found) < 2:
                found += consumer.poll(timeout_ms=10_000)
    first, second = sorted(found, key=lambda record: record.headers[2])
    assert (first.key, first.value) == (b"k", b"\xff5")
    assert list(first.headers) == [
        ("penstock.topic", b"orders"),
        ("penstock.partition", b"0"),
        ("penstock.offset", b"5"),
        ("penstock.error", b"broken"),
        ("penstock.timestamp", b"2026-03-04T05:06:07.890000+00:00"),
        ("h", b"1"),
        ("n", None),
    ]
    assert (second.key, second.value, second.headers[3]) == (None, None, ("penstock.error", b"no value"))


def test_an_unreachable_broker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.spark.values import dead_letters

    monkeypatch.setattr(dead_letters, "_WAIT_MS", "300")
    with pytest.raises(SparkRoomError, match=r"1 dead letters could not be written to topic dead at 127.0.0.1:1"):
        DeadLetters.of("topic:dead", {"bootstrap_servers": "127.0.0.1:1"}).deliver([letter(5)])


def test_a_producer_takes_what_it_shares_with_a_consumer() -> None:
    shared = producer_settings({"bootstrap.servers": "a:1", "client_id": "me", "fetch_min_bytes": "1"})
    assert {"bootstrap_servers": "a:1", "client_id": "me", "acks": "all"}.items() <= shared.items()
    assert "fetch_min_bytes" not in shared


def test_outside_of_a_task_there_is_no_query() -> None:
    assert reader_now() == Reader("", -1)
