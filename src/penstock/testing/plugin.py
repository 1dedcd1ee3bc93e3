"""The pytest plugin: `def test_it(penstock_broker): ...` gets a fresh broker, `penstock_cluster` three nodes, and
`penstock_flow("shop.toml")` puts a pipeline on trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.testing.cluster import EmbeddedCluster
    from penstock.testing.embedded import EmbeddedBroker
    from penstock.testing.pipeline import PipelineTrial


@pytest.fixture
def penstock_broker() -> Iterator[EmbeddedBroker]:
    """A broker with one node on a free port, gone after the test."""
    from penstock.testing.embedded import broker

    with broker() as running:
        yield running


@pytest.fixture
def penstock_cluster() -> Iterator[EmbeddedCluster]:
    """A cluster of three nodes on free ports, gone after the test."""
    from penstock.testing.cluster import cluster

    with cluster(nodes=3) as running:
        yield running


@pytest.fixture
def penstock_flow() -> Iterator[Callable[[str | Path], PipelineTrial]]:
    """Puts the pipeline of a file on trial: `penstock_flow("shop.toml")`; all of it is gone after the test."""
    from penstock.testing.pipeline import run_flow

    with ExitStack() as stack:
        yield lambda file: stack.enter_context(run_flow(file))
