"""The secured world: everybody logs in, guests come with a principal each, and a doorkeeper changes what they may.

Promised (A): nothing is served that every committed ACL set refuses which the broker knew between the request and its
reply. A broker learns of a change when it has its record, so what it may still serve is decided by what it had
published, not by what the rest of the cluster has committed since. When all is well again, every broker decides by the
last set.

Who may do what is told here from the records alone: an allow, and no deny. Guests speak to brokers in plain requests of
their own, fetch sessions included, so that it is known what was asked when, and of whom.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.cluster_view import ClusterView
from penstock.kernels import Record
from penstock.model.errors import PenstockError, error_of
from penstock.model.ids import Offset
from penstock.model.security import Operation, PatternType, Permission, Principal, ResourceType
from penstock.protocol.batch import build_batch
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.delete_acls import DeleteAclsRequest
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.testing.sim.topics import DOORS
from penstock.testing.sim.trouble import controller_image
from penstock.testing.sim.workload import Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.server.node import Node
    from penstock.testing.sim.history import History
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

GUESTS = ("guest-1", "guest-2", "guest-3")
OPERATIONS = (Operation.READ, Operation.WRITE)
TIMEOUT_MS = 3_000
PRODUCE_VERSION, FETCH_VERSION = 9, 12
"""The last that name topics."""
BETWEEN_REQUESTS_S = 0.05
BETWEEN_CHANGES_S = 0.3
NO_SESSION = (0, 0)


class Right(NamedTuple):
    guest: str
    operation: Operation
    permission: Permission


Rights = frozenset[Right]


def rights_of(image: ClusterImage) -> Rights:
    """What the records say of the guests' topic, without any of the product's rules."""
    return frozenset(
        Right(record.principal.removeprefix("User:"), Operation(record.operation), Permission(record.permission_type))
        for record in image.acls.values()
        if record.resource_name == DOORS
    )


def may(rights: Rights, guest: str, operation: Operation) -> bool:
    allowed = Right(guest, operation, Permission.ALLOW) in rights
    return allowed and Right(guest, operation, Permission.DENY) not in rights


class Known:
    """Which rights the broker of each machine had published, since when."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: dict[int, list[tuple[float, Rights]]] = {}
        self._followed: dict[SimLoop, Node] = {}

    def after_instant(self, touched: list[SimLoop]) -> None:
        """Begins to follow a broker with the first event after it was made."""
        for machine in self._world.machines:
            node, loop = machine.node, machine.loop
            if loop is None or loop in self._followed or loop not in touched or node is None or node._broker is None:
                continue
            self._followed[loop] = node
            metadata = node._broker._control.metadata
            metadata.on_publish(partial(self._heard, machine))
            self._published(machine, metadata.image)

    def _heard(self, machine: Machine, image: ClusterImage, _delta: Delta) -> None:
        self._published(machine, image)

    def _published(self, machine: Machine, image: ClusterImage) -> None:
        known, rights = self._since.setdefault(machine.node_id, []), rights_of(image)
        if not known or known[-1][1] != rights:
            known.append((self._world.scheduler.now, rights))

    def between(self, node_id: int, asked_s: float, answered_s: float) -> list[Rights]:
        """Those that were known at any instant of this time; a change holds at its instant beside the one before."""
        known = self._since.get(node_id, [])
        untils = [since for since, _ in known[1:]] + [float("inf")]
        return [
            rights
            for (since, rights), until in zip(known, untils, strict=False)
            if since <= answered_s and until >= asked_s
        ]


class Doors:
    """The guests and their doorkeeper, from `start` until the world is made good."""

    def __init__(self, world: World, plan: Plan, history: History, stopping: Callable[[], bool]) -> None:
        self._world, self._plan, self._stopping = world, plan, stopping
        self.known = Known(world)
        self._senders = {guest: history.sender(guest, promised=False, once=False, may_fail=True) for guest in GUESTS}

    def start(self) -> None:
        keeper = Client(self._world, "doorkeeper")
        keeper.run(self._keep(keeper))
        for guest in GUESTS:
            client = Client(self._world, guest)
            client.run(self._visit(client))

    def disagreements(self) -> list[str]:
        """A, of a cluster that is well: brokers that decide otherwise than the last set says."""
        image = controller_image(self._world)
        assert image is not None, "it is well"
        rights = rights_of(image)
        return [
            f"A: {machine.host} lets {guest} {operation.name}: {decided}, and the ACLs say otherwise"
            for machine in self._world.machines
            if machine.node is not None and machine.node._broker is not None
            for guest in GUESTS
            for operation in OPERATIONS
            if (decided := _decided(machine.node, guest, operation)) != may(rights, guest, operation)
        ]

    # -- the doorkeeper

    async def _keep(self, client: Client) -> None:
        random = client.random
        async with self._view(client, "worker") as view:
            while not self._stopping():
                right = Right(
                    random.choice(GUESTS),
                    random.choice(OPERATIONS),
                    random.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
                )
                await self._change(view, right, given=random.random() < 0.6)
                await asyncio.sleep(random.expovariate(1 / BETWEEN_CHANGES_S))

    async def _change(self, view: ClusterView, right: Right, *, given: bool) -> None:
        words = f"{right.permission.name} {right.guest} {right.operation.name} {'given' if given else 'taken'}"
        try:
            if given:
                code = (await view.ask_any(_creation(right))).results[0].error_code
            else:
                code = (await view.ask_any(_deletion(right))).filter_results[0].error_code
            answer = error_of(code).name
        except PenstockError as failure:
            answer = f"no answer: {failure}"
        self._world.story.tell("doorkeeper", f"{words}: {answer}")
        if answer == "NONE":
            self._world.story.count("rights changed")

    # -- guests

    async def _visit(self, client: Client) -> None:
        random, guest = client.random, client.name
        session = NO_SESSION
        async with self._view(client, guest) as view:
            while not self._stopping():
                await asyncio.sleep(random.expovariate(1 / BETWEEN_REQUESTS_S))
                node_id, number = self._leader(random)
                if node_id < 0:
                    continue
                try:
                    await view.metadata([])
                    if random.random() < 0.5:
                        await self._write(view, guest, node_id, number)
                    else:
                        session = await self._read(view, guest, node_id, number, session)
                except PenstockError as failure:
                    session = NO_SESSION
                    self._world.story.tell(guest, str(failure))

    def _leader(self, random: Random) -> tuple[int, int]:
        """Of some partition of the guests' topic; they may not even ask for it."""
        image = controller_image(self._world)
        topic = None if image is None else image.topic(DOORS)
        if topic is None:
            return -1, 0
        number = random.randrange(len(topic.partitions))
        return topic.partitions[number].leader, number

    async def _write(self, view: ClusterView, guest: str, node_id: int, number: int) -> None:
        records = build_batch([Record(Offset(0), self._now_ms(view), None, self._senders[guest].next_value(), ())])
        part = ProduceRequest.PartitionProduceData(index=number, records=records)
        topic = ProduceRequest.TopicProduceData(name=DOORS, partition_data=[part])
        request = ProduceRequest(acks=1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        link = await view.link(node_id)
        asked_s = self._world.scheduler.now
        reply: ProduceResponse = await link.request(request, PRODUCE_VERSION, TIMEOUT_MS)
        (answered,) = reply.responses[0].partition_responses
        self._note(node_id, guest, Operation.WRITE, asked_s, served=answered.error_code == 0)

    async def _read(
        self, view: ClusterView, guest: str, node_id: int, number: int, session: tuple[int, int]
    ) -> tuple[int, int]:
        """Goes on in its session, which names nothing again, as often as that is with the same broker."""
        session_id, epoch = session
        part = FetchRequest.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=10_000)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch,
            topics=[FetchRequest.FetchTopic(topic=DOORS, partitions=[part])],
        )  # fmt: skip
        link = await view.link(node_id)
        asked_s = self._world.scheduler.now
        reply: FetchResponse = await link.request(request, FETCH_VERSION, TIMEOUT_MS)
        if reply.error_code:
            return NO_SESSION
        for topic in reply.responses:
            for answered in topic.partitions:
                served = answered.error_code == 0 and bool(answered.records)
                self._note(node_id, guest, Operation.READ, asked_s, served=served)
        return (reply.session_id, epoch + 1) if reply.session_id else NO_SESSION

    def _note(self, node_id: int, guest: str, operation: Operation, asked_s: float, *, served: bool) -> None:
        story = self._world.story
        story.count("guests served" if served else "guests refused")
        if not served:
            return
        known = self.known.between(node_id, asked_s, self._world.scheduler.now)
        if not any(may(rights, guest, operation) for rights in known):
            story.violated(
                f"A: node-{node_id} let {guest} {operation.name}, which none of the {len(known)} ACL sets allows "
                f"that it knew since {asked_s:.3f}"
            )

    def _now_ms(self, view: ClusterView) -> int:
        return view._clock.now_ms()

    def _view(self, client: Client, user: str) -> ClusterView:
        return ClusterView(
            self._plan.bootstrap, timeout_ms=TIMEOUT_MS, clock=client.clock, security=self._plan.security(user)
        )


def _decided(node: Node, guest: str, operation: Operation) -> bool:
    assert node._broker is not None, "it was asked before"
    authorizer = node._broker._authorizer
    return authorizer.allows(Principal("User", guest), guest, operation, ResourceType.TOPIC, DOORS)


def _creation(right: Right) -> CreateAclsRequest:
    entry = CreateAclsRequest.AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=DOORS,
        resource_pattern_type=PatternType.LITERAL,
        principal=f"User:{right.guest}",
        host="*",
        operation=right.operation,
        permission_type=right.permission,
    )
    return CreateAclsRequest(creations=[entry])


def _deletion(right: Right) -> DeleteAclsRequest:
    which = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=ResourceType.TOPIC,
        resource_name_filter=DOORS,
        pattern_type_filter=PatternType.LITERAL,
        principal_filter=f"User:{right.guest}",
        host_filter="*",
        operation=right.operation,
        permission_type=right.permission,
    )
    return DeleteAclsRequest(filters=[which])
