"""A real disk that does not answer: its node goes on voting and heartbeating, and gives it up in the end."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.compat.processes import free_ports, wait_for
from tests.faults.cluster.disks import Disk, disks_allowed
from tests.faults.node import Ledger, NodeProcess, let_pass
from tests.patience import within

HANG_S = 5.0
GIVEN_UP_AFTER_S = 3
# Of the loop that votes and heartbeats, on an idle machine. On a busy one its thread also waits for the interpreter's
# lock while whoever has that gets no processor; never for as long as a disk that hangs would hold it.
HELD_MS_MAX = 250


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if not disks_allowed():
        pytest.skip("a disk that hangs is ext4 of our own, and mounting it takes root")
    made = Disk(tmp_path / "image", tmp_path / "data")
    made.make()
    yield made
    with suppress(OSError):
        made.thaw()
    made.close()


class Admin:
    """The admin port of a node."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=within(10)) as reply:
            text: str = reply.read().decode()
            return text

    def number(self, name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", self.page("/metrics"), re.MULTILINE)
        assert found is not None, f"{name} is told"
        return float(found[1])


@pytest.mark.timeout(180)
def test_a_disk_that_hangs_deposes_nobody_and_costs_nothing_acknowledged(disk: Disk) -> None:
    admin = Admin()
    node = NodeProcess(disk.path, f"penstock.admin.listener=127.0.0.1:{admin.port}")
    node.start()
    try:
        node.create_topic("t")
        epoch = admin.number("kafka_server_raftmetrics_current_epoch")
        with Ledger(node.address, "t", 1) as ledger:
            ledger.wait_for_more(20)
            disk.hang()
            let_pass(HANG_S / 2)
            assert json.loads(admin.page("/readyz"))["status"] == "ready", "the other loop answers meanwhile"
            let_pass(HANG_S / 2)
            disk.thaw()
            ledger.wait_for_more(20)
            ledger.finish()
            assert not ledger.failed
        assert admin.number("kafka_server_raftmetrics_current_epoch") == epoch
        assert admin.number("penstock_loop_lag_max_ms") > HANG_S * 500, "the disk did hang"
        assert admin.number("penstock_control_loop_held_max_ms") <= min(within(HELD_MS_MAX), HANG_S * 500)
        assert "fenced" not in node.words()
    finally:
        with suppress(OSError):
            disk.thaw()
        assert node.stop() == 0


@pytest.mark.timeout(180)
def test_a_node_whose_only_disk_hangs_for_too_long_ends_with_a_sentence(disk: Disk) -> None:
    node = NodeProcess(disk.path, f"penstock.log.dir.hang.timeout.ms={GIVEN_UP_AFTER_S * 1_000}")
    node.start()
    node.create_topic("t")
    with Ledger(node.address, "t", 1, **{"message.timeout.ms": 5_000}) as ledger:
        ledger.wait_for_more(20)
        disk.hang()
        wait_for(
            "words about the disk",
            lambda: "has not come back" in node.words() or "is held" in node.words(),
            timeout_s=60,
        )
        # The process cannot die before the disk lets go of its calls.
        let_pass(1)
        wait_for("the end of all patience", lambda: "is cut off" in node.words(), timeout_s=60)
        disk.thaw()
        assert node.ended() == 1
