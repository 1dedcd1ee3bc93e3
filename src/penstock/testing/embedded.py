"""A whole broker in a thread of the calling process, on a free port.

The heavy imports (asyncio, the server) happen when a broker starts: the pytest plugin is loaded by every pytest run of
an environment that has Penstock, also by those that never start one.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.certificates import ClientFiles
    from penstock.model.errors import ErrorCode
    from penstock.server.node import Node
    from penstock.testing.ancient import Past
    from penstock.testing.faults import Faults
    from penstock.testing.moving_time import MovingClock
    from penstock.testing.node_thread import NodeThread
    from penstock.testing.offload import CountingOffload
    from penstock.testing.security import EmbeddedSecurity

READY_TIMEOUT_S = 30.0
SETTLE_TIMEOUT_S = 30.0
QUIET_ROUNDS = 8

_TEST_DEFAULTS = {
    # The node's own liveness must outlast any leap of its clock: its heartbeats are as late as everything else then.
    "broker.session.timeout.ms": str((1 << 31) - 1),
    # Members of the newer protocol hear of a rebalance with their next heartbeat; tests should not wait 5 s for it.
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class Snapshot:
    """The data of a broker at one moment, kept in a directory until it is dropped."""

    def __init__(self, directory: str, ahead_ms: int) -> None:
        self.directory, self.ahead_ms = directory, ahead_ms

    def drop(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class EmbeddedBroker:
    """One node with its event loop in a background thread. Data and port are kept across `restart()`.

    May be used from any thread, and from a running event loop: the broker never touches the caller's.
    """

    def __init__(
        self, data_dir: str, settings: Mapping[str, object], *, passing: bool = False, secure: bool = False
    ) -> None:
        """`passing` data is not worth a sync: nobody wants it after the test."""
        self._data_dir, self._passing = data_dir, passing
        self._settings = {name: property_text(value) for name, value in settings.items()}
        self._thread: NodeThread | None = None
        self._thread_name = "penstock-broker"
        self._clock: MovingClock | None = None
        self._offload: CountingOffload | None = None
        self._faults: Faults | None = None
        self._faulty: set[str] = set()  # APIs whose handlers somebody stands in front of
        self._paused: threading.Event | None = None
        self._snapshots: list[Snapshot] = []
        self._port = 0
        self._security: EmbeddedSecurity | None = None
        if secure:
            from penstock.testing.security import EmbeddedSecurity

            self._security = EmbeddedSecurity(data_dir)

    @property
    def bootstrap_servers(self) -> str:
        """What any Kafka client takes as `bootstrap.servers`."""
        return f"127.0.0.1:{self._port}"

    @property
    def client_settings(self) -> dict[str, Any]:
        """Keywords for Penstock's own clients: `Producer(**b.client_settings)`. Of a secured broker with its user."""
        if self._security is None:
            return {"bootstrap_servers": self.bootstrap_servers}
        return self._security.client_settings(self.bootstrap_servers)

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The same for clients that are made of librdkafka, such as confluent-kafka."""
        if self._security is None:
            return {"bootstrap.servers": self.bootstrap_servers}
        return self._security.librdkafka_settings(self.bootstrap_servers)

    @property
    def client_files(self) -> ClientFiles:
        """Files for foreign clients of a secured broker: `java`, `librdkafka`, and `trusted`, its authority in PEM."""
        return self._secured().files

    @property
    def admin_url(self) -> str:
        """Where `/metrics`, `/healthz` and `/readyz` are."""
        return self._running().admin_url

    @property
    def data_dir(self) -> str:
        return self._data_dir

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.ready

    @property
    def node(self) -> Node:
        """The node itself, for those who look inside; to be touched on its own loop only."""
        return self._running()

    @property
    def clock(self) -> MovingClock:
        """The broker's clock. Penstock's own clients take it as `clock=`, and then their timeouts follow it."""
        if self._clock is None:
            from penstock.testing.moving_time import MovingClock

            self._clock = MovingClock()
        return self._clock

    # -- coming and going

    def start(self) -> None:
        """Returns when clients are served; whatever keeps the broker from starting is raised here."""
        if self._thread is None:
            self._begin()
            self._wait_ready(READY_TIMEOUT_S)

    def format(self, past: Past) -> None:
        """Makes the data directory of a broker that has this behind it before its first start."""
        from penstock.model.config import BrokerSettings
        from penstock.server.launch import dev_properties, format_node
        from penstock.testing.passing_files import PassingFiles

        settings = BrokerSettings.load(dev_properties(self._data_dir, port=0, overrides=self._settings))
        format_node(settings, None, ignore_formatted=True)
        past.lay_down(PassingFiles(), settings, self.clock.now_ms())

    def secure(self) -> None:
        """Makes certificates, the first user, and the data directory of a broker that knows them from its start."""
        from penstock.model.config import BrokerSettings
        from penstock.server.launch import DEV_NODE_ID, dev_properties, format_node

        self._secured().prepare([DEV_NODE_ID])
        settings = BrokerSettings.load(dev_properties(self._data_dir, port=0, overrides=self._overrides()))
        records = self._secured().first_user()
        format_node(settings, self._secured().cluster_id, ignore_formatted=True, records=records)

    def _begin(self) -> None:
        from penstock.testing.node_thread import NodeThread

        self._thread = NodeThread(self._thread_name, self._make_node, self._prepare)
        self._thread.begin()

    def _wait_ready(self, timeout_s: float) -> None:
        assert self._thread is not None, "it was begun"
        try:
            self._thread.wait_ready(timeout_s)
        except BaseException:
            thread, self._thread = self._thread, None
            thread.kill()
            raise
        self._port = self._thread.node.port
        if self._security is not None:
            self._security.reach(self._all_addresses())

    def _all_addresses(self) -> str:
        """What clients of the whole cluster are told."""
        return self.bootstrap_servers

    def stop(self) -> None:
        """Stops cleanly: flushes, writes its markers and frees the port. Stopping twice is fine."""
        self.resume()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def restart(self) -> None:
        """Stops and starts again on the same port with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops for good and drops the snapshots."""
        self.stop()
        for snapshot in self._snapshots:
            snapshot.drop()
        self._snapshots.clear()

    # -- time

    def advance(
        self, *, ms: int = 0, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Lets that much time pass for the broker, at once; returns when what fell due has been done.

        Retention, sessions of group members, rebalance and request timeouts: all of it follows. Clients keep the
        time of this process; to them the broker is one whose clock was set.
        """
        total_ms = whole_ms(ms, seconds, minutes, hours, days)
        self._running()
        self._call(self._leap(total_ms), SETTLE_TIMEOUT_S)

    async def _leap(self, ms: int) -> None:
        self.clock.move(ms)
        await self._advance(ms)

    async def _advance(self, ms: int) -> None:
        import asyncio

        assert self._thread is not None, "it runs"
        assert self._offload is not None, "it runs"
        loop = self._thread.loop
        loop.move(ms)
        self._thread.node.time_moved(ms)
        quiet = 0
        while quiet < QUIET_ROUNDS:
            await asyncio.sleep(0 if not self._offload.busy else 0.001)
            quiet = 0 if self._offload.busy or loop.overdue else quiet + 1

    # -- faults

    def fail(self, *, api: str, code: int | str | ErrorCode, times: int = 1) -> None:
        """Refuses the next `times` requests of `api` (`"Produce"`, `"JoinGroup"`, …) with `code`, an error's name
        or number. They take no effect."""
        from penstock.testing.faults import code_of

        self._order(api, code_of(code), times, served=False)

    def disconnect(self, *, api: str, times: int = 1, served: bool = False) -> None:
        """Closes the connection instead of answering the next `times` requests of `api`.

        With `served` they take effect first and only the reply is lost, which is the harder case for a client.
        """
        self._order(api, None, times, served=served)

    def faults_left(self, api: str) -> int:
        """How many ordered faults of `api` have not happened yet."""
        from penstock.testing.faults import api_named

        return 0 if self._faults is None else self._faults.left(api_named(api).name)

    def clear_faults(self) -> None:
        """Takes back what was ordered with `fail` and `disconnect`."""
        if self._faults is not None:
            self._faults.clear()

    def _order(self, api: str, code: int | None, times: int, *, served: bool) -> None:
        from penstock.server.reception.dispatch import SERVED
        from penstock.testing.faults import Faults, api_named

        if times < 1:
            raise ValueError(f"a fault happens at least once, not {times} times")
        wanted = api_named(api)
        if wanted.name not in SERVED:
            raise ValueError(f"this broker does not serve {wanted.name}")
        node, faults = self._running(), self._faults or Faults()
        self._faults = faults
        faults.order(wanted.name, code, times, served=served)

        async def stand_in_front() -> None:
            if wanted.name not in self._faulty:
                self._faulty.add(wanted.name)
                node.override(wanted.name, faults.around(wanted))

        self._call(stand_in_front())

    def pause(self) -> None:
        """Freezes the broker as SIGSTOP would: connections stay open, nothing is read, no timer runs."""
        if self._paused is not None:
            return
        self._running()
        assert self._thread is not None, "it runs"
        frozen, go_on = threading.Event(), threading.Event()

        def freeze() -> None:
            frozen.set()
            go_on.wait()

        self._paused = go_on
        self._thread.loop.call_soon_threadsafe(freeze)
        if not frozen.wait(READY_TIMEOUT_S):
            raise TimeoutError(f"the broker did not come to rest within {READY_TIMEOUT_S:.0f} s")

    def resume(self) -> None:
        """Ends `pause`."""
        if self._paused is not None:
            self._paused.set()
            self._paused = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """`with b.paused(): ...` is `pause` and `resume`."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    # -- going back

    def snapshot(self) -> Snapshot:
        """Keeps what the broker holds now. Clients notice nothing but a moment's silence."""
        import tempfile

        directory = tempfile.mkdtemp(prefix="penstock-snapshot-")
        was_paused = self._paused is not None
        if self.running:
            self.pause()
        try:
            shutil.copytree(self._data_dir, directory, dirs_exist_ok=True)
        finally:
            if not was_paused:
                self.resume()
        taken = Snapshot(directory, self.clock.ahead_ms)
        self._snapshots.append(taken)
        return taken

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot: its data, its time, no faults. The port stays, connections are closed."""
        self.stop()
        shutil.rmtree(self._data_dir)
        shutil.copytree(snapshot.directory, self._data_dir)
        self.clock.ahead_ms = snapshot.ahead_ms
        self.clear_faults()
        self.start()

    # -- the thread

    def _running(self) -> Node:
        if self._thread is None:
            raise RuntimeError("the broker does not run; start() it first")
        return self._thread.node

    def _secured(self) -> EmbeddedSecurity:
        if self._security is None:
            raise RuntimeError("the broker is an open one; broker(secure=True) makes a secured one")
        return self._security

    def _call(self, work: Coroutine[Any, Any, Any], timeout_s: float = READY_TIMEOUT_S) -> Any:
        assert self._thread is not None, "it runs"
        return self._thread.call(work, timeout_s)

    def _prepare(self, node: Node) -> None:
        """Faults that were ordered before a restart stay ordered."""
        from penstock.testing.faults import api_named

        for name in self._faulty:
            assert self._faults is not None, "somebody ordered a fault"
            node.override(name, self._faults.around(api_named(name)))

    def _make_node(self) -> Node:
        from penstock.server.launch import Given, dev_node
        from penstock.testing.offload import CountingOffload
        from penstock.testing.passing_files import PassingFiles

        self._offload = CountingOffload()
        return dev_node(
            self._data_dir,
            port=self._port,
            overrides=self._overrides(),
            given=Given(self.clock, self._offload, PassingFiles() if self._passing else None),
        )

    def _overrides(self) -> dict[str, str]:
        # Only the clients' port has to stay the same; the others are free ones, so that brokers never meet.
        own = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:0",
            "controller.quorum.bootstrap.servers": "127.0.0.1:0",
            "penstock.admin.listener": "127.0.0.1:0",
        }
        if self._security is not None:
            from penstock.certificates.node_settings import Ports
            from penstock.server.launch import DEV_NODE_ID

            secured = self._security.settings(DEV_NODE_ID, Ports(self._port, 0, 0), self._settings)
            return {**_TEST_DEFAULTS, **own, **secured}
        return {**_TEST_DEFAULTS, **own, **self._settings}


def whole_ms(ms: int, seconds: float, minutes: float, hours: float, days: float) -> int:
    total_ms = round(ms + seconds * 1e3 + minutes * 6e4 + hours * 3.6e6 + days * 8.64e7)
    if total_ms < 0:
        raise ValueError(f"time does not go back: {total_ms} ms")
    return total_ms


def property_text(value: object) -> str:
    """Properties are text; `True` and `3` are what one writes in a test."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def broker(
    settings: Mapping[str, object] | None = None,
    *,
    data_dir: str | None = None,
    past: Past | None = None,
    secure: bool = False,
) -> Iterator[EmbeddedBroker]:
    """A running broker. `settings` are broker properties by their Kafka names; data goes to a temporary directory
    unless `data_dir` names one. With a `past` it begins old (`penstock.testing.ancient`).

    A `secure` one has TLS, logins and an authorizer as `penstock dev --secure` has them: `client_settings` are the
    keywords of its user `admin` for our clients, `librdkafka_settings` and `client_files` those for others.
    """
    import tempfile

    if secure and past is not None:
        raise ValueError("a broker with a past is an open one")

    with tempfile.TemporaryDirectory(prefix="penstock-") as scratch:
        running = EmbeddedBroker(data_dir or scratch, settings or {}, passing=data_dir is None, secure=secure)
        if secure:
            running.secure()
        if past is not None:
            running.format(past)
        running.start()
        try:
            yield running
        finally:
            running.close()
