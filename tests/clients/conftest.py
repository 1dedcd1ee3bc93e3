"""One node for the session, or any broker that PENSTOCK_TEST_BOOTSTRAP names; each client in turn."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.clients.interface import Client, ProducerSettings  # noqa: E402 (needs the path above)
from tests.clients.libraries import CLIENTS  # noqa: E402
from tests.compat.judged import PENSTOCK  # noqa: E402
from tests.compat.processes import Child, free_ports, wait_for  # noqa: E402
from tests.compat.wire import answers_metadata, create_topic  # noqa: E402

# The pace of the consumer protocol is the broker's to say; five seconds between heartbeats are long for a test.
QUICK_GROUPS = [
    part
    for setting in (
        "group.consumer.min.heartbeat.interval.ms=100",
        "group.consumer.heartbeat.interval.ms=100",
        "group.consumer.assignment.interval.ms=0",
    )
    for part in ("-c", setting)
]


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the broker under test."""
    given = os.environ.get("PENSTOCK_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    (port,) = free_ports(1)
    home = tmp_path_factory.mktemp("node")
    command = [PENSTOCK, "dev", "--port", str(port), "--data-dir", str(home / "data"), *QUICK_GROUPS]
    node = Child(command, home / "node.log")
    try:

        def serving() -> bool:
            assert node.running(), f"the node ended while starting:\n{node.tail()}"
            return answers_metadata("127.0.0.1", port)

        wait_for("the node", serving, timeout_s=60)
        yield f"127.0.0.1:{port}"
    finally:
        node.stop()


@pytest.fixture(scope="session", params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    return CLIENTS[request.param](bootstrap)


@pytest.fixture(params=["defaults", "idempotent"])
def settings(request: pytest.FixtureRequest) -> ProducerSettings:
    """The client's default settings, and again with idempotence on."""
    return ProducerSettings(idempotent=request.param == "idempotent")


_numbers = itertools.count(1)


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[..., str]:
    """Makes a topic that no other test uses: `new_topic(partitions=3, **{"retention.ms": "1"})`."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"clients-{os.getpid()}-{next(_numbers)}"
        # Records of other years stay however long the tests take.
        create_topic(bootstrap, name, partitions, {"retention.ms": "-1", **configs})
        return name

    return make
