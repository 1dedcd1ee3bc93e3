"""Penstock's own client against Apache Kafka: the suites that it passes against our node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat.conftest import ROOT, NodeFactory
from tests.patience import within

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

# A rebalance should not wait for members that do not come.
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


def test_it_passes_the_suite_of_all_clients_against_apache_kafka(make_node: NodeFactory, tmp_path: Path) -> None:
    node = make_node("apache", apache=True, properties=QUICK_GROUPS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/clients", "-k", "penstock"],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_TEST_BOOTSTRAP": node.bootstrap},
        capture_output=True,
        text=True,
        timeout=within(500),
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout
