"""One node for all tests that only need topics of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing import broker


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    with broker({"delete.topic.enable": True}) as running:
        yield running.bootstrap_servers
