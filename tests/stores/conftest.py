"""One server for all tests of a process; each test has a bucket of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.object_store import ObjectStore, object_store


@pytest.fixture(scope="session")
def store_server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def bucket(store_server: ObjectStore) -> str:
    return store_server.bucket()
