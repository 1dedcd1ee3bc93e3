"""Runs the controller's decisions: ask, append, apply with no await in between; the reply waits for commit and
publication.

The controller has a working image at the end of the log, apart from the published one. It is made when this node
becomes the leader of the quorum and dropped when it no longer is. When an append or an apply fails, the working
image is dropped and made anew from what is published and what is in the log, so nothing is ever undone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from penstock.controller.batches import plan_batches
from penstock.controller.controller import Controller
from penstock.controller.elections import was_unclean
from penstock.controller.leaders import ELECTIONS_MAX
from penstock.controller.tokens import SWEPT_MAX, TokenAsker
from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    Refused,
    StorageFailed,
)
from penstock.model.ids import NodeId, Offset
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from penstock.security.delegation import TokenIndex, token_settings
from penstock.security.quotas.tokens import FREE, MUTATIONS_IN_STRICT, Mutations
from penstock.server.controller.links import HeartbeatLinks
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.duty import reason
from penstock.transport.deadline import Deadline

if TYPE_CHECKING:
    from random import Random

    from penstock.controller.decision import ControllerSettings, Decision
    from penstock.metadata.image import ClusterImage
    from penstock.metadata.records import Record, VersionedRecord
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock
    from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
    from penstock.protocol.wire import Message
    from penstock.security.quotas.clients import ClientQuotas
    from penstock.server.doors import Context
    from penstock.server.quorum.metadata_driver import LogBatch, MetadataDriver

log = logging.getLogger("penstock.controller")

REFUSED_PAUSE_MS: Final = 50.0
BROKER_HEARTBEAT: Final = 63


class ControllerLog(Protocol):
    """What the quorum driver does for the controller."""

    @property
    def end(self) -> Offset: ...
    @property
    def kraft_version(self) -> int: ...
    @property
    def gone_leader(self) -> NodeId:
        """The leader before us, when nobody listens any more where it did; -1 otherwise."""

    def append(self, records: Sequence[VersionedRecord]) -> LogBatch:
        """One batch, at once in the log and soon synced. Refused with NOT_CONTROLLER when this node does not lead."""


@dataclass(frozen=True, slots=True)
class ControllerTimes:
    """How often the active controller does something by itself; 0 means never."""

    idle_interval_ms: int = 500
    preferred_leaders_ms: int = 300_000
    unclean_leaders_ms: int = 300_000
    token_sweep_ms: int = 0

    @classmethod
    def of(cls, settings: BrokerSettings) -> ControllerTimes:
        rebalance_s = settings.number("leader.imbalance.check.interval.seconds")
        return cls(
            idle_interval_ms=settings.number("metadata.max.idle.interval.ms"),
            preferred_leaders_ms=rebalance_s * 1_000 if settings.flag("auto.leader.rebalance.enable") else 0,
            unclean_leaders_ms=settings.number("unclean.leader.election.interval.ms"),
            token_sweep_ms=settings.number("delegation.token.expiry.check.interval.ms")
            if settings["delegation.token.secret.key"]
            else 0,
        )


class ControllerDriver:
    """The door `Services.controller`. Active while this node leads the quorum."""

    def __init__(
        self,
        quorum: ControllerLog,
        metadata: MetadataDriver,
        clock: Clock,
        random: Random,
        settings: ControllerSettings,
        times: ControllerTimes,
        *,
        bootstrap: Callable[[], Iterable[Record]] = lambda: (),
        on_fatal: Callable[[Exception], None] = lambda _why: None,
        quotas: ClientQuotas | None = None,
    ) -> None:
        """`quotas` follow the image of this side: how much clients may change of partitions."""
        self._quorum, self._metadata, self._clock, self._random = quorum, metadata, clock, random
        self._settings, self._times = settings, times
        self._bootstrap, self._on_fatal = bootstrap, on_fatal
        self._controller: Controller | None = None
        self._timer: Deadline | None = None
        self._appended_at = self._preferred_at = self._unclean_at = self._swept_at = 0.0
        self._tokens = token_settings(settings.broker)
        self._token_index = None if self._tokens.secret is None else TokenIndex(self._tokens.secret)
        self._links = HeartbeatLinks(self._link_lost)
        self._quotas = quotas
        self.unclean_elections = 0

    @property
    def active(self) -> bool:
        return self._controller is not None

    # Leadership

    def lead(self) -> None:
        """This node has become the leader of the quorum; its first own record is in the log."""
        now = self._clock.monotonic_ms()
        self._appended_at = self._preferred_at = self._unclean_at = self._swept_at = now
        try:
            controller = self._controller = self._replayed()
            self._run(controller, controller.activate(now, self._bootstrap))
            if (gone := controller.image.brokers.get(self._quorum.gone_leader)) is not None:
                controller.link_lost(gone.id, gone.epoch, now)
        except StorageFailed as failure:
            self._fail(failure)
            return
        self._set_timer()

    def resign(self) -> None:
        """Another node leads, or this one stops. Those who wait learn of it from the log, or not at all."""
        self._controller = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _replayed(self) -> Controller:
        """A controller whose working image holds everything up to the end of the log."""
        controller = Controller(self._metadata.image.copy(), self._random, self._settings)
        for batch in self._metadata.uncommitted:
            self._tell(controller, batch)
        return controller

    # Requests

    def submit(self, request: Message, ctx: Context) -> Awaitable[Message]:
        """Decides now, in the order of calls; the reply comes when the decision is published on this node.

        Refused with NOT_CONTROLLER when another node leads, with REQUEST_TIMED_OUT when the request has a timeout and
        it passed first: the change is in the log then and may still come true.
        """

        def may_describe(name: str) -> bool:
            return ctx.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)

        asker = TokenAsker(ctx.principal, self._clock.now_ms(), self._tokens, self._token_index)
        decided = self._decide(request, ctx.api_version, may_describe, asker, self._mutations(ctx))
        if ctx.api_key == BROKER_HEARTBEAT and ctx.connection is not None:
            beat = cast("BrokerHeartbeatRequest", request)
            self._links.heard(ctx.connection, beat.broker_id, beat.broker_epoch)
        self._set_timer()  # a heartbeat moves the time at which its silence would count
        return self._settle(*decided, getattr(request, "timeout_ms", None))

    def submit_own(self, request: Message, api_version: int) -> Awaitable[Message]:
        """The same for requests that this node itself makes as a broker."""
        decided = self._decide(request, api_version, lambda _name: True)
        self._set_timer()
        return self._settle(*decided, None)

    def _mutations(self, ctx: Context) -> Mutations:
        """What a client may change of partitions: charged to whoever asked the broker, not to the broker."""
        strict_since = MUTATIONS_IN_STRICT.get(ctx.api_key)
        if self._quotas is None or strict_since is None:
            return FREE
        now = self._clock.monotonic_ms()
        bucket = self._quotas.mutation_bucket(ctx.principal.name, ctx.client_id or "", now)
        return FREE if bucket is None else Mutations(bucket, now, strict=ctx.api_version >= strict_since)

    def _link_lost(self, broker_id: int, broker_epoch: int) -> None:
        if self._controller is not None:
            self._controller.link_lost(broker_id, broker_epoch, self._clock.monotonic_ms())
            self._set_timer()

    async def forward(self, request: Message, ctx: Context) -> Message:
        """A controller answers what it can and sends nothing on."""
        raise Refused(NOT_CONTROLLER, "this node is not the active controller")

    def _decide(
        self,
        request: Message,
        api_version: int,
        may_describe: Callable[[str], bool],
        asker: TokenAsker | None = None,
        mutations: Mutations = FREE,
    ) -> tuple[Message, Offset]:
        controller = self._controller
        if controller is None:
            raise Refused(NOT_CONTROLLER, "this node is not the active controller")
        decision = controller.decide(
            request,
            now=self._clock.monotonic_ms(),
            next_offset=self._quorum.end,
            api_version=api_version,
            may_describe=may_describe,
            kraft_version=self._quorum.kraft_version,
            asker=asker,
            mutations=mutations,
        )
        try:
            if decision.warning:
                log.warning("%s", decision.warning)
            return decision.reply, self._run(controller, decision)
        except StorageFailed as failure:
            self._fail(failure)
            raise Refused(KAFKA_STORAGE_ERROR, "the metadata log cannot be written") from failure

    async def _settle(self, reply: Message, end: Offset, timeout_ms: int | None) -> Message:
        waiting = self._metadata.published(end, as_controller=True)
        if timeout_ms is None:
            await waiting
        else:
            try:
                async with asyncio.timeout(max(timeout_ms, 0) / 1_000):
                    await waiting
            except TimeoutError:
                raise Refused(REQUEST_TIMED_OUT, "the change was not committed in time; it may still be") from None
        return reply

    # Ask, do, tell

    def _run(self, controller: Controller, decision: Decision) -> Offset:
        """Appends a decision and applies it; the offset after which it, or what it looked at, is true."""
        for records in plan_batches(decision, controller.image.metadata_version):
            batch = self._quorum.append(records)
            self._appended_at = self._clock.monotonic_ms()
            self.unclean_elections += _unclean_elections(controller.image, batch)
            try:
                self._tell(controller, batch)
            except Exception as broken:
                self._start_over(broken)
                raise Refused(UNKNOWN_SERVER_ERROR, "the controller had to start over; try again") from broken
        return Offset(controller.image.offset + 1)

    def _tell(self, controller: Controller, batch: LogBatch) -> None:
        for offset, record in enumerate(batch.records, batch.base):
            controller.apply(record, Offset(offset), batch.epoch)
        if not batch.records:
            controller.image.skip_to(Offset(batch.end - 1), batch.epoch)

    def _start_over(self, broken: Exception) -> None:
        log.exception("a record could not be applied; the working image is made anew", exc_info=broken)
        try:
            self._controller = self._replayed()
        except Exception as again:
            # The log holds a record that cannot be applied: no node could go on from here.
            self._fail(again)

    def _fail(self, why: Exception) -> None:
        log.error("the controller stops: %s", why, exc_info=why.__cause__)
        self.resign()
        self._on_fatal(why)

    # Time

    def _set_timer(self) -> None:
        due = self._next_due()
        if self._timer is None:
            self._timer = Deadline(asyncio.get_running_loop(), self._clock, self._tick)
        if due is None:
            self._timer.cancel()
        else:
            self._timer.set(due)

    def _next_due(self) -> float | None:
        controller = self._controller
        if controller is None:
            return None
        dues = [
            since + interval_ms
            for since, interval_ms in (
                (self._appended_at, self._times.idle_interval_ms),
                (self._preferred_at, self._times.preferred_leaders_ms),
                (self._unclean_at, self._times.unclean_leaders_ms),
                (self._swept_at, self._times.token_sweep_ms),
            )
            if interval_ms > 0
        ]
        session = controller.next_deadline()
        return min(dues if session is None else [*dues, session], default=None)

    def _tick(self) -> None:
        controller = self._controller
        if controller is None:
            return
        try:
            for decision in self._due(controller, self._clock.monotonic_ms()):
                self._run(controller, decision)
        except Refused as refusal:
            log.warning("the controller's own decision was not taken: %s", refusal)
            if self._timer is not None and self._controller is controller:
                # What is due stays due. The quorum may be about to say that somebody else leads.
                self._timer.set(self._clock.monotonic_ms() + REFUSED_PAUSE_MS)
            return
        except Exception as broken:
            # The timer would never be set again: nobody who falls silent would be fenced.
            self._fail(reason("a decision of the controller's own", broken))
            return
        self._set_timer()

    @staticmethod
    def _is_due(since: float, interval_ms: float, now: float) -> bool:
        """By the same sum that the timer was set with: a difference may be rounded to the other side."""
        return interval_ms > 0 and since + interval_ms <= now

    def _due(self, controller: Controller, now: float) -> Iterable[Decision]:
        """Decisions one after the other: each is applied before the next is asked for.

        What takes several of them is due again at once: whoever waits for something else is heard in between.
        """
        if (fencing := controller.decide_tick(now)).records:
            yield fencing
        if self._is_due(self._preferred_at, self._times.preferred_leaders_ms, now):
            moved = controller.decide_preferred_leaders()
            if len(moved.records) < ELECTIONS_MAX:
                self._preferred_at = now
            yield moved
        if self._is_due(self._unclean_at, self._times.unclean_leaders_ms, now):
            elected = controller.decide_unclean_leaders()
            if len(elected.records) < ELECTIONS_MAX:
                self._unclean_at = now
            yield elected
        if self._is_due(self._swept_at, self._times.token_sweep_ms, now):
            swept = controller.decide_token_sweep(self._clock.now_ms())
            if len(swept.records) < SWEPT_MAX:
                self._swept_at = now
            yield swept
        if self._is_due(self._appended_at, self._times.idle_interval_ms, now):
            yield controller.decide_no_op()


def _unclean_elections(image: ClusterImage, batch: LogBatch) -> int:
    """How many partitions get a leader by records that `image` does not hold yet which may lack committed records."""
    changes = (record for record in batch.records if isinstance(record, PartitionChangeRecord))
    known = ((image.partition(change.topic_id, change.partition_id), change) for change in changes)
    return sum(1 for old, change in known if old is not None and was_unclean(old, change))
