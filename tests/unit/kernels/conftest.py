"""Every kernel test runs against both twins; without a compiler only the pure one is there."""

from __future__ import annotations

from types import ModuleType

import pytest

from penstock.kernels import _pure, _pure_client

try:
    from penstock.kernels import _compiled
except ImportError:
    TWINS: list[ModuleType] = [_pure]
else:
    TWINS = [_pure, _compiled]


@pytest.fixture(params=TWINS, ids=[twin.IMPLEMENTATION for twin in TWINS])
def twin(request: pytest.FixtureRequest) -> ModuleType:
    chosen: ModuleType = request.param
    return chosen


try:
    from penstock.kernels import _compiled_client
except ImportError:
    CLIENT_TWINS: list[ModuleType] = [_pure_client]
else:
    CLIENT_TWINS = [_pure_client, _compiled_client]


@pytest.fixture(params=CLIENT_TWINS, ids=[twin.IMPLEMENTATION for twin in CLIENT_TWINS])
def client_twin(request: pytest.FixtureRequest) -> ModuleType:
    chosen: ModuleType = request.param
    return chosen
