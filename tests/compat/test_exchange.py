"""The exchange: Apache Kafka opens a copy of our data directory, and our node a copy of Kafka's.

Nothing may be lost or look different on the other side: records, offsets, timestamps, headers, configs, topic ids.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.compat.batches import Record, encode_batch
from tests.compat.conftest import NodeFactory
from tests.compat.contents import EAGER, read_contents, write_contents
from tests.compat.processes import wait_for
from tests.compat.wire import connect, create_topic, produce, stored_batches

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]


@pytest.mark.parametrize("ending", ["stopped", "killed"])
@pytest.mark.parametrize("from_apache", [False, True], ids=["ours-to-apache", "apache-to-ours"])
def test_a_copied_data_directory_shows_the_same_contents(
    make_node: NodeFactory, tmp_path: Path, from_apache: bool, ending: str
) -> None:
    first = make_node("first", apache=from_apache, properties=EAGER)
    write_contents(first.bootstrap)
    before = read_contents(first.bootstrap)
    assert before.records["codec-zstd", 0], "a test that compares nothing proves nothing"
    if ending == "stopped":
        first.stop()
    else:
        # Only a checkpoint keeps a log start that DeleteRecords moved; a kill before it would bring the records back.
        checkpoint = first.data_dir / "log-start-offset-checkpoint"
        wait_for(
            "the checkpoint of log starts",
            lambda: checkpoint.exists() and "trimmed 0 60\n" in checkpoint.read_text(),
            timeout_s=30,
        )
        first.kill()
    shutil.copytree(first.data_dir, tmp_path / "second" / "data")
    second = make_node("second", apache=not from_apache)
    assert read_contents(second.bootstrap) == before


def numbered_batch(sequence: int) -> bytes:
    # The time must be recent: a producer whose last batch is older than a day is forgotten when the log is loaded.
    now_ms = int(time.time() * 1000)
    return encode_batch(
        [Record(b"value")], base_timestamp_ms=now_ms, producer_id=77, producer_epoch=0, base_sequence=sequence
    )


@pytest.mark.parametrize("from_apache", [False, True], ids=["ours-to-apache", "apache-to-ours"])
def test_the_other_node_goes_on_where_the_first_stopped(
    make_node: NodeFactory, tmp_path: Path, from_apache: bool
) -> None:
    first = make_node("first", apache=from_apache)
    create_topic(first.bootstrap, "continued")
    with connect(first.bootstrap) as connection:
        for sequence in range(3):
            batch = numbered_batch(sequence)
            produce(connection, "continued", 0, batch)
    first.stop()
    shutil.copytree(first.data_dir, tmp_path / "second" / "data")
    second = make_node("second", apache=not from_apache)
    with connect(second.bootstrap) as connection:
        # The producer's last sequence came over with the snapshot: a repeat is answered with its first offset.
        assert produce(connection, "continued", 0, batch).base_offset == 2
        assert produce(connection, "continued", 0, numbered_batch(3)).base_offset == 3
    # A restart of the only broker is a new leadership, and the epochs of a log never fall.
    epochs = [each.leader_epoch for each in stored_batches(second.bootstrap, "continued")]
    assert epochs == sorted(epochs)
    assert epochs[-1] > epochs[0]
    create_topic(second.bootstrap, "later", 2)
    second.stop()
    second.start()
    assert [each.base_offset for each in stored_batches(second.bootstrap, "continued")] == [0, 1, 2, 3]
