"""For conftest files of folders whose tests may be coroutines: each runs on a loop of its own, within a time."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from tests.patience import at_most

TEST_TIMEOUT_S = 90


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def main() -> None:
        async with at_most(TEST_TIMEOUT_S):
            await pyfuncitem.obj(**given)

    asyncio.run(main())
    return True
