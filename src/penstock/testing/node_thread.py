"""One node on an event loop of its own, in a thread of the calling process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from penstock.server.node import Node
    from penstock.testing.moving_time import MovingLoop

CALL_TIMEOUT_S = 30.0

# A program that has configured no logging gets warnings on its standard error. That the loop of a broker in a busy test
# process was late is none of them.
logging.getLogger("penstock.server.loop_watch").addHandler(logging.NullHandler())


class NodeThread:
    """Brings a node up, runs its loop until the node is stopped or killed, and leaves nothing behind. Used once."""

    def __init__(self, name: str, make_node: Callable[[], Node], prepare: Callable[[Node], None]) -> None:
        """`make_node` and `prepare` are called on the loop, before and after the start."""
        self._make_node, self._prepare = make_node, prepare
        self._entered, self._started = threading.Event(), _Outcome()
        self._loop: MovingLoop | None = None
        self._node: Node | None = None
        self._starting: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def loop(self) -> MovingLoop:
        assert self._loop is not None, "the thread runs"
        return self._loop

    @property
    def node(self) -> Node:
        assert self._node is not None, "the node was made"
        return self._node

    @property
    def ready(self) -> bool:
        """Whether the node came up and serves."""
        return self._started.succeeded

    def begin(self) -> None:
        """Returns when the thread runs; the node is on its way up then."""
        self._thread.start()
        self._entered.wait(CALL_TIMEOUT_S)

    def wait_ready(self, timeout_s: float) -> None:
        """Returns when clients are served; what keeps the node from starting is raised, and the thread is gone then."""
        try:
            self._started.wait(timeout_s)
        except TimeoutError:
            raise
        except BaseException:
            self._thread.join(CALL_TIMEOUT_S)
            raise

    def call(self, work: Coroutine[Any, Any, Any], timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """The result of something that runs on the node's loop."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout_s)

    def stop(self) -> None:
        """Stops the node cleanly, and the thread with it."""
        self._leave(lambda node: node.stop())

    def kill(self) -> None:
        """The node ends as if its process had been killed."""

        async def crash(node: Node) -> None:
            node.crash()

        self._leave(crash)

    def _leave(self, end: Callable[[Node], Awaitable[None]]) -> None:
        async def last() -> None:
            # One that still waits for others cannot be stopped in order, only given up.
            if self._starting is not None and not self._starting.done():
                self._starting.cancel()
                self.node.crash()
            else:
                await end(self.node)

        try:
            if self._thread.is_alive():
                self.call(last())
        finally:
            if self._thread.is_alive():
                self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(CALL_TIMEOUT_S)

    def _run(self) -> None:
        import asyncio

        from penstock.testing.moving_time import MovingLoop

        with asyncio.Runner(loop_factory=MovingLoop) as runner:
            loop = runner.get_loop()
            assert isinstance(loop, MovingLoop)
            self._loop = loop
            self._starting = loop.create_task(self._bring_up())
            loop.call_soon(self._entered.set)
            loop.run_forever()

    async def _bring_up(self) -> None:
        try:
            self._node = self._make_node()
            await self._node.start()
            self._prepare(self._node)
        except BaseException as broken:
            self._started.fail(broken)
            self.loop.stop()
        else:
            self._started.succeed()


class _Outcome:
    """How the start in the other thread ended."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._failure: BaseException | None = None

    @property
    def succeeded(self) -> bool:
        return self._known.is_set() and self._failure is None

    def succeed(self) -> None:
        self._known.set()

    def fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._known.set()

    def wait(self, timeout_s: float) -> None:
        if not self._known.wait(timeout_s):
            raise TimeoutError(f"the node was not ready within {timeout_s:.0f} s")
        if self._failure is not None:
            raise self._failure
