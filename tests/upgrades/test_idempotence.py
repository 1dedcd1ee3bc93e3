"""What a release remembers of its idempotent producers is known to the code of today."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.compat.batches import Record, encode_batch
from tests.compat.wire import Connection, produce_reply, produce_request
from tests.releases.code import CODE, unpack
from tests.upgrades.mixed import TODAY, MixedCluster

TOPIC = "orders"
PRODUCER, EPOCH = 77, 3
NONE, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH = 0, 45, 47

releases = pytest.mark.parametrize("archive", CODE, ids=lambda path: path.name.removesuffix(".tar.xz"))


def sent(connection: Connection, sequence: int, *, epoch: int = EPOCH, count: int = 2) -> tuple[int, int]:
    """What a batch is answered: the error and the offset."""
    rows = [Record(b"%d" % (sequence + number)) for number in range(count)]
    now_ms = int(time.time() * 1_000)
    batch = encode_batch(
        rows, base_timestamp_ms=now_ms, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence
    )
    produced = produce_reply(connection.call(produce_request(TOPIC, 0, batch, acks=-1)))
    return produced.error, produced.base_offset


@releases
@pytest.mark.parametrize("by_kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.timeout(120)
def test_an_idempotent_producer_of_a_release_goes_on(archive: Path, tmp_path: Path, by_kill: bool) -> None:
    """What it sends again is not written again, what comes next is, and what skips numbers or is older is refused."""
    with MixedCluster(tmp_path / "cluster", unpack(archive, tmp_path / "release"), nodes=1) as cluster:
        cluster.new_topic(TOPIC, 1, 1)
        (node,) = cluster.brokers
        with cluster.connection(node) as connection:
            assert [sent(connection, sequence) for sequence in range(0, 14, 2)] == [
                (NONE, at) for at in range(0, 14, 2)
            ]
        cluster.change(node.node_id, TODAY, by_kill=by_kill)
        cluster.wait_until_whole()
        with cluster.connection(node) as connection:
            # The last five batches of a producer are known.
            assert [sent(connection, sequence) for sequence in range(4, 14, 2)] == [
                (NONE, at) for at in range(4, 14, 2)
            ]
            assert sent(connection, 14) == (NONE, 14)
            assert sent(connection, 100)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
            assert sent(connection, 0, epoch=EPOCH - 1)[0] == INVALID_PRODUCER_EPOCH
            assert sent(connection, 16) == (NONE, 16)
        assert node.stop() == 0
