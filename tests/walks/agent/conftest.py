"""Tests of this folder may be coroutines; agents know the input `feed`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.agent.settings.kinds import KINDS
from penstock.testing import EmbeddedBroker, broker
from tests.coroutines import pytest_pyfunc_call
from tests.walks.agent.feeding import FEEDS

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(autouse=True)
def _feeds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(KINDS, "feed", "tests.walks.agent.feeding")
    FEEDS.clear()
    yield
    FEEDS.clear()


@pytest.fixture
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 1}) as running:
        yield running
