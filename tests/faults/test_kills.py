"""kill -9 under load: what was acknowledged is there after every restart, once, at its offset."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.compat.processes import wait_for
from tests.faults.counts import SOAKING, rounds
from tests.faults.node import Ledger, NodeProcess, let_pass, read_all

PARTITIONS = 3


@pytest.mark.timeout(3_600 if SOAKING else 180)
@pytest.mark.parametrize("sync", [False, True], ids=["page-cache", "fsync-before-ack"])
def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path, sync: bool) -> None:
    chance = random.Random(20_260_101 + sync)
    node = NodeProcess(tmp_path / "data", "log.segment.bytes=2097152", "log.flush.offset.checkpoint.interval.ms=1000")
    node.start()
    try:
        node.create_topic("ledger", PARTITIONS, **({"flush_messages": "1"} if sync else {}))
        with Ledger(node.address, "ledger", PARTITIONS) as ledger:
            for _ in rounds(fast=3 if sync else 5, full=50):
                ledger.wait_for_more(50)
                let_pass(chance.uniform(0, 1.0))
                node.kill()
                node.start()
            ledger.finish()
        found = read_all(node.address, "ledger", range(PARTITIONS))
        missing = {key: value for key, value in ledger.acknowledged.items() if found.get(key) != value}
        assert not missing, f"{len(missing)} of {len(ledger.acknowledged)} acknowledged records are gone or changed"
        values = list(found.values())
        assert len(values) == len(set(values)), "an idempotent producer's records are there once"
        assert ledger.failed == 0
        assert node.stop() == 0
    finally:
        node.kill()


def test_recovery_starts_at_the_recovery_point(tmp_path: Path) -> None:
    """Sealed and flushed segments are not read again after a crash."""
    node = NodeProcess(tmp_path / "data", "log.segment.bytes=1048576", "log.flush.offset.checkpoint.interval.ms=200")
    node.start()
    try:
        node.create_topic("ledger", 1)
        with Ledger(node.address, "ledger", 1) as ledger:
            wait_for("several segments", lambda: len(ledger.acknowledged) > 60_000, timeout_s=60)
            ledger.finish()
        checkpoint = tmp_path / "data" / "node-1" / "recovery-point-offset-checkpoint"

        def recovery_point() -> int:
            found = re.search(r"^ledger 0 (\d+)$", checkpoint.read_text(), re.M) if checkpoint.exists() else None
            return int(found[1]) if found else 0

        point = wait_for("a recovery point beyond the first segment", recovery_point, timeout_s=30)
        node.kill()
        size = node.log.stat().st_size
        node.start()
        scanned = re.search(r"recovered ledger-0 from offset (\d+)", node.words(size))
        assert scanned is not None, node.words(size)
        first = sorted(int(path.stem) for path in (tmp_path / "data/node-1/ledger-0").glob("*.log"))
        containing = max(base for base in first if base <= point)
        assert int(scanned[1]) >= containing
        assert len(read_all(node.address, "ledger", [0])) == len(ledger.acknowledged)
    finally:
        node.kill()
