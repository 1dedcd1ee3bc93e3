"""The loop of transactions of one agent: begin, fill, positions, commit; what failed is sent again, in its order.

One transaction holds what took off from all lanes while it was open. It is closed after `EVERY_MS`, sooner when it
holds what the link carries in time (`Allowance`), or when somebody waits; then no shipment takes off, the positions
behind those that did are written into it, and it is committed. Only after that are they done.

An abort gives everything back to the lanes. Any other failure, and every one after the commit was asked for, of which
an answer may have been lost, ends the producer: another one with the same
transactional id takes its place, which aborts what was open, and the topic of positions tells what became of it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.agent.checkpoints import Change
from penstock.agent.counting import TransactionsStatus
from penstock.agent.environment import monotonic_ms
from penstock.agent.errors import AgentFenced
from penstock.agent.exactly.allowance import Allowance
from penstock.agent.exactly.beginning import Begins, Note, begins
from penstock.agent.exactly.identity import Identity
from penstock.agent.exactly.outcome import Outcome, judge
from penstock.agent.exactly.positions import Positions
from penstock.agent.exactly.rows import Found, Stamp, row_records, stamp_record
from penstock.agent.exactly.topic import TOPIC, PositionsTopic, vanished
from penstock.agent.outlet.marks import KEY, SpoolMarks
from penstock.agent.outlet.outlet import Outlet
from penstock.client.errors import ClientError, TimedOutWaiting, TransactionAbortable, UnknownTopic
from penstock.client.retry import Backoff

log = logging.getLogger("penstock.agent")

EVERY_MS: Final = 500.0
"""A line waits for so long at most before its transaction is closed."""
TIMEOUT_MS: Final = 10_000
"""Readers of the topics wait for so long at most when an agent dies with a transaction open."""
SHARE_OF_MEMORY: Final = 2
"""A transaction that holds one part in so many of the memory is closed: inputs go on with the rest meanwhile."""
LOOK_S: Final = 0.25
LOOK_AT_TOPIC_EVERY: Final = 100
"""So many commits apart it is asked whether the topic of positions is the one that it was."""
RETRY_FIRST_MS: Final = 100
RETRY_LONGEST_MS: Final = 5_000


@dataclass(slots=True)
class Attempt:
    """A transaction whose positions are written, or are about to be."""

    stamp: Stamp
    changes: dict[str, Change]


class ExactlyOnce:
    """Of one agent; the outlet's `Transactions`. `run` is its life, and raises what ends the agent."""

    def __init__(
        self,
        outlet: Outlet,
        positions: Positions,
        topic_of: Callable[[], PositionsTopic],
        identity: Identity,
        state_dir: Path,
    ) -> None:
        self._outlet, self._positions, self._topic_of = outlet, positions, topic_of
        self._identity, self._state_dir = identity, state_dir
        self._stamp = Stamp(uuid.uuid4().hex[:16], 0)
        """Of the transaction of now, or the next."""
        self._last: Stamp | None = None
        """The last that is known to be committed."""
        self._lives: dict[str, int] = {}
        self._topic_id = ""
        self._partition = 0
        self._offset = -1
        self._doubt: Attempt | None = None
        """The end of this one is not known."""
        self._open = self._begun = self._spoiled = self._hurried = self._ending = False
        self._closed_ms = monotonic_ms()
        self._allowance = Allowance(TIMEOUT_MS)
        self._filled_bytes = 0
        self._since_ms: float | None = None
        self._news = asyncio.Event()
        self._current: asyncio.Task[None] | None = None
        self._next_producer: tuple[Mapping[str, Any], int] | None = None
        self._replaced = asyncio.Event()
        self._replaced.set()
        self._marks: dict[str, SpoolMarks] = {}
        self._found: Found | None = None
        """What was in the topic at the start; None until it is known."""
        self._backoff = Backoff(RETRY_FIRST_MS, RETRY_LONGEST_MS)
        self._failures = 0
        self.commits = self.aborts = 0
        self._committed_ms: float | None = None
        positions.hurry = self.hurry

    # What the outlet asks and tells.

    @property
    def open(self) -> bool:
        return self._open and not self._spoiled and not self._full

    @property
    def closed_since_ms(self) -> float:
        return self._closed_ms

    @property
    def number(self) -> int:
        return self._stamp.number

    def took_off(self, size_bytes: int) -> None:
        self._filled_bytes += size_bytes
        if self._since_ms is None:
            self._since_ms = monotonic_ms()
            self._news.set()
        elif self._full:
            self._news.set()

    @property
    def _full(self) -> bool:
        bytes_max = min(self._allowance.bytes, self._outlet.memory.limit_bytes // SHARE_OF_MEMORY)
        return self._filled_bytes >= bytes_max

    def spoiled(self) -> None:
        self._spoiled = True
        self._news.set()

    def give_up(self) -> bool:
        if self._current is None or self._ending or not self._is_stamped:
            return False
        self._next_producer = self._next_producer or self._outlet.made_of
        self._current.cancel()
        return True

    def hurry(self) -> None:
        self._hurried = True
        self._news.set()

    def marks(self, input: str) -> SpoolMarks:
        if input not in self._marks:
            name = f"spool:{input}"
            marks = self._marks[input] = SpoolMarks(self._stamp.life)
            self._positions.attach(name, marks)
            if self._found is not None:
                marks.learn(self._positions.row(name, KEY), self._found.lives)
        return self._marks[input]

    async def replace(self, settings: Mapping[str, Any], unknown_topic_after_ms: int, within_ms: float) -> None:
        self._next_producer = (settings, unknown_topic_after_ms)
        self._replaced.clear()
        self.hurry()
        try:
            async with asyncio.timeout(within_ms / 1000):
                await self._replaced.wait()
        except TimeoutError:
            self._outlet.tell("brokers did not take everything before their connection was replaced; it is sent again")
            if self._current is not None:
                self._current.cancel()
            await self._replaced.wait()

    def status(self) -> TransactionsStatus:
        """How it goes."""
        age_ms = 0.0 if self._committed_ms is None else monotonic_ms() - self._committed_ms
        return TransactionsStatus(
            self._identity.transactional_id, TOPIC, self._partition, self.commits, self.aborts, age_ms / 1000
        )

    # Life.

    async def run(self) -> None:
        """Until it is cancelled. AgentFenced, PositionsVanished and other AgentErrors are the end of the agent."""
        copying = asyncio.get_running_loop().create_task(self._positions.keep_copies())
        try:
            await self._take_over()
            while True:
                if self._next_producer is not None:
                    await self._change_producer()
                await self._step()
        finally:
            self._close()
            copying.cancel()

    async def _step(self) -> None:
        """One transaction, whatever becomes of it."""
        self._current = asyncio.get_running_loop().create_task(self._transaction())
        try:
            await asyncio.wait([self._current])
        except asyncio.CancelledError:
            self._current.cancel()
            await asyncio.wait([self._current])
            raise
        task, self._current = self._current, None
        self._close()
        if task.cancelled():
            return  # for another producer, which comes next
        failure = task.exception()
        if failure is None:
            self._failures = 0
        elif isinstance(failure, TransactionAbortable) and not self._ending:
            await self._abort(failure)
        elif isinstance(failure, ClientError):
            self._outlet.tell(f"the producer is replaced: {failure}")
            self._next_producer = self._next_producer or self._outlet.made_of
        else:
            raise failure

    # The beginning.

    async def _take_over(self) -> None:
        """Fences whoever was before, and learns how far that one came."""
        note = await self._positions.note()
        proven = note is not None and note.follows and note.proven
        topic = await self._patiently(lambda: self._topic_of().now(make=not proven))
        if topic is None:
            raise vanished(self._identity, self._state_dir)
        self._topic_id = topic.id
        await self._begin_patiently()
        found = await self._patiently(lambda: self._topic_of().find(topic.partitions))
        where = begins(note, stamped=found.stamp is not None)
        if where is Begins.NOWHERE:
            raise vanished(self._identity, self._state_dir)
        self._believe(found)
        await self._positions.begin(found, where)
        self._found = found
        for input, marks in self._marks.items():
            marks.learn(self._positions.row(f"spool:{input}", KEY), found.lives)
        if note is None or not note.follows:
            await self._positions.write_note(Note(follows=True, proven=False))
        self.hurry()
        while not self._is_stamped:
            if self._next_producer is not None:
                # The topic may say then that the stamp is there.
                await self._change_producer()
            else:
                await self._step()
        await self._positions.write_note(Note(follows=True, proven=True))
        self._positions.opened()

    def _believe(self, found: Found) -> None:
        self._last, self._lives = found.stamp, dict(found.lives)
        self._partition, self._offset = found.partition, found.offset

    async def _patiently(self, ask: Callable[[], Any]) -> Any:
        """Asks until brokers answer."""
        failures = 0
        while True:
            try:
                return await ask()
            except ClientError as failure:
                failures += 1
                self._outlet.tell(f"positions in {TOPIC} cannot be read: {failure}; tried again")
                await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)
                if self._next_producer is not None:
                    # Other settings may be what it takes.
                    await self._swap()

    async def _begin_patiently(self) -> None:
        if not self._begun:
            await self._patiently(self._outlet.producer.begin)
            self._begun = True

    # A transaction.

    async def _transaction(self) -> None:
        if self.commits and self.commits % LOOK_AT_TOPIC_EVERY == 0:
            await self._look_at_topic()
        await self._fill()
        self._doubt = Attempt(self._stamp, {})
        offset = await self._write(self._doubt)
        await self._commit()
        await self._outlet.all_landed()
        self._committed(self._doubt, offset)

    async def _fill(self) -> None:
        """Open until it is time."""
        if not self._begun:
            while True:
                try:
                    await self._outlet.producer.begin()
                    break
                except TimedOutWaiting:
                    continue
            self._begun = True
            self._stamp = Stamp(self._stamp.life, self._stamp.number + 1)
        self._spoiled, self._filled_bytes, self._since_ms = False, 0, None
        # Nothing may be sent before the stamp of this life is there: positions are not known to inputs until then.
        self._open = self._last is not None and self._last.life == self._stamp.life
        self._outlet.pump()
        while not self._is_time():
            self._news.clear()
            try:
                async with asyncio.timeout(self._wait_s()):
                    await self._news.wait()
            except TimeoutError:
                if self._since_ms is None and self._positions.pending:
                    self._since_ms = monotonic_ms()
        self._hurried = False
        self._close()

    def _close(self) -> None:
        if self._open:
            self._open, self._closed_ms = False, monotonic_ms()

    def _is_time(self) -> bool:
        if self._spoiled or self._full:
            return True
        if not self._is_stamped:
            return True
        if self._hurried and (self._since_ms is not None or self._positions.pending):
            return True
        self._hurried = False
        if self._next_producer is not None and self._since_ms is None:
            return True
        return self._since_ms is not None and monotonic_ms() - self._since_ms >= EVERY_MS

    @property
    def _is_stamped(self) -> bool:
        return self._last is not None and self._last.life == self._stamp.life

    def _wait_s(self) -> float:
        if self._since_ms is None:
            return LOOK_S
        return max(self._since_ms + EVERY_MS - monotonic_ms(), 0.0) / 1000 + 0.001

    async def _look_at_topic(self) -> None:
        """Brokers that are written to by the names of topics do not say when another one is called the same."""
        topic = await self._topic_of().now(make=False)
        if topic is None or topic.id != self._topic_id:
            raise vanished(self._identity, self._state_dir)

    async def _write(self, attempt: Attempt) -> int:
        """Stages what took off, and sends positions and stamp after it. Answers the offset of the stamp."""
        for lane in self._outlet.lanes.values():
            lane.stage()
        attempt.changes = self._positions.take()
        records: list[tuple[bytes, bytes | None]] = []
        for input, change in attempt.changes.items():
            records += row_records(self._identity, input, change.rows, change.forgotten)
        records.append(stamp_record(self._identity, attempt.stamp, self._lives))
        producer = self._outlet.producer
        delivery = producer.send_batch(
            TOPIC, [value for _, value in records], keys=[key for key, _ in records], partition=self._partition
        )
        await producer.flush()
        spans = (await delivery).spans
        offset = spans[-1].base_offset + spans[-1].count - 1
        if offset <= self._offset or producer.topic_id(TOPIC) != self._topic_id:
            # Made anew by somebody, perhaps by this very record: what it had is gone.
            raise vanished(self._identity, self._state_dir)
        return offset

    async def _commit(self) -> None:
        self._ending = True
        while True:
            try:
                await self._outlet.producer.commit()
                return
            except TimedOutWaiting as waiting:
                self._outlet.tell(f"a transaction is not committed yet: {waiting}")

    def _committed(self, attempt: Attempt, offset: int) -> None:
        self._begun, self._ending, self._doubt = False, False, None
        self._last, self._offset = attempt.stamp, offset
        self._lives[attempt.stamp.life] = attempt.stamp.number
        self.commits += 1
        self._learn(committed=True)
        self._committed_ms = monotonic_ms()
        self._positions.commit(attempt.changes)
        for lane in self._outlet.lanes.values():
            lane.committed()

    def _learn(self, *, committed: bool) -> None:
        if self._filled_bytes and self._since_ms is not None:
            self._allowance.learn(self._filled_bytes, monotonic_ms() - self._since_ms, committed=committed)
        self._filled_bytes = 0

    # Failures.

    def _gave_up(self) -> None:
        """Nothing of the transaction will ever be seen."""
        attempt, self._doubt = self._doubt, None
        self._begun = self._ending = False
        self.aborts += 1
        self._learn(committed=False)
        for lane in self._outlet.lanes.values():
            lane.aborted()
        if attempt is not None:
            self._positions.abort(attempt.changes)

    async def _abort(self, lost: TransactionAbortable) -> None:
        log.debug("a transaction is aborted: %s", lost)
        while True:
            try:
                await self._outlet.producer.abort()
                break
            except TimedOutWaiting:
                continue
            except ClientError as failure:
                self._outlet.tell(f"the producer is replaced: {failure}")
                self._next_producer = self._next_producer or self._outlet.made_of
                return
        await self._outlet.all_landed()
        self._gave_up()
        await self._rest()

    async def _rest(self) -> None:
        self._failures += 1
        await asyncio.sleep(self._backoff.delay_ms(self._failures) / 1000)

    async def _change_producer(self) -> None:
        """Another one takes the place of the one that was; the topic says how the last transaction ended."""
        told_to = not self._replaced.is_set()
        await self._swap()
        if not self._ending:
            # Nobody has asked for a commit, so there was none, whatever brokers do.
            self._gave_up()
        if not told_to:
            # Other settings are no failure, and whoever changes them waits for this.
            if self._failures:
                await self._rest()
            self._failures += 1
        await self._resolve()
        self._outlet.producer_changed()

    async def _swap(self) -> None:
        assert self._next_producer is not None, "somebody wants it"
        settings, self._next_producer = self._next_producer, None
        await self._outlet.change_producer(*settings)
        await self._outlet.all_landed()
        self._begun = False
        self._replaced.set()

    async def _resolve(self) -> None:
        # Looked at before it is taken over: who was replaced must not disturb who came after it.
        self._check(await self._patiently(lambda: self._seen(self._topic_of().peek)))
        await self._begin_patiently()
        found = await self._patiently(lambda: self._seen(self._topic_of().read))
        doubt, begun = self._doubt, self._begun
        if self._check(found) is Outcome.COMMITTED:
            assert doubt is not None, "only a transaction in doubt is found to be committed"
            self._committed(doubt, found.offset)
        elif doubt is not None:
            self._gave_up()
        if begun:
            self._begun = True
            self._stamp = Stamp(self._stamp.life, self._stamp.number + 1)

    async def _seen(self, look: Callable[[int], Any]) -> Found | None:
        try:
            found: Found = await look(self._partition)
            return found
        except UnknownTopic:
            return None

    def _check(self, found: Found | None) -> Outcome:
        stamp = None if found is None else found.stamp
        outcome = judge(stamp, self._last, None if self._doubt is None else self._doubt.stamp)
        if outcome is Outcome.VANISHED or found is None:
            raise vanished(self._identity, self._state_dir)
        if outcome is Outcome.FENCED:
            assert stamp is not None, "somebody's"
            raise AgentFenced(self._identity.transactional_id, stamp.life)
        return outcome
