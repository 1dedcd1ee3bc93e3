"""The quorum among other nodes: what they ask and answer, the log served to followers or followed from a leader.

The door `Services.quorum` and the controller's log. `core` steps the machine; `transport` carries what it
says, `serving` serves the log, `fetcher` follows another's, `membership` changes the voters. With
one voter nothing is ever sent or fetched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.metadata.snapshot import image_of
from penstock.model.errors import (
    BROKER_NOT_AVAILABLE,
    NONE,
    Corrupt,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from penstock.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.messages.vote import VoteResponse
from penstock.quorum import events
from penstock.quorum.fetching import Wish, truncation_point
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import QuorumSettings, ReplicaKey, Role
from penstock.quorum.voters import Voter
from penstock.server.peers import Address
from penstock.server.quorum import messages as wire
from penstock.server.quorum.contacts import Contacts
from penstock.server.quorum.core import NO_PART, QuorumCore, version_of
from penstock.server.quorum.description import describe
from penstock.server.quorum.fetcher import FetcherSettings, QuorumFetcher
from penstock.server.quorum.joining import QuorumJoining
from penstock.server.quorum.membership import QuorumMembership
from penstock.server.quorum.messages import LeaderNow
from penstock.server.quorum.serving import QuorumServing
from penstock.server.quorum.snapshot_fetcher import SnapshotFetcher
from penstock.server.quorum.state_file import read_quorum_state
from penstock.server.quorum.transport import QuorumSender

if TYPE_CHECKING:
    from random import Random

    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Files, Offload
    from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
    from penstock.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
    from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse
    from penstock.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
    from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
    from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
    from penstock.protocol.messages.vote import VoteRequest
    from penstock.quorum.fetching import LogPoint
    from penstock.server.doors import Context
    from penstock.server.peers import Peers
    from penstock.server.quorum.metadata_driver import MetadataDriver
    from penstock.server.quorum.snapshot_driver import Installed
    from penstock.server.quorum.snapshot_file import Checkpoint, SnapshotId

log = logging.getLogger("penstock.quorum")

_FOLLOWS: Final = (Role.FOLLOWER, Role.UNATTACHED, Role.RESIGNED)
_GOODBYE_MS: Final = 1_000.0


class QuorumDriver(QuorumCore):
    """The metadata log's leader or follower on this node. The doors `Services.quorum` and the controller's log."""

    def __init__(
        self,
        files: Files,
        offload: Offload,
        clock: Clock,
        random: Random,
        directory: str,
        me: Voter,
        settings: BrokerSettings,
        metadata: MetadataDriver,
        *,
        peers: Peers | None = None,
        is_controller: bool = True,
        on_fatal: Callable[[Exception], None] = lambda _why: None,
    ) -> None:
        """Without `peers` nobody else is ever spoken to. `is_controller`: it may become a voter, so it syncs."""
        super().__init__(files, offload, clock, directory, me, settings, metadata, on_fatal)
        self._random, self._is_controller = random, is_controller
        self._leader_listeners: list[Callable[[], None]] = []
        self._install_listeners: list[Installed] = []
        self._told: tuple[NodeId, Address | None] = (NO_NODE, None)
        self._stance: tuple[Role, Epoch, NodeId] | None = None
        self._looking = False
        self.gone_leader = NO_NODE
        """The last leader we know of, when nobody listens any more where it did."""
        self._connect(peers)

    def _connect(self, peers: Peers | None) -> None:
        settings, me, cluster_id = self._settings, self._me, self._metadata.cluster_id
        request_timeout_ms = settings.number("controller.quorum.request.timeout.ms")
        retry_backoff_ms = settings.number("controller.quorum.retry.backoff.ms")
        bootstrap = [Address(*each) for each in settings.quorum_bootstrap_servers]
        name = next(iter(settings.controller_listener_names), "")
        self._contacts = Contacts(me.key.id, bootstrap, name)
        self._serving = QuorumServing(self, self._log, self._files, self._offload, cluster_id)
        self._membership = QuorumMembership(self, peers, self._clock, cluster_id, request_timeout_ms)
        self._sender: QuorumSender | None = None
        self._fetcher: QuorumFetcher | None = None
        self._joining: QuorumJoining | None = None
        self._rested, self._failing = self._news, self._serving.close
        if peers is None:
            return
        self._sender = QuorumSender(
            peers, self._contacts, cluster_id, me, request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms, address_of=self.address_of, still_wanted=self._still_wanted,
            answered=self.answered,
        )  # fmt: skip
        self._send = self._sender.send
        snapshots = SnapshotFetcher(
            self, peers, self._files, self._offload, self.directory, me.key, cluster_id,
            request_timeout_ms=request_timeout_ms,
            piece_bytes=settings.number("controller.quorum.fetch.snapshot.max.bytes"),
        )  # fmt: skip
        fetching = FetcherSettings(
            settings.number("controller.quorum.fetch.timeout.ms"),
            request_timeout_ms,
            retry_backoff_ms,
            settings.number("controller.quorum.fetch.max.bytes"),
        )
        self._fetcher = QuorumFetcher(self, peers, self._contacts, snapshots, self._clock, me.key, cluster_id, fetching)
        if self._is_controller and settings.flag("controller.quorum.auto.join.enable"):
            self._joining = QuorumJoining(self, peers, me, cluster_id, fetching.fetch_timeout_ms, request_timeout_ms)

    # Life

    def start(self) -> None:
        """Reads the disk and takes part. A quorum of one leads when this returns; nothing is committed yet."""
        self._node = QuorumNode(
            self._me,
            self._read_disk(),
            self._random,
            QuorumSettings(
                self._settings.number("controller.quorum.election.timeout.ms"),
                self._settings.number("controller.quorum.fetch.timeout.ms"),
                self._settings.number("controller.quorum.election.backoff.max.ms"),
            ),
        )
        state = read_quorum_state(self._files, self.directory)
        self._starting = True
        try:
            now = self._clock.monotonic_ms()
            self._step(events.Started(now, state, self._log.end, self._log.last_epoch))
        finally:
            self._starting = False
        if self._failure is not None:
            raise self._failure
        if self._fetcher is not None:
            self._fetcher.start()
        if self._joining is not None:
            self._joining.start()

    async def close(self) -> None:
        """Steps down, tells the others, syncs and lets go of the files."""
        if self._fetcher is not None:
            await self._fetcher.stopped()
        if self._joining is not None:
            self._joining.stop()
        if self._node is not None and not self._failed:
            await self.idle()
            self._closing = True
            self._step(events.ShutDown(self._clock.monotonic_ms()))
        self._closing = True
        self._serving.close()
        self._set_timer(None)
        if self._sender is not None:
            await self._sender.drain(_GOODBYE_MS)
        await self.idle()
        self._closed = True
        await self._log.close()

    def crash(self) -> None:
        """As if the process had been killed: nothing more is sent, written, synced or told."""
        self._failed = self._closing = self._closed = True
        self._set_timer(None)
        self._serving.crash()
        self._log.crash()
        for each in (self._fetcher, self._sender, self._joining):
            if each is not None:
                each.stop()

    # Who leads

    def _look(self) -> None:
        self._looking = False
        if not self._failed and not self._closed:
            self._serving.look()

    def _news(self, node: QuorumNode) -> None:
        """Tells those whom it concerns what has changed."""
        if len(self._serving) and not self._looking:
            # Soon: what is appended in one go is sent in one go.
            self._looking = True
            asyncio.get_running_loop().call_soon(self._look)
        stance = (node.role, node.epoch, node.leader)
        if stance != self._stance:
            self._stance = stance
            if self._fetcher is not None:
                self._fetcher.wake()
        told = (node.leader, self.leader_address)
        if told != self._told:
            self._told = told
            for listener in self._leader_listeners:
                listener()

    @property
    def leader_address(self) -> Address | None:
        """Where the active controller listens; None while nobody is known."""
        node = self._opened
        if node.leader == NO_NODE:
            return None
        if node.leader == self._me.key.id:
            # One whose disk has failed leads nobody, and there is no sense in asking itself.
            return self.own_address if self.leading else None
        return self._contacts.address_of(node.leader, node.epoch, node.voters)

    @property
    def own_address(self) -> Address | None:
        points = self._me.endpoints
        return Address(points[0].host, points[0].port) if points else None

    @property
    def leader_now(self) -> LeaderNow:
        return LeaderNow(self._opened.leader, self._opened.epoch, self.leader_address)

    def when_leader_changes(self, listener: Callable[[], None]) -> None:
        """Calls back when the leader or its address has changed."""
        self._leader_listeners.append(listener)

    def when_installed(self, listener: Installed) -> None:
        """Calls back when a snapshot of the leader has taken the place of the log."""
        self._install_listeners.append(listener)

    # Requests of other nodes

    def fetch(self, ctx: Context, request: FetchRequest) -> FetchResponse | Awaitable[FetchResponse]:
        """The reply to a fetch of the metadata log, or an awaitable of it."""
        if self._busy:
            return self._fetch_later(request, ctx.api_version)
        return self._serving.fetch(request, ctx.api_version)

    async def _fetch_later(self, request: FetchRequest, version: int) -> FetchResponse:
        await self.idle()
        served = self._serving.fetch(request, version)
        return served if isinstance(served, FetchResponse) else await served

    async def fetch_snapshot(self, ctx: Context, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        return await self._serving.fetch_snapshot(request)

    async def vote(self, request: VoteRequest) -> VoteResponse:
        problem = self._problem_of(request)
        if problem is not NONE:
            return VoteResponse(error_code=problem.code)
        answer = await self.asked(wire.read_vote(request, self._me.key.id))
        assert isinstance(answer, events.VoteAnswer), "a vote is asked for, a vote is given"
        return wire.vote_response(answer, self.leader_now)

    async def begin_epoch(self, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
        problem = self._problem_of(request)
        if problem is not NONE:
            return BeginQuorumEpochResponse(error_code=problem.code)
        ask = wire.read_begin(request, self._me.key.id)
        for point in request.leader_endpoints[:1]:
            self._contacts.tell(ask.epoch, ask.leader, point.host, point.port)
        answer = await self.asked(ask)
        assert isinstance(answer, events.EpochAnswer), "an epoch is announced, an epoch is answered"
        return wire.begin_response(answer, self.leader_now)

    async def end_epoch(self, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
        problem = self._problem_of(request)
        if problem is not NONE:
            return EndQuorumEpochResponse(error_code=problem.code)
        answer = await self.asked(wire.read_end(request))
        assert isinstance(answer, events.EpochAnswer), "an epoch is announced, an epoch is answered"
        return wire.end_response(answer, self.leader_now)

    def _problem_of(self, request: wire.EpochRequest) -> ErrorCode:
        if self._failed or self._closed:
            return BROKER_NOT_AVAILABLE
        return wire.problem_of(self._metadata.cluster_id, request)

    async def add_voter(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        return await self._membership.add(request)

    async def remove_voter(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        return await self._membership.remove(request)

    async def update_voter(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        return await self._membership.update(request)

    async def describe(self) -> DescribeQuorumResponse:
        """The reply to DescribeQuorum; only the leader knows it."""
        return describe(self._opened, self._log.end, self._clock)

    def asked(self, message: events.Ask) -> asyncio.Future[events.Reply]:
        """A node sent a request; the future holds the answer."""
        answer: asyncio.Future[events.Reply] = asyncio.get_running_loop().create_future()
        if self._failed or self._closed:
            answer.set_exception(Refused(BROKER_NOT_AVAILABLE, NO_PART))
        else:
            self._step(events.Asked(self._clock.monotonic_ms(), message), answer)
        return answer

    async def change(self, ask: events.ChangeAsk) -> events.ChangeAnswer:
        """A change of the voters is asked for; the answer when it is in the log."""
        answer = await self.asked(ask)
        assert isinstance(answer, events.ChangeAnswer), "a change is asked for, a change is answered"
        return answer

    def check_fetch(self, epoch: Epoch) -> ErrorCode:
        return self._opened.check_fetch(epoch)

    def replica_fetched(self, replica: ReplicaKey, end: Offset | None) -> None:
        """A replica fetched at `end`: it has everything before."""
        self._step(events.ReplicaFetched(self._clock.monotonic_ms(), replica, end))

    # Answers of other nodes

    def answered(self, by: NodeId, message: events.Reply) -> None:
        """A node answered what it was sent."""
        self._step(events.Answered(self._clock.monotonic_ms(), by, message))

    def heard(self, epoch: Epoch, leader: NodeId) -> None:
        """A node said who leads."""
        self.answered(leader, events.EpochAnswer(epoch, leader))

    def leader_gone(self, leader: NodeId, epoch: Epoch) -> None:
        """Nobody listens where the leader did."""
        self.gone_leader = leader
        self._step(events.LeaderGone(self._clock.monotonic_ms(), leader, epoch))

    def address_of(self, node: NodeId) -> Address | None:
        opened = self._opened
        return self._contacts.address_of(node, opened.epoch, opened.voters)

    def to_ask(self) -> list[Address]:
        opened = self._opened
        return self._contacts.to_ask(opened.epoch, opened.voters, self.own_address)

    def _still_wanted(self, ask: events.VoteAsk) -> bool:
        """Whether a vote would still be of use."""
        node = self._opened
        return node.epoch == ask.epoch and node.role is (Role.PROSPECTIVE if ask.pre_vote else Role.CANDIDATE)

    # Following

    def wish(self) -> Wish | None:
        """What to fetch now; None while this node leads or stands for election."""
        node = self._opened
        if self._failed or self._closing or node.role not in _FOLLOWS:
            return None
        # Who has a vote promises with its fetch that everything before is on its platter.
        offset = min(self._log.flushed, self._log.end) if self._is_controller else self._log.end
        return Wish(node.epoch, node.leader, offset, self._log.epoch_before(offset), node.high_watermark)

    def _fits(self, wish: Wish) -> bool:
        """Whether what was fetched for this wish may still be taken."""
        now = None if self._busy else self.wish()
        return now is not None and (now.epoch, now.leader, now.offset) == (wish.epoch, wish.leader, wish.offset)

    def take(self, wish: Wish, data: memoryview, high_watermark: Offset) -> None:
        """Appends what the leader sent. Refused when it does not continue the log."""
        if not self._fits(wish):
            return
        if data and wish.offset == self._log.end:
            # Else the disk is behind what is known, and this fetch was only to hear of the leader.
            decoded = self._log.append_fetched(data, wish.epoch)
            if decoded:
                self.pace.fetched_records += decoded[-1].batch.end - wish.offset
                self._learned(decoded)
        self._fetched(wish, high_watermark)

    def _fetched(self, wish: Wish, high_watermark: Offset | None) -> None:
        now = self._clock.monotonic_ms()
        self.gone_leader = NO_NODE
        self._step(events.FetchedFromLeader(now, wish.leader, wish.epoch, high_watermark))

    def still_fetching(self, leader: NodeId, epoch: Epoch) -> None:
        """The leader sent a piece of a snapshot, so it is well."""
        self._step(events.FetchedFromLeader(self._clock.monotonic_ms(), leader, epoch, None))

    async def cut(self, wish: Wish, diverging: LogPoint) -> None:
        """Drops what the leader's log does not have."""
        await self.idle()
        await self._log.quiet()
        if self._failed or not self._fits(wish):
            return
        view = self._log.view()
        to = truncation_point(view.tip.end, view.end_of, diverging)
        committed = max(self._metadata.published_end, self.high_watermark or 0)
        if to < committed:
            why = f"the leader's log parts at offset {to}, but {committed} is committed here; one of the two lost data"
            self._fail(Corrupt(self.directory, 0, why))
            return
        log.info("cutting the metadata log at offset %d: the leader of epoch %d has other records", to, wish.epoch)
        try:
            await self._log.truncate(to)
        except StorageFailed as failure:
            self._fail(failure)
            return
        self._metadata.unlearn(self._log.end)
        self._step(events.Truncated(self._clock.monotonic_ms(), self._log.end, self._log.last_epoch))
        self._fetched(wish, None)

    async def install(self, wish: Wish, snapshot: SnapshotId, content: Checkpoint, size: int) -> None:
        """Puts a snapshot of the leader, which is on the disk, in place of the log."""
        await self.idle()
        await self._log.quiet()
        if self._failed or not self._fits(wish):
            return
        image = image_of(content.records, Offset(snapshot.end - 1), snapshot.epoch)
        try:
            await self._log.install(snapshot)
        except StorageFailed as failure:
            self._fail(failure)
            return
        self._metadata.unlearn(Offset(0))
        self._metadata.last_timestamp = content.last_contained_timestamp
        self._metadata.replace(image)
        version = version_of(content, snapshot.end, self._configured_voters())
        now = self._clock.monotonic_ms()
        self._step(events.SnapshotInstalled(now, snapshot.end, snapshot.epoch, version))
        log.info("metadata snapshot %s took the place of the log", snapshot.file_name)
        for listener in self._install_listeners:
            listener(snapshot, size, content.last_contained_timestamp)
        await self._log.synced_names()

    async def settle(self, within_ms: float) -> None:
        """Syncs what was appended where the next fetch promises that it is on the platter.

        Returns in time also when the disk hangs: then the next fetch promises no more than the last, and the leader
        hears of us all the same.
        """
        if self._failed or not (self._is_controller or self._log.crowded):
            return
        if self._is_controller:
            self._log.want_flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_ms / 1_000):
                await self._log.quiet()
