"""An agent as a process: its signals, its admin port, its view, and what the service manager hears of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final

from penstock.agent.admin.port import AdminPort
from penstock.agent.admin.snapshot import Snapshot, picture
from penstock.agent.presence import Presence, announce, withdraw
from penstock.agent.settings import AgentSettings
from penstock.agent.view.rates import Rates
from penstock.agent.view.views import Silence, View, short
from penstock.cli.systemd_notify import Notify
from penstock.model.errors import PenstockError
from penstock.model.units import count
from penstock.model.version import VERSION
from penstock.processes import birth_of

if TYPE_CHECKING:
    from penstock.agent.agent import Agent, Reloaded

STDERR: Final = 2
PULSE_S: Final = 10.0
"""How often the service manager is told how we are, when it does not want to hear it more often."""

LISTENING_WITHIN_S: Final = 5.0
ASKED_WITHIN_S: Final = 2.0
"""How long the first picture waits to know whether brokers answer."""

_log = logging.getLogger("penstock.agent")

Load = Callable[[], AgentSettings]


def run_agent(settings: AgentSettings, load: Load, view: View) -> None:
    """Until it is told to stop, or cannot go on. `load` reads the file again when there is a HUP."""
    import uvloop

    from penstock.agent.agent import Agent

    attendance = Attendance(Agent(settings), settings, load, view)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(attendance.run())


class Attendance:
    """Everything around an agent that makes it a good service."""

    def __init__(
        self, agent: Agent, settings: AgentSettings, load: Load, view: View, notify: Notify | None = None
    ) -> None:
        self._settings, self._load, self._view = settings, load, view
        self._notify = notify or Notify()
        self._agent = agent
        self._port: AdminPort | None = None
        self._began_s = time.monotonic()
        self._rates = Rates()
        self._had_terminal = os.isatty(STDERR)
        self._asked_to_stop = False
        self._reloading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        with self._signals():
            working = asyncio.create_task(self._agent.run())
            ready = asyncio.create_task(self._agent.ready.wait())
            try:
                await asyncio.wait((working, ready), return_when=asyncio.FIRST_COMPLETED)
                if ready.done():
                    await self._wait_until(listening, LISTENING_WITHIN_S)
                    await self._go_public()
                await working
            finally:
                ready.cancel()
                await self._retire(working)

    def look(self, details: bool = False) -> Snapshot:
        return picture(
            self._agent.status(details=details),
            self._settings,
            up_s=time.monotonic() - self._began_s,
            admin=self._port.address if self._port else "",
            ready=self._agent.ready.is_set(),
        )

    async def _wait_until(self, enough: Callable[[Snapshot], bool], within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not enough(self.look()):
                    await asyncio.sleep(0.01)

    async def _go_public(self) -> None:
        if self._settings.admin is not None:
            self._port = await self._opened(self._settings.admin)
        self._announce()
        names = ", ".join(self._settings.inputs)
        where = f"; http://{self._port.address}/status" if self._port else ""
        _log.info("%s is ready: %s → %s%s", self._settings.name, names, self._settings.bootstrap, where)
        self._notify.ready(count("input", len(self._settings.inputs)))
        self._spawn(self._show())
        self._spawn(self._pulse())

    async def _opened(self, address: str) -> AdminPort:
        port = AdminPort(self.look)
        await port.open(address)
        return port

    def _announce(self) -> None:
        presence = Presence(
            pid=os.getpid(),
            name=self._settings.name,
            admin=self._port.address if self._port else "",
            version=VERSION,
            file=str(self._settings.path),
            born=birth_of(os.getpid()),
        )
        try:
            announce(self._settings.state_dir, presence)
        except OSError as failure:
            _log.warning("`penstock agent status` will not find this agent: %s", failure)

    async def _retire(self, working: asyncio.Task[None]) -> None:
        """The last picture is one of an agent that is through."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        if self._port is not None:
            await self._port.close()
        withdraw(self._settings.state_dir, os.getpid())
        await asyncio.to_thread(self._last_words)

    def _last_words(self) -> None:
        with contextlib.suppress(OSError):
            self._view.close(self.look() if self._agent.ready.is_set() else None)

    # -- signals

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop)
        loop.add_signal_handler(signal.SIGHUP, self._on_hup)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def _on_stop(self) -> None:
        if self._asked_to_stop:
            _log.warning("stopped at once; what was not acknowledged is read again by the next start")
            withdraw(self._settings.state_dir, os.getpid())
            with contextlib.suppress(OSError):
                self._view.close(None)
            os._exit(1)
        self._asked_to_stop = True
        self._notify.stopping()
        _log.info("stopping: what was read is sent first; a second signal ends it at once")
        self._agent.stop()

    def _on_hup(self) -> None:
        if self._had_terminal and not os.isatty(STDERR):
            # The terminal was closed: nobody asked for a reload, and nobody would find the agent that went on.
            self._on_stop()
        else:
            self._spawn(self._reload())

    async def _reload(self) -> None:
        """A file that is broken, or asks for what a running agent cannot change, leaves everything as it was."""
        async with self._reloading:
            if self._asked_to_stop or not self._agent.ready.is_set():
                return
            self._notify.reloading()
            try:
                settings = await asyncio.to_thread(self._load)
                done = await self._agent.reload(settings)
            except (PenstockError, OSError) as failure:
                _log.error("not reloaded, the agent goes on as it was:\n%s", failure)
                self._notify.ready("not reloaded: the file is broken, see the log")
                return
            before, self._settings = self._settings, settings
            await self._move_port(before.admin, settings.admin)
            _log.info("reloaded %s: %s", settings.path, told(done))
            self._notify.ready(f"reloaded, {count('input', len(settings.inputs))}")

    async def _move_port(self, before: str | None, now: str | None) -> None:
        if before == now:
            return
        old = self._port
        try:
            self._port = None if now is None else await self._opened(now)
        except PenstockError as failure:
            _log.error("the admin port stays where it is: %s", failure)
            return
        self._announce()
        if old is not None:
            await old.close()

    # -- what goes on meanwhile

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _show(self) -> None:
        """In a thread, one at a time: a terminal that is held up (Ctrl-S) must not hold up the agent."""
        await self._wait_until(lambda now: now.brokers_up or bool(now.last_error), ASKED_WITHIN_S)
        while True:
            try:
                await asyncio.to_thread(self._view.show, self.look())
            except OSError:
                # Nobody is there to look any more; that is no reason to end.
                self._view = Silence()
            await asyncio.sleep(self._view.every_s)

    async def _pulse(self) -> None:
        """Says that the loop turns. Half of what the watchdog allows is what its manual advises."""
        every_s = min(PULSE_S, self._notify.watchdog_s / 2) if self._notify.watchdog_s else PULSE_S
        while True:
            snapshot = self.look()
            self._notify.alive(short(snapshot, self._rates.feed(snapshot.inputs, time.monotonic())))
            await asyncio.sleep(every_s)


def listening(snapshot: Snapshot) -> bool:
    """Whoever hears that an agent is ready may send at once: inputs should listen by then, or have said why not."""
    return all("starting" not in (each.state, each.words) for each in snapshot.inputs.values())


def told(done: Reloaded) -> str:
    """What a reload came to."""
    parts = [
        f"{verb} {', '.join(names)}" for verb, names in (("started", done.started), ("stopped", done.stopped)) if names
    ]
    kept = len(done.kept)
    parts += [f"{kept} unchanged"] if kept or not parts else []
    return "; ".join(parts)
