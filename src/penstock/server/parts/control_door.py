"""The control part as the broker sees it: whatever is asked crosses to the other loop, whatever is read is a value.

The broker has its own image, its own settings and its own links to other brokers. What it wants of the quorum, of the
controller or of its own registration it asks for here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from penstock.server.controller.forwarding import ForwardingDoor
from penstock.server.controller.lifecycle import NO_EPOCH, BrokerLifecycle
from penstock.server.quorum.metadata_features import Features

if TYPE_CHECKING:
    from penstock.model.config import Endpoint
    from penstock.model.ids import NodeId, Uuid
    from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
    from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse
    from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
    from penstock.protocol.wire import Message
    from penstock.server.loops.crossing import Side
    from penstock.server.parts.control import ControlPart
    from penstock.server.quorum.driver import QuorumDriver


class ControlDoor:
    """Made on the broker's loop, when the control part is built."""

    def __init__(self, control: ControlPart, side: Side) -> None:
        assert control.mirror is not None, "a broker has an image of its own"
        assert control.lifecycle is not None, "a broker registers"
        self._control, self._side = control, side
        self.metadata = control.mirror
        self.quorum = QuorumFromBroker(control.quorum, side)
        self.features = Features(self.metadata, lambda: control.quorum.standing.kraft_version)
        self.forwarding = ForwardingDoor(control.forwarding, side, self.metadata)
        self.lifecycle = LifecycleFromBroker(control.lifecycle, side)

    async def ask(self, request: Message, version: int) -> Message:
        """The active controller's reply to a request that this broker makes by itself."""
        reply: Message = await self._side.call(self._control.channel.ask, request, version)
        return reply

    async def unlock(self) -> None:
        """Lets go of the metadata directory: the broker is about to lock it with its other directories."""
        await self._side.ask(self._control.unlock)


class QuorumFromBroker:
    """The door `Services.quorum` of broker listeners. Who takes part in the quorum comes through another listener."""

    def __init__(self, quorum: QuorumDriver, side: Side) -> None:
        self._quorum, self._side = quorum, side

    @property
    def leading(self) -> bool:
        return self._quorum.standing.leading

    @property
    def leader(self) -> NodeId:
        return self._quorum.standing.leader

    def describe(self) -> Awaitable[DescribeQuorumResponse]:
        return self._side.call(self._quorum.describe)

    def add_voter(self, request: AddRaftVoterRequest) -> Awaitable[AddRaftVoterResponse]:
        return self._side.call(self._quorum.add_voter, request)

    def remove_voter(self, request: RemoveRaftVoterRequest) -> Awaitable[RemoveRaftVoterResponse]:
        return self._side.call(self._quorum.remove_voter, request)

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"brokers' listeners serve no {name} of the quorum")


class LifecycleFromBroker:
    """The registration and the heartbeats, which live beside the quorum: a disk that hangs does not silence them."""

    def __init__(self, lifecycle: BrokerLifecycle, side: Side) -> None:
        self._lifecycle, self._side = lifecycle, side

    @property
    def broker_epoch(self) -> int:
        return self._lifecycle.broker_epoch

    def current_epoch(self) -> int:
        """For those who ask anew each time: it is another after each registration."""
        return self._lifecycle.broker_epoch

    @property
    def registered(self) -> bool:
        return self.broker_epoch != NO_EPOCH

    @property
    def fenced(self) -> bool:
        return self._lifecycle.fenced

    def has_reported(self, directory_id: Uuid) -> bool:
        return self._lifecycle.has_reported(directory_id)

    async def register(
        self,
        endpoints: Iterable[Endpoint],
        own_host: str,
        log_dirs: Sequence[Uuid],
        *,
        previous_epoch: int = NO_EPOCH,
        cordoned: Sequence[Uuid] | None = None,
    ) -> int:
        epoch: int = await self._side.call(
            self._lifecycle.register,
            tuple(endpoints),
            own_host,
            tuple(log_dirs),
            previous_epoch=previous_epoch,
            cordoned=None if cordoned is None else tuple(cordoned),
        )
        return epoch

    async def serve(self) -> None:
        await self._side.call(self._lifecycle.serve)

    async def directory_failed(self, directory_id: Uuid) -> None:
        await self._side.call(self._lifecycle.directory_failed, directory_id)

    async def cordon(self, directories: Iterable[Uuid]) -> None:
        await self._side.call(self._lifecycle.cordon, tuple(directories))

    async def shut_down(self) -> bool:
        gone: bool = await self._side.call(self._lifecycle.shut_down)
        return gone

    async def fall_silent(self) -> None:
        await self._side.call(self._lifecycle.fall_silent)
