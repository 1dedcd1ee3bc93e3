"""Connections that a worker would keep for ever end with the module that opened them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.spark.dialogue import for_process


@pytest.fixture(scope="module", autouse=True)
def hang_up() -> Iterator[None]:
    yield
    for_process().close()
