"""The agent: inputs, their channels, one outlet, from start to stop, and reloading in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from penstock.agent.channel import Channel
from penstock.agent.checkpoints import Checkpoints
from penstock.agent.counting import AgentStatus, Counts, InputReport
from penstock.agent.environment import Environment, now_ms
from penstock.agent.errors import CannotReload
from penstock.agent.exactly.beginning import INPUT as NOTE
from penstock.agent.exactly.beginning import Note, note_in
from penstock.agent.exactly.identity import Identity, machine_of
from penstock.agent.exactly.positions import Positions
from penstock.agent.exactly.topic import PositionsTopic
from penstock.agent.exactly.transactions import TIMEOUT_MS, ExactlyOnce
from penstock.agent.inputs.input import Input
from penstock.agent.inputs.tail.settings import TailSettings
from penstock.agent.outlet.outlet import Outlet
from penstock.agent.settings.kinds import SPOOLED, kind_of
from penstock.agent.settings.model import AgentSettings, InputSettings
from penstock.agent.settings.producing import common_keywords, keywords_of, unknown_topic_after_ms
from penstock.agent.spool.spool import Spool
from penstock.agent.state_lock import StateLock
from penstock.agent.supervision import FINISHED, SupervisedInput
from penstock.agent.telling import Teller

log = logging.getLogger("penstock.agent")

CHECKPOINTS_FILE: Final = "checkpoints.db"
FOREVER_MS: Final = 1e12


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Names of inputs. One that changed was stopped and started."""

    started: tuple[str, ...]
    stopped: tuple[str, ...]
    kept: tuple[str, ...]


class Agent:
    """One agent. `run` is its life; everything else is called from the same loop, but for `stop`."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings
        self.ready = asyncio.Event()
        """Inputs are running. Brokers may be away all the same: see `status().outlet.brokers_reachable`."""
        self.teller = Teller()
        self._since_ms = now_ms()
        self._inputs: dict[str, SupervisedInput] = {}
        self._lock = StateLock(settings.state_dir)
        self._checkpoints = Checkpoints(settings.state_dir / CHECKPOINTS_FILE)
        self._outlet: Outlet | None = None
        self._identity = Identity(settings.name, machine_of(settings.machine_id)) if settings.exactly_once else None
        self._positions: Positions | None = None
        self._transacting: asyncio.Task[None] | None = None
        self.transactions: ExactlyOnce | None = None
        """With `exactly_once`, when it runs."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stops = 0
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._changing = asyncio.Lock()
        self._reloads = 0

    # Life.

    async def run(self) -> None:
        """Until `stop`, or until every input has come to its end. Raises AgentError when it cannot begin or go on."""
        self._loop = asyncio.get_running_loop()
        self._lock.take()
        try:
            await self._begin()
            if self._stops:
                self._request_stop()
            self.ready.set()
            await self._stopping.wait()
        except asyncio.CancelledError:
            self._hurry.set()
            raise
        finally:
            self._stopping.set()
            async with self._changing:
                await self._end()
            self._lock.release()
        self._raise_what_ended_it()

    def stop(self) -> None:
        """Asks for the end, from any thread or signal handler. Asking twice ends the waiting for acknowledgements."""
        self._stops += 1
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._request_stop)

    def _request_stop(self) -> None:
        self._stopping.set()
        if self._stops > 1:
            self._hurry.set()

    async def _begin(self) -> None:
        settings = self.settings
        await self._checkpoints.open()
        self._outlet = outlet = Outlet(
            self._keywords(settings),
            settings.output.memory_bytes,
            self._spool(),
            spool_after_ms=settings.spool.after_ms if settings.spool is not None else 5_000,
            unknown_topic_after_ms=unknown_topic_after_ms(settings.output.kafka),
            teller=self.teller,
        )
        if self._identity is None:
            await self._leave_transactions()
        else:
            self._make_transactions(self._identity, outlet)
        await outlet.start()
        self._start(settings.inputs.values())

    def _keywords(self, settings: AgentSettings) -> dict[str, Any]:
        """Of the producer."""
        keywords = keywords_of(settings)
        if self._identity is not None:
            keywords |= {
                "transactional_id": self._identity.transactional_id,
                "transaction_timeout_ms": TIMEOUT_MS,
            }
        return keywords

    # Exactly once.

    async def _leave_transactions(self) -> None:
        """Local positions go their own way from here on; what the topic has is older."""
        note = note_in(await self._checkpoints.load(NOTE))
        if note is not None and note.follows:
            await self._checkpoints.save(NOTE, [Note(follows=False, proven=False).row()])

    def _make_transactions(self, identity: Identity, outlet: Outlet) -> None:
        self._positions = positions = Positions(self._checkpoints, self.teller.wrong)

        def topic() -> PositionsTopic:
            return PositionsTopic(common_keywords(self._keywords(self.settings)), identity)

        self.transactions = ExactlyOnce(outlet, positions, topic, identity, self.settings.state_dir)
        outlet.transactions = self.transactions
        self._transacting = asyncio.get_running_loop().create_task(self.transactions.run())
        self._transacting.add_done_callback(self._no_more_transactions)

    def _no_more_transactions(self, task: asyncio.Task[None]) -> None:
        """Nothing can be sent any more: the agent ends, and says why."""
        if not task.cancelled() and task.exception() is not None:
            self._hurry.set()
            self._stopping.set()
        if self._positions is not None:
            self._positions.give_up()

    async def _end_transactions(self) -> None:
        if self._transacting is not None:
            self._transacting.cancel()
            await asyncio.wait([self._transacting])
        if self._positions is not None:
            await self._positions.copy()

    def _raise_what_ended_it(self) -> None:
        task = self._transacting
        if task is not None and not task.cancelled() and (failure := task.exception()) is not None:
            raise failure

    def _spool(self) -> Spool | None:
        spool = self.settings.spool
        return None if spool is None else Spool(spool.path, spool.size_bytes, self.teller.wrong)

    async def _end(self) -> None:
        """Inputs first, then what they put, then their positions, then the connections."""
        inputs = list(self._inputs.values())
        await asyncio.gather(*(each.stop() for each in inputs))
        if self._outlet is not None and not await self._flushed(self._outlet):
            self.teller.wrong(
                "not everything was acknowledged before the end (output.flush_within); files are read from there again"
                " at the next start"
            )
            if self._positions is not None:
                self._positions.give_up()
        await asyncio.gather(*(each.close() for each in inputs))
        await self._end_transactions()
        await self._checkpoints.close()
        if self._outlet is not None:
            await self._outlet.close()

    async def _flushed(self, outlet: Outlet) -> bool:
        """The last flush, which ends early when somebody is in a hurry."""
        flush = asyncio.ensure_future(outlet.stop(self.settings.output.flush_within_ms))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait([flush, hurry], return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if flush.done():
            return flush.result()
        flush.cancel()
        await asyncio.wait([flush])
        return await outlet.stop(0)

    # Inputs.

    def _start(self, chosen: Iterable[InputSettings]) -> None:
        outlet = self._outlet
        assert outlet is not None, "the outlet is there before the inputs"
        for settings in chosen:
            lane = outlet.lane(settings.name, spools=settings.kind in SPOOLED)
            channel = Channel(settings, self.settings.host, lane)
            supervised = self._inputs[settings.name] = self._supervised(settings, channel, outlet)
            supervised.start()

    def _supervised(self, settings: InputSettings, channel: Channel, outlet: Outlet) -> SupervisedInput:
        agent = self.settings
        env = Environment(
            agent=agent.name,
            host=agent.host,
            state_dir=agent.state_dir,
            input=settings.name,
            checkpoints=self._checkpoints,
            claimed=lambda: self._claimed_by_others(settings.name),
            positions=self._positions,
            bounded_memory_bytes=agent.output.memory_bytes,
        )

        def make() -> Input:
            return kind_of(settings.kind).make(settings.own, channel, env)

        return SupervisedInput(
            settings,
            make,
            # What came over the network is read by nobody again, and its senders must not wait for brokers.
            flushed=lambda: outlet.flush(0 if settings.kind in SPOOLED else FOREVER_MS, settings.name),
            teller=self.teller,
            finished=self._one_finished,
        )

    def _claimed_by_others(self, name: str) -> tuple[str, ...]:
        """Globs of files that other inputs read: as they are now, for inputs come and go."""
        owns = [each.own for each in self.settings.inputs.values() if each.name != name]
        return tuple(glob for own in owns if isinstance(own, TailSettings) for glob in own.paths)

    def _one_finished(self) -> None:
        """An agent whose inputs have all come to their end has nothing more to do."""
        if all(each.state == FINISHED for each in self._inputs.values()):
            self._stopping.set()

    async def _stop_inputs(self, names: list[str], outlet: Outlet) -> None:
        stopped = [self._inputs.pop(name) for name in names]
        await asyncio.gather(*(each.stop() for each in stopped))
        for each in stopped:
            if not await outlet.flush(self.settings.output.flush_within_ms, each.settings.name):
                self.teller.wrong(f"input {each.settings.name}: brokers did not acknowledge everything before it ended")
        await asyncio.gather(*(each.close() for each in stopped))
        for name in names:
            outlet.retire(name)

    # Reloading.

    async def reload(self, settings: AgentSettings) -> Reloaded:
        """Goes on with other settings. Inputs that are the same in both go on as if nothing had happened.

        CannotReload when the agent would have to be started anew; then nothing was changed.
        """
        async with self._changing:
            self._check_reloadable(settings)
            outlet = self._outlet
            if outlet is None or self._stopping.is_set():
                raise CannotReload("the agent is not running")
            before, now = self.settings.inputs, settings.inputs
            kept = [name for name in before if name in now and now[name].digest == before[name].digest]
            stopped = [name for name in before if name not in kept]
            started = [name for name in now if name not in kept]
            await self._stop_inputs(stopped, outlet)
            old, self.settings = self.settings, settings
            await self._change_output(old, settings, outlet)
            self._start(now[name] for name in started)
            self._reloads += 1
            return Reloaded(tuple(started), tuple(stopped), tuple(kept))

    def _check_reloadable(self, settings: AgentSettings) -> None:
        old = self.settings
        spools = [None if each is None else each.path for each in (old.spool, settings.spool)]
        for what, changed in (
            ("name", old.name != settings.name),
            ("state_dir", old.state_dir != settings.state_dir),
            ("spool", spools[0] != spools[1]),
            ("exactly_once", old.exactly_once != settings.exactly_once),
            ("machine_id", old.machine_id != settings.machine_id),
        ):
            if changed:
                raise CannotReload(
                    f"{what} cannot change while the agent runs; nothing was changed, restart it for that"
                )

    async def _change_output(self, old: AgentSettings, new: AgentSettings, outlet: Outlet) -> None:
        outlet.memory.resize(new.output.memory_bytes)
        if new.spool is not None and outlet.spool is not None:
            outlet.spool.cap_bytes, outlet.spool_after_ms = new.spool.size_bytes, new.spool.after_ms
        unknown_ms = unknown_topic_after_ms(new.output.kafka)
        if keywords_of(old) != keywords_of(new) or unknown_topic_after_ms(old.output.kafka) != unknown_ms:
            await outlet.replace_producer(self._keywords(new), unknown_ms, new.output.flush_within_ms)

    # Telling.

    def status(self, details: bool = False) -> AgentStatus:
        """How it goes. `details` tells each file."""
        found = AgentStatus(self.settings.name, self._since_ms, reloads=self._reloads, stopping=self._stopping.is_set())
        found.checkpoints_failing_ms = int(self._checkpoints.failing_s * 1000)
        outlet = self._outlet
        if outlet is not None:
            found.outlet = outlet.status()
        if self.transactions is not None:
            found.transactions = self.transactions.status()
        for name, each in self._inputs.items():
            lane = None if outlet is None else outlet.lanes.get(name)
            counts = Counts() if lane is None else lane.counts
            report = InputReport(
                **asdict(counts), status=each.status(details=details), state=each.state, restarts=each.restarts
            )
            if lane is not None:
                report.waiting_bytes = lane.share.used_bytes
            found.inputs[name] = report
        return found
