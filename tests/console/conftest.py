from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, running, settings_for
from tests.coroutines import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        yield found


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker) -> Iterator[RunningConsole]:
    with running(settings_for(node.client_settings)) as found:
        yield found
