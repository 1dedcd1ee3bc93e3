"""A whole broker in a thread of the calling process, on a free port."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.server.node import Node

READY_TIMEOUT_S = 30.0


class EmbeddedBroker:
    """One node with its event loop in a background thread. Data is kept across `restart()`."""

    def __init__(self, data_dir: str, settings: Mapping[str, str]) -> None:
        self._data_dir, self._settings = data_dir, dict(settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None
        self._port = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def data_dir(self) -> str:
        return self._data_dir

    def start(self) -> None:
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="penstock-broker", daemon=True)
        self._thread.start()
        if not started.wait(READY_TIMEOUT_S):
            raise TimeoutError(f"the embedded broker was not ready within {READY_TIMEOUT_S:.0f} s")
        if failure:
            raise failure[0]

    def stop(self) -> None:
        """Stops cleanly: flushes, writes its markers and frees the port."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or self._node is None:
            return
        self._call(self._node.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(READY_TIMEOUT_S)
        self._loop = self._thread = self._node = None

    def restart(self) -> None:
        """Stops and starts again on the same port with the same data."""
        self.stop()
        self.start()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        assert self._loop is not None, "the broker runs"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(READY_TIMEOUT_S)

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        import uvloop

        from penstock.server.launch import dev_node

        loop = self._loop = uvloop.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            node = dev_node(self._data_dir, port=self._port, overrides=self._settings)
            loop.run_until_complete(node.start())
            self._node, self._port = node, node.port
        except BaseException as broken:
            failure.append(broken)
            loop.close()
            started.set()
            return
        started.set()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


@contextmanager
def broker(settings: Mapping[str, str] | None = None, *, data_dir: str | None = None) -> Iterator[EmbeddedBroker]:
    """A running broker. `settings` are broker properties by their Kafka names; data goes to a temporary directory
    unless `data_dir` names one."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as scratch:
        running = EmbeddedBroker(data_dir or scratch, settings or {})
        running.start()
        try:
            yield running
        finally:
            running.stop()
