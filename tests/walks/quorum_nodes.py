"""Quorum drivers in one process: files in memory, messages handed over as bytes, time that jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from penstock.model.config import BrokerSettings
from penstock.model.ids import NO_NODE, Epoch, Millis, NodeId, Offset, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.metadata_topics import TopicRecord
from penstock.protocol.registry import APIS
from penstock.protocol.wire import schema_of
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet
from penstock.server.peers import Address
from penstock.server.quorum.driver import QuorumDriver
from penstock.server.quorum.metadata_driver import MetadataDriver
from penstock.server.quorum.snapshot_driver import SnapshotDriver, SnapshotSettings
from penstock.server.quorum.snapshot_file import CheckpointWriter, SnapshotId
from penstock.testing.memory_files import MemoryFiles
from penstock.transport.dial import TimedOut, Unreachable
from tests.patience import until, within

T = TypeVar("T")

CLUSTER_ID = "abcdefghijklmnopqrstuv"
DIRECTORY = "/data/__cluster_metadata-0"
LATENCY_S = 0.002


class JumpingLoop(asyncio.SelectorEventLoop):
    """Never waits: when nothing is ready, time jumps to the next timer."""

    def __init__(self) -> None:
        self.jumped_s = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.jumped_s


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everybody waits and nothing is due"
        self._loop.jumped_s += max(timeout, 0.0)
        return []


class LoopClock:
    """The loop's time."""

    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1_000

    def now_ms(self) -> Millis:
        return Millis(1_700_000_000_000 + int(self.monotonic_ms()))


class SlowOffload:
    """A sync takes a millisecond, and what is crashed meanwhile is never done. The disk behind it may hang."""

    def __init__(self) -> None:
        self._answers_at_s = 0.0

    def hang(self, seconds: float) -> None:
        self._answers_at_s = asyncio.get_running_loop().time() + seconds

    def call(self, work: Callable[..., T], *args: Any) -> Awaitable[T]:
        async def later() -> T:
            await asyncio.sleep(max(0.001, self._answers_at_s - asyncio.get_running_loop().time()))
            return work(*args)

        return later()


class Machine:
    """One node: its disk outlives its drivers."""

    def __init__(self, world: Quorum, number: int, *, controller: bool = True) -> None:
        self.world, self.number, self.controller = world, number, controller
        self.files = MemoryFiles()
        self.files.makedirs(DIRECTORY)
        for path in ("", "/data"):
            self.files.sync_dir(path)
        self.key = ReplicaKey(NodeId(number), Uuid(bytes([number]) * 16))
        self.address = Address("127.0.0.1", 9_000 + number)
        points = (VoterEndpoint("CONTROLLER", *self.address),) if controller else ()
        self.voter = Voter(self.key, points)
        self.up = False
        self.led: list[Epoch] = []
        self.failures: list[Exception] = []

    def start(self) -> Machine:
        self.metadata = MetadataDriver(self.key.id, CLUSTER_ID)
        clock, offload = LoopClock(), SlowOffload()
        self.hang = offload.hang
        self.quorum = QuorumDriver(
            self.files, offload, clock, Random(self.number), DIRECTORY, self.voter, self.world.settings(self),  # type: ignore[arg-type]
            self.metadata, peers=Post(self.world, self), is_controller=self.controller, on_fatal=self.failures.append,
        )  # fmt: skip
        self.snapshots = SnapshotDriver(
            self.files, offload, clock, self.metadata, self.quorum, SnapshotSettings(retention_bytes=0), print  # type: ignore[arg-type]
        )  # fmt: skip
        self.quorum.attach(lead=lambda: self.led.append(self.quorum.epoch), resign=lambda: None)
        self.quorum.start()
        self.snapshots.found(self.quorum.snapshots)
        self.up = True
        return self

    def format(self, voters: VoterSet) -> None:
        writer = CheckpointWriter(Epoch(0), Millis(0))
        data = writer.header(Millis(0), 1, voters.to_record()) + writer.footer()
        self.files.write_atomic(f"{DIRECTORY}/{SnapshotId(Offset(0), Epoch(0)).file_name}", data)

    def crash(self) -> None:
        """The power is cut."""
        self.up = False
        self.quorum.crash()
        self.snapshots.crash()
        self.files.crash()

    async def stop(self) -> None:
        await self.snapshots.close()
        await self.quorum.close()
        self.up = False

    def write(self, name: str) -> Offset:
        """A topic's record; the offset after it."""
        record = TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16, b".")[:16]))
        return self.quorum.append([(record, 0)]).end

    async def commit(self, name: str) -> None:
        await asyncio.wait_for(self.quorum.committed(self.write(name)), within(10))

    @property
    def topics(self) -> list[str]:
        return sorted(topic.name for topic in self.metadata.image.topics.values())

    def log_bytes(self, start: int, end: int) -> bytes:
        """The log between two offsets, as its batches are on the disk."""
        found = self.quorum._log._opened.read(Offset(start), max_bytes=1 << 30, limit=end, at_least_one=False)
        return b"".join(span.read() for span in found.spans)


class Post:
    """Hands messages over as bytes, after a while; not over links that are cut."""

    def __init__(self, world: Quorum, sender: Machine) -> None:
        self._world, self._sender = world, sender

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        try:
            return await asyncio.wait_for(self._exchange(to, message, version), timeout_ms / 1_000)
        except TimeoutError:
            raise TimedOut(*to, f"no answer to {purpose} in {timeout_ms} ms") from None

    async def _exchange(self, to: Address, message: Any, version: int) -> Any:
        await self._travel(to)
        target = next((each for each in self._world.machines.values() if each.address == to and each.up), None)
        if target is None:
            raise Unreachable(*to, "nobody listens")
        api = APIS[schema_of(message.__class__).key]
        arrived = decode(message.__class__, version, encode(message, version))[0]
        reply = await self._world.answered(target, api.name, arrived, version)
        await self._travel(to)
        if not target.up:
            raise Unreachable(*to, "it died")
        return decode(api.response(), version, encode(reply, version))[0]

    async def _travel(self, to: Address) -> None:
        await asyncio.sleep(LATENCY_S)
        while self._world.cut(self._sender, to):
            await asyncio.sleep(0.01)


class Quorum:
    """Machines by number."""

    def __init__(self) -> None:
        self.machines: dict[int, Machine] = {}
        self.isolated: set[int] = set()
        self.properties: dict[str, str] = {}

    def settings(self, machine: Machine) -> BrokerSettings:
        listeners = "CONTROLLER://127.0.0.1:" + str(machine.address.port)
        role = {"process.roles": "controller", "listeners": listeners}
        if not machine.controller:
            role = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:" + str(machine.address.port)}
        return BrokerSettings.load(
            {
                **role,
                "node.id": str(machine.number),
                "log.dirs": "/data",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "127.0.0.1:9001,127.0.0.1:9002,127.0.0.1:9003",
                **self.properties,
            }
        )

    def add(self, number: int, *, controller: bool = True) -> Machine:
        self.machines[number] = machine = Machine(self, number, controller=controller)
        return machine

    def begin(self, count: int = 3, *, fixed: bool = False) -> None:
        """A new cluster of so many voters, all of them started; `fixed` names them in the configuration."""
        machines = [self.add(number) for number in range(1, count + 1)]
        voters = VoterSet(machine.voter for machine in machines)
        if fixed:
            self.properties["controller.quorum.bootstrap.servers"] = ""
            self.properties["controller.quorum.voters"] = ",".join(f"{each.number}@{each.address}" for each in machines)
        for machine in machines:
            if not fixed:
                machine.format(voters)
            machine.start()

    def cut(self, sender: Machine, to: Address) -> bool:
        target = next((each.number for each in self.machines.values() if each.address == to), NO_NODE)
        return (sender.number in self.isolated) != (target in self.isolated)

    async def answered(self, target: Machine, api: str, request: Any, version: int) -> Any:
        quorum, ctx = target.quorum, SimpleNamespace(api_version=version, allow=lambda *_: True)
        match api:
            case "Fetch":
                reply = quorum.fetch(ctx, request)  # type: ignore[arg-type]
            case "FetchSnapshot":
                reply = quorum.fetch_snapshot(ctx, request)  # type: ignore[arg-type]
            case "ApiVersions":
                response = APIS[18].response()
                reply = response(
                    supported_features=[
                        response.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                    ]
                )
            case _:
                doors = {
                    "Vote": quorum.vote, "BeginQuorumEpoch": quorum.begin_epoch, "EndQuorumEpoch": quorum.end_epoch,
                    "AddRaftVoter": quorum.add_voter, "RemoveRaftVoter": quorum.remove_voter,
                    "UpdateRaftVoter": quorum.update_voter,
                }  # fmt: skip
                reply = doors[api](request)  # type: ignore[operator]
        return await reply if isinstance(reply, Awaitable) else reply

    @property
    def live(self) -> list[Machine]:
        return [machine for machine in self.machines.values() if machine.up]

    async def leader(self, *, among: tuple[int, ...] = ()) -> Machine:
        """Who leads and has committed something in its epoch."""

        def leading() -> Machine | None:
            chosen = [each for each in self.live if not among or each.number in among]
            return next((each for each in chosen if each.quorum.leading and _committed_own(each)), None)

        await until(lambda: leading() is not None)
        found = leading()
        assert found is not None
        return found

    async def agreed(self) -> None:
        """Everybody who runs has published the same, up to the end of the leader's log."""
        leader = await self.leader()
        await until(lambda: all(each.metadata.published_end == leader.quorum.end for each in self.live))
        assert len({tuple(each.topics) for each in self.live}) == 1

    async def stop(self) -> None:
        for machine in self.live:
            await machine.stop()
        assert [failure for machine in self.machines.values() for failure in machine.failures] == []


def _committed_own(machine: Machine) -> bool:
    leadership = machine.quorum._opened.leadership
    return leadership is not None and leadership.high_watermark is not None


def run(steps: Callable[[Quorum], Coroutine[Any, Any, None]], count: int = 3, *, fixed: bool = False) -> Quorum:
    """Runs the steps against a new cluster, then stops what is left of it."""
    world = Quorum()

    async def main() -> None:
        world.begin(count, fixed=fixed)
        await steps(world)
        world.isolated.clear()
        await world.stop()

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(main())
    return world
