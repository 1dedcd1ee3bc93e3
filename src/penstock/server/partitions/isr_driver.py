"""Asks the controller for other in-sync sets: AlterPartition, one request at a time, many partitions in it.

Followers that have caught up are proposed when a fetch of theirs shows it; those that have not kept up are found by a
look at every replicated partition now and then, a few milliseconds at a time. What a partition wants is decided when
the request is made, so that whoever waited in the queue for long asks for what is true by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import RECOVERED
from penstock.model.errors import NONE, PenstockError, error_of
from penstock.model.ids import NodeId, PartitionKey
from penstock.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from penstock.replication.isr import DOUBT_MS
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import Slices

if TYPE_CHECKING:
    from penstock.model.ids import Millis
    from penstock.model.ports import Clock
    from penstock.protocol.wire import Message
    from penstock.replication.isr import Proposal
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver

log = logging.getLogger("penstock.isr")

ALTER_PARTITION_VERSION: Final = 3
RETRY_MS: Final = 50
PARTITIONS_MAX: Final = 1_000
"""How many partitions one request is about."""
SHORTEST_LOOK_MS: Final = 10


class IsrDriver:
    """Owns the queue of partitions that may want another in-sync set, and the proposals whose outcome is not known."""

    def __init__(
        self,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        ask: Callable[[Message, int], Awaitable[Message]],
        clock: Clock,
        partitions: PartitionDriver,
        *,
        lag_time_max_ms: int,
    ) -> None:
        self._node_id, self._broker_epoch, self._ask, self._clock = node_id, broker_epoch, ask, clock
        self._partitions, self._look_every_ms = partitions, max(SHORTEST_LOOK_MS, lag_time_max_ms // 2)
        self._wanted: dict[Hosted, None] = {}
        self._unsettled: dict[Hosted, Proposal] = {}
        self._sending: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._look_now = asyncio.Event()
        self._again: asyncio.TimerHandle | None = None
        self._stopped = False
        self.shrinks = self.expands = self.failures = 0
        partitions.on_may_join = self.want
        partitions.on_brokers_changed = self._look_now.set

    def start(self) -> None:
        """Looks for followers that do not keep up, from now on."""
        if self._looking is None:
            self._looking = duty(self._look_on(), name="look for late followers")

    async def stop(self) -> None:
        """Asks for nothing any more. What was asked for may still come true."""
        tasks = [task for task in (self._looking, self._sending) if task is not None]
        self._stopped = True
        if self._again is not None:
            self._again.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def want(self, hosted: Hosted) -> None:
        """The partition may want another in-sync set."""
        if self._stopped:
            return
        self._wanted[hosted] = None
        if self._sending is None:
            self._sending = duty(self._send_all(), name="alter partitions")

    # -- looking

    async def _look_on(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._look_every_ms / 1_000):
                    await self._look_now.wait()
            except TimeoutError:
                pass
            self._look_now.clear()
            await self._look()

    async def _look(self) -> None:
        """Every partition that others follow: who does not keep up, and whom nobody need wait for any more."""
        slices = Slices(self._clock)
        for hosted in list(self._partitions.tables.replicated.values()):
            now = self._clock.now_ms()
            state = hosted.state
            # One that was fenced when it had caught up fetches nothing new, so nobody else would think of it again.
            if state.proposal is None and (
                state.late(now) or any(state.may_join(each, now) for each in state.followers)
            ):
                self.want(hosted)
            hosted.time_passed(now)
            if slices.over:
                await slices.breathe()

    # -- asking

    async def _send_all(self) -> None:
        try:
            while self._wanted or self._unsettled:
                proposals = self._gather()
                if proposals and not await self._send(proposals):
                    await asyncio.sleep(RETRY_MS / 1_000)
        finally:
            self._sending = None

    def _gather(self) -> dict[Hosted, Proposal]:
        """What to ask for: first again what got no answer, then what partitions want now."""
        now = self._clock.now_ms()
        for hosted, proposal in list(self._unsettled.items()):
            if hosted.state.proposal is not proposal:
                del self._unsettled[hosted]  # the metadata log has brought the answer
        found = dict(list(self._unsettled.items())[:PARTITIONS_MAX])
        for hosted in list(self._wanted):
            if len(found) >= PARTITIONS_MAX:
                break
            del self._wanted[hosted]
            wanted = None if hosted.log is None or hosted.gone else hosted.state.wanted_isr(now)
            if wanted is not None:
                found[hosted] = self._unsettled[hosted] = wanted
        return found

    async def _send(self, proposals: dict[Hosted, Proposal]) -> bool:
        """Whether everything was settled; what was not is sent again."""
        try:
            reply = await self._ask(self._request(proposals), ALTER_PARTITION_VERSION)
            assert isinstance(reply, AlterPartitionResponse), "a request is answered with its own reply"
        except (PenstockError, OSError) as failure:
            # Nobody knows whether it was done. The same proposal is refused by its epoch if it was.
            log.warning("%d changes of in-sync sets got no answer: %s", len(proposals), failure)
            self.failures += len(proposals)
            return False
        if reply.error_code != NONE.code:
            log.warning("changes of in-sync sets were refused: %s", error_of(reply.error_code).name)
            self.failures += len(proposals)
            return False
        answers = {
            PartitionKey(topic.topic_id, answer.partition_index): answer
            for topic in reply.topics
            for answer in topic.partitions
        }
        now = self._clock.now_ms()
        outcomes = [self._outcome(hosted, what, answers.get(hosted.key), now) for hosted, what in proposals.items()]
        return all(outcomes)

    def _outcome(
        self, hosted: Hosted, proposal: Proposal, answer: AlterPartitionResponse.PartitionData | None, now: Millis
    ) -> bool:
        """Takes the controller's answer for one partition; False when it is better to pause before asking again."""
        if answer is None:
            return False
        if answer.error_code != NONE.code:
            return self._refused(hosted, proposal, answer.error_code, now)
        self._unsettled.pop(hosted, None)
        isr = frozenset(NodeId(node) for node in answer.isr)
        self.shrinks += not proposal.expands
        self.expands += proposal.expands
        log.info("%s: in sync are %s at partition epoch %d", hosted.name, sorted(isr), answer.partition_epoch)
        moved = hosted.state.isr_settled(
            proposal, isr, leader_epoch=answer.leader_epoch, partition_epoch=answer.partition_epoch, now=now
        )
        if moved and hosted.log is not None:
            hosted.committed()
        self._wanted[hosted] = None  # another follower may have come up meanwhile
        return True

    def _refused(self, hosted: Hosted, proposal: Proposal, code: int, now: Millis) -> bool:
        error = error_of(code)
        self.failures += 1
        log.info(
            "%s: in-sync set %s was refused: %s", hosted.name, [each.node for each in proposal.members], error.name
        )
        if not hosted.state.isr_refused(proposal, error, now):
            self._unsettled.pop(hosted, None)
        if hosted.state.doubted and self._again is None:
            self._again = asyncio.get_running_loop().call_later((DOUBT_MS + 1) / 1_000, self._look_at_doubts)
        return False

    def _look_at_doubts(self) -> None:
        """Nobody waits any more for followers that were refused."""
        self._again = None
        self._look_now.set()

    def _request(self, proposals: dict[Hosted, Proposal]) -> AlterPartitionRequest:
        request = AlterPartitionRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        topics: dict[bytes, AlterPartitionRequest.TopicData] = {}
        for hosted, proposal in proposals.items():
            topic = topics.get(hosted.key.topic_id)
            if topic is None:
                topic = topics[hosted.key.topic_id] = AlterPartitionRequest.TopicData(topic_id=hosted.key.topic_id)
                request.topics.append(topic)
            topic.partitions.append(self._change(hosted.key.partition, proposal))
        return request

    def _change(self, partition: int, proposal: Proposal) -> AlterPartitionRequest.PartitionData:
        return AlterPartitionRequest.PartitionData(
            partition_index=partition,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
            # Whoever leads has done what recovery there is: an unclean election is over with its leader's first change.
            leader_recovery_state=RECOVERED,
            new_isr_with_epochs=[
                AlterPartitionRequest.BrokerState(
                    broker_id=member.node,
                    broker_epoch=self._broker_epoch() if member.node == self._node_id else member.broker_epoch,
                )
                for member in proposal.members
            ],
        )
