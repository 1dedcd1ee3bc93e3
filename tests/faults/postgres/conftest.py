"""One Postgres and one broker for the tests of this folder, which may be coroutines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing import EmbeddedBroker, broker
from tests.coroutines import pytest_pyfunc_call
from tests.faults.postgres.server import PostgresServer, postgres_server

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 1}) as running:
        yield running
