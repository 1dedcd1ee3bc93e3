"""Work on a directory is done in its order, off the loop, and ends with the first that fails."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.model.errors import StorageFailed
from penstock.server.partitions.upkeep.disk_queue import DiskQueue


class Gate:
    """An offload whose work is done when the gate is open."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    def call(self, work: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        async def later() -> Any:
            await self.open.wait()
            return work(*args)

        return later()


def queue() -> tuple[DiskQueue, Gate, list[StorageFailed]]:
    gate, failures = Gate(), list[StorageFailed]()
    return DiskQueue(gate, "/d", failures.append, name="work"), gate, failures  # type: ignore[arg-type]


def failing() -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_pieces_are_begun_one_after_the_other_and_told_of_in_order() -> None:
    async def main() -> None:
        work, gate, _ = queue()
        seen: list[str] = []
        for name in ("first", "second"):
            work.put(lambda name=name: seen.append(f"{name} begins") or (lambda: name), seen.append)  # type: ignore[misc, func-returns-value, return-value]
        reading = asyncio.ensure_future(work.do(lambda: "read"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert seen == ["first begins"]
        gate.open.set()
        assert await reading == "read"
        assert seen == ["first begins", "first", "second begins", "second"]

    asyncio.run(main())


def test_nothing_is_done_after_a_piece_that_failed_and_who_waits_is_told() -> None:
    async def main() -> None:
        work, gate, failures = queue()
        gate.open.set()
        work.put(lambda: failing, lambda _none: None)
        with pytest.raises(StorageFailed):
            await work.do(lambda: "never")
        assert [failure.why for failure in failures] == ["[Errno 5] Input/output error"]
        with pytest.raises(StorageFailed):
            await work.do(lambda: "nor this")
        await work.quiet()

    asyncio.run(main())


def test_a_failure_that_somebody_waits_for_is_theirs_alone() -> None:
    async def main() -> None:
        work, gate, failures = queue()
        gate.open.set()
        with pytest.raises(OSError, match="Input/output error"):
            await work.do(failing)
        assert await work.do(lambda: "goes on") == "goes on"
        assert failures == []

    asyncio.run(main())
