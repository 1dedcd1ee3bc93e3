"""Changes to metadata that clients ask of a broker: decided here when this node is the active controller, else
passed on to the one that is, in an Envelope with the client's principal and host.

`Forwarding` lives beside the quorum and finds the controller. `ForwardingDoor` is what the broker's handlers see of it,
on their own loop. A client that was told that a topic is there asks the same broker for it next, so replies about
topics, ACLs, quotas and users wait, for a bounded time, until this broker's own image shows the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

from penstock.model.errors import NONE, NOT_CONTROLLER, Refused
from penstock.protocol.wire import schema_of

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
    from penstock.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from penstock.protocol.messages.create_topics import CreateTopicsResponse
    from penstock.protocol.messages.delete_topics import DeleteTopicsResponse
    from penstock.protocol.messages.envelope import EnvelopeResponse
    from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
    from penstock.protocol.wire import Message
    from penstock.security.acl_index import AclIndex
    from penstock.server.controller.channel import ControllerChannel
    from penstock.server.controller.driver import ControllerDriver
    from penstock.server.doors import Context, QuorumDoor
    from penstock.server.loops.crossing import Side
    from penstock.server.peers import Address, Peers
    from penstock.server.quorum.metadata_driver import PublishedMetadata

SHOWN_WITHIN_MS: Final = 1_000.0
LEAST_MS: Final = 500.0
"""A controller that is just being elected is worth waiting for, however impatient the client."""
LANES: Final = 4
"""A peer answers the requests of one link in turn; with a few of them a slow change does not hold up all others."""

Shown = Callable[["ClusterImage"], bool]


class _Key:
    """API keys of requests that are looked at closer; their classes are made when somebody asks for one."""

    CREATE_TOPICS: Final = 19
    DELETE_TOPICS: Final = 20
    CREATE_ACLS: Final = 30
    DELETE_ACLS: Final = 31
    CREATE_PARTITIONS: Final = 37
    ALTER_CLIENT_QUOTAS: Final = 49
    ALTER_USER_SCRAM_CREDENTIALS: Final = 51
    DESCRIBE_QUORUM: Final = 55
    ADD_RAFT_VOTER: Final = 80
    REMOVE_RAFT_VOTER: Final = 81


class ForwardingDoor:
    """The door `Services.controller` of broker listeners: takes a client's change to where the controller is found."""

    def __init__(self, forwarding: Forwarding, control: Side, metadata: PublishedMetadata) -> None:
        self._forwarding, self._control, self._metadata = forwarding, control, metadata
        self._waiting: list[tuple[Shown, asyncio.Future[None]]] = []
        metadata.on_advance(self._advanced)

    async def submit(self, request: Message, ctx: Context) -> Message:
        """The active controller's reply, when what it changed shows here."""
        return await self._until_shown(request, await self._control.call(self._forwarding.submit, request, ctx), ctx)

    async def forward(self, request: Message, ctx: Context) -> Message:
        """The same for what only the active controller can answer."""
        return await self._until_shown(request, await self._control.call(self._forwarding.forward, request, ctx), ctx)

    async def _until_shown(self, request: Message, reply: Message, ctx: Context) -> Message:
        shown = _shown_when(request, reply, ctx.node.authorizer.acls)
        if shown is not None:
            await self._shown(shown)
        return reply

    async def _shown(self, shown: Shown) -> None:
        if shown(self._metadata.image):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = (shown, future)
        self._waiting.append(waiting)
        try:
            await asyncio.wait((future,), timeout=SHOWN_WITHIN_MS / 1_000)
        finally:
            if not future.done():
                self._waiting.remove(waiting)
                future.cancel()

    def _advanced(self) -> None:
        if not self._waiting:
            return
        image = self._metadata.image
        waiting, self._waiting = self._waiting, []
        for shown, future in waiting:
            if not shown(image):
                self._waiting.append((shown, future))
            elif not future.done():
                future.set_result(None)


class Forwarding:
    """Takes a client's change to the active controller, from beside the quorum."""

    def __init__(
        self, channel: ControllerChannel, quorum: QuorumDoor, controller: ControllerDriver | None, peers: Peers
    ) -> None:
        self._channel, self._controller, self._peers = channel, controller, peers
        # What the leader of the quorum answers itself, without the controller.
        self._quorum = quorum
        self._busy = [0] * LANES

    def submit(self, request: Message, ctx: Context) -> Awaitable[Message]:
        """The active controller's reply. On the active controller the decision is taken inside this call."""
        if self._controller is not None and self._controller.active:
            try:
                return self._decided_here(self._controller.submit(request, ctx), request, ctx)
            except Refused as refusal:
                # The quorum knows of the lost lead a moment before the controller does.
                if refusal.error is not NOT_CONTROLLER:
                    raise
        return self.forward(request, ctx)

    async def _decided_here(self, decided: Awaitable[Message], request: Message, ctx: Context) -> Message:
        try:
            return await decided
        except Refused as refusal:
            if refusal.error is not NOT_CONTROLLER:
                raise
        # It lost the lead before the change was committed. Its successor may or may not have it, and can tell.
        return await self.forward(request, ctx)

    async def forward(self, request: Message, ctx: Context) -> Message:
        """The active controller's reply to a request in the version of `ctx`, wherever the controller is.

        Refused with REQUEST_TIMED_OUT when none answers in time, and with the code that the envelope came back with.
        """
        left_ms = ctx.deadline - ctx.node.clock.monotonic_ms()
        # A client that names a time does not wait for longer.
        if (asked_ms := getattr(request, "timeout_ms", 0)) > 0:
            left_ms = min(left_ms, max(asked_ms, LEAST_MS))

        async def here() -> Message:
            # The lead came to this node while a way to another one was looked for.
            answer = self._of_the_quorum(request)
            if answer is not None:
                return await answer
            if self._controller is None:
                raise Refused(NOT_CONTROLLER, "this node is no controller")
            return await self._controller.submit(request, ctx)

        async def there(to: Address, timeout_ms: float) -> Message:
            return await self._carried(to, request, ctx, timeout_ms)

        return await self._channel.find(here, there, None if left_ms == float("inf") else left_ms)

    def _of_the_quorum(self, request: Message) -> Awaitable[Message] | None:
        """What the leader of the quorum answers itself, without the controller; None for anything else."""
        match _key_of(request):
            case _Key.DESCRIBE_QUORUM:
                return self._quorum.describe()
            case _Key.ADD_RAFT_VOTER:
                return self._quorum.add_voter(cast("AddRaftVoterRequest", request))
            case _Key.REMOVE_RAFT_VOTER:
                return self._quorum.remove_voter(cast("RemoveRaftVoterRequest", request))
        return None

    async def _carried(self, to: Address, request: Message, ctx: Context, timeout_ms: float) -> Message:
        from penstock.protocol.envelopes import opened, sealed  # a node that leads alone never needs them

        envelope = sealed(
            request,
            ctx.api_version,
            client_id=ctx.client_id,
            principal=ctx.principal,
            host=ctx.client_host,
            by_token=ctx.by_token,
        )

        lane = min(range(LANES), key=self._busy.__getitem__)
        self._busy[lane] += 1
        try:
            reply: EnvelopeResponse = await self._peers.ask(
                to, envelope, 0, purpose=f"forward-{lane}", timeout_ms=timeout_ms
            )
        finally:
            self._busy[lane] -= 1
        return opened(reply, _key_of(request), ctx.api_version)


def _key_of(request: Message) -> int:
    return schema_of(request.__class__).key


def _shown_when(request: Message, reply: Message, acls: AclIndex | None) -> Shown | None:
    """How an image tells that the change is in it; None for changes that nobody looks for at once."""
    if getattr(request, "validate_only", False):
        return None
    match _key_of(request):
        case _Key.CREATE_TOPICS:
            made = [each.name for each in cast("CreateTopicsResponse", reply).topics if each.error_code == NONE.code]
            return lambda image: all(name in image.ids for name in made)
        case _Key.DELETE_TOPICS:
            deletions = cast("DeleteTopicsResponse", reply).responses
            gone = [each.name for each in deletions if each.error_code == NONE.code and each.name is not None]
            return lambda image: not any(name in image.ids for name in gone)
        case _Key.CREATE_PARTITIONS:
            results = cast("CreatePartitionsResponse", reply).results
            grown = {each.name for each in results if each.error_code == NONE.code}
            wanted = cast("CreatePartitionsRequest", request).topics
            counts = [(each.name, each.count) for each in wanted if each.name in grown]
            return lambda image: all(_partitions(image, name) >= count for name, count in counts)
        case _Key.CREATE_ACLS | _Key.DELETE_ACLS | _Key.ALTER_CLIENT_QUOTAS | _Key.ALTER_USER_SCRAM_CREDENTIALS:
            from penstock.server.controller.security_shown import shown_when  # changes of this kind are rare

            return shown_when(request, reply, acls)
    return None


def _partitions(image: ClusterImage, name: str) -> int:
    topic = image.topic(name)
    # A topic that is gone again will not get there.
    return len(topic.partitions) if topic is not None else 1 << 30
