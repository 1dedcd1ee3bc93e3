"""Every kernel test runs against both twins; without a compiler only the pure one is there."""

from __future__ import annotations

from types import ModuleType

import pytest

from penstock.kernels import _pure

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
