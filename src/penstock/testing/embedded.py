"""A whole broker in a thread of the calling process, on a free port.

The heavy imports (asyncio, the server) happen when a broker starts: the pytest plugin is loaded by every pytest run of
an environment that has Penstock, also by those that never start one.
"""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from penstock.server.node import Node

READY_TIMEOUT_S = 30.0


class EmbeddedBroker:
    """One node with its event loop in a background thread. Data and port are kept across `restart()`.

    May be used from any thread, and from a running event loop: the broker never touches the caller's.
    """

    def __init__(self, data_dir: str, settings: Mapping[str, object]) -> None:
        self._data_dir = data_dir
        self._settings = {name: _property(value) for name, value in settings.items()}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None
        self._port = 0

    @property
    def bootstrap_servers(self) -> str:
        """What any Kafka client takes as `bootstrap.servers`."""
        return f"127.0.0.1:{self._port}"

    @property
    def admin_url(self) -> str:
        """Where `/metrics`, `/healthz` and `/readyz` are."""
        assert self._node is not None, "the broker runs"
        return f"http://127.0.0.1:{self._node.admin_port}"

    @property
    def data_dir(self) -> str:
        return self._data_dir

    @property
    def running(self) -> bool:
        return self._node is not None

    def start(self) -> None:
        """Returns when clients are served; whatever keeps the broker from starting is raised here."""
        if self.running:
            return
        started = _Outcome()
        self._thread = threading.Thread(target=self._run, args=(started,), name="penstock-broker", daemon=True)
        self._thread.start()
        try:
            started.wait(READY_TIMEOUT_S)
        except BaseException:
            self._thread.join(READY_TIMEOUT_S)
            self._thread = None
            raise

    def stop(self) -> None:
        """Stops cleanly: flushes, writes its markers and frees the port. Stopping twice is fine."""
        loop, thread, node = self._loop, self._thread, self._node
        if loop is None or thread is None or node is None:
            return
        self._node = None
        try:
            self._call(loop, node.stop())
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(READY_TIMEOUT_S)
            self._loop = self._thread = None

    def restart(self) -> None:
        """Stops and starts again on the same port with the same data."""
        self.stop()
        self.start()

    @staticmethod
    def _call(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
        import asyncio

        return asyncio.run_coroutine_threadsafe(work, loop).result(READY_TIMEOUT_S)

    def _run(self, started: _Outcome) -> None:
        """The thread: brings a node up, runs its loop until `stop`, and leaves nothing behind."""
        import asyncio

        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            loop = runner.get_loop()
            try:
                node = runner.run(self._bring_up())
            except BaseException as broken:
                started.fail(broken)
                return
            self._loop, self._node, self._port = loop, node, node.port
            started.succeed()
            loop.run_forever()

    async def _bring_up(self) -> Node:
        node = self._make_node()
        await node.start()
        return node

    def _make_node(self) -> Node:
        from penstock.server.launch import dev_node

        # Only the clients' port has to stay the same; the others are free ones, so that brokers never meet.
        ports = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:0",
            "controller.quorum.bootstrap.servers": "127.0.0.1:0",
            "penstock.admin.listener": "127.0.0.1:0",
        }
        return dev_node(self._data_dir, port=self._port, overrides={**ports, **self._settings})


class _Outcome:
    """How the start in the other thread ended."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._failure: BaseException | None = None

    def succeed(self) -> None:
        self._known.set()

    def fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._known.set()

    def wait(self, timeout_s: float) -> None:
        if not self._known.wait(timeout_s):
            raise TimeoutError(f"the embedded broker was not ready within {timeout_s:.0f} s")
        if self._failure is not None:
            raise self._failure


def _property(value: object) -> str:
    """Properties are text; `True` and `3` are what one writes in a test."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def broker(settings: Mapping[str, object] | None = None, *, data_dir: str | None = None) -> Iterator[EmbeddedBroker]:
    """A running broker. `settings` are broker properties by their Kafka names; data goes to a temporary directory
    unless `data_dir` names one."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="penstock-") as scratch:
        running = EmbeddedBroker(data_dir or scratch, settings or {})
        running.start()
        try:
            yield running
        finally:
            running.stop()
