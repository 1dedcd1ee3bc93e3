"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the leader's part.

A round: give up what the strategy demands (all of it, or with cooperative strategies only what is no longer
subscribed), join, let the leader assign, sync, take the difference. With a cooperative strategy what the new
assignment lacks is given up after the sync, and the member joins once more so that others can have it.

Heartbeats stop while a JoinGroup or SyncGroup is held back: the broker answers a connection in order, and it keeps the
session of a member that waits in a join.

| phase | what ends it | what comes next |
|---|---|---|
| outside, stable | a reason to join | preparing if something must be given up first, else ready |
| preparing | the hook has given it up | ready |
| ready | a coordinator, an application that polls, the pause of a failure | joining |
| joining | the answer to JoinGroup | learning as leader, else syncing |
| learning | what exists of the topics; nothing could be learned: ready | syncing |
| syncing | the answer to SyncGroup | giving up if the assignment lacks something, else taking |
| giving up | the hook has given it up, which is a reason to join | taking; stable if it was expelled meanwhile |
| taking | the hook has heard of it | stable |

What goes wrong; "again" is a reason to join, which counts when this round is over. An empty field: it cannot happen,
or nothing follows.

| | joining, syncing | phases with heartbeats: preparing, learning, giving up, taking, stable |
|---|---|---|
| the coordinator is lost | ready | heartbeats stop until there is another |
| no heartbeat is answered for a session | | the coordinator is lost |
| MEMBER_ID_REQUIRED | ready, with the id | |
| REBALANCE_IN_PROGRESS | ready; after a pause if joining | again, unless preparing |
| UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION | expelled, ready | expelled, again |
| another error that may pass | ready after a pause | a pause |
| another error | failed: everything is lost | failed: everything is lost |
| the application polls too late | expelled, LeaveGroup; ready | expelled, LeaveGroup; again when it polls |
| the subscription or the topics change | again | again |
| a commit is refused | | as for a heartbeat, unless learning |
| `leave` | gives all up, LeaveGroup, ended | the same, with heartbeats while the hook runs |

Expelled: the generation is forgotten, and what the member owns is lost to it in the next round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from penstock.client.consumer.group.assignors.subscription import (
    NO_GENERATION,
    PROTOCOL_TYPE,
    Assignor,
    GroupTopics,
    Remembered,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.client.consumer.group.effects import Assign, Effect, LearnTopics, Revoke, Send
from penstock.client.consumer.group.membership import NOTHING, GroupMember, MemberSettings, partitions_text
from penstock.client.errors import BrokerRefused, ClientError, refusal
from penstock.client.retry import Backoff
from penstock.model.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    error_of,
)
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.protocol.wire import Malformed

HELD_BACK_GRACE_MS = 5_000
REASON_CHARS_MAX = 255


class Phase(Enum):
    """Where the member is in a round. PREPARING, GIVING_UP and TAKING wait for a hook, LEARNING for metadata."""

    OUTSIDE = "outside"
    PREPARING = "preparing"
    READY = "ready"
    JOINING = "joining"
    LEARNING = "learning"
    SYNCING = "syncing"
    GIVING_UP = "giving up"
    TAKING = "taking"
    STABLE = "stable"


_BEATING = frozenset({Phase.PREPARING, Phase.LEARNING, Phase.GIVING_UP, Phase.TAKING, Phase.STABLE})

_WORDS: Mapping[ErrorCode, str] = {
    FENCED_INSTANCE_ID: "another consumer with the same group_instance_id has taken its place",
    INCONSISTENT_GROUP_PROTOCOL: "the other members of the group share no strategy with this one; "
    "give all of them a common partition_assignment_strategy, and do not mix consumers with other kinds of members",
    INVALID_SESSION_TIMEOUT: "session_timeout_ms is outside of what the broker allows "
    "(group.min.session.timeout.ms to group.max.session.timeout.ms)",
    GROUP_MAX_SIZE_REACHED: "the group is full (group.max.size on the broker)",
}


class ClassicMember(GroupMember):
    """See the module. `leader` tells whether this member assigns; `watched` are the topics it then looks after."""

    def __init__(self, settings: MemberSettings, backoff: Backoff) -> None:
        super().__init__(settings, backoff)
        self.phase = Phase.OUTSIDE
        self.leader = False
        self.watched: frozenset[str] = frozenset()
        # A strategy is cooperative only when every one that might be chosen is.
        self._cooperative = all(assignor.cooperative for assignor in settings.assignors)
        self._why_join: str | None = ""
        self._asked: Send | None = None
        self._heartbeat: Send | None = None
        self._beat_at = 0.0
        self._session_ends_at = 0.0
        self._remembered = Remembered()
        self._target: frozenset[TopicPartition] = NOTHING
        self._joined_topics: frozenset[str] = frozenset()
        self._members: dict[str, Subscription] = {}
        self._skip_assignment = False
        self._protocol = ""
        self._snapshot: dict[str, object] | None = None

    # Metadata, for the leader.

    def topics_learned(self, topics: GroupTopics, now: float) -> list[Effect]:
        """What exists of the watched topics, as it was asked for."""
        if not self._over and self.phase is Phase.LEARNING:
            self._assign_all(topics, now)
        return self._flush(now)

    def topics_seen(self, topics: GroupTopics, now: float) -> list[Effect]:
        """What exists of the watched topics by now; another picture than was assigned calls for another round."""
        if self._over or self._snapshot is None or self._picture(topics) == self._snapshot:
            return []
        self._rejoin("cached metadata has changed")
        return self._flush(now)

    def topics_missing(self, error: ClientError, now: float) -> list[Effect]:
        """Nothing could be learned; the round is begun again, because the group must not wait for us for ever."""
        if not self._over and self.phase is Phase.LEARNING:
            self._start_over(f"no metadata: {error}", now)
        return self._flush(now)

    def commit_refused(self, error: ErrorCode, generation: int, now: float) -> list[Effect]:
        """A commit learned before the heartbeat did that the group has moved on.

        Commits have a connection of their own. One that is refused while a round is under way may have met the next
        generation, which the answer to our own join is about to tell: then nothing is lost, and there is no need of
        yet another round.
        """
        in_round = self.phase in (Phase.JOINING, Phase.LEARNING, Phase.SYNCING)
        if not self._over and not in_round and generation == self.generation:
            if error is REBALANCE_IN_PROGRESS:
                self._rejoin("offset commit failed since group is already rebalancing")
            elif error in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
                self._expelled(error)
        return self._flush(now)

    # Membership.

    def _subscription_changed(self) -> None:
        if self.phase is not Phase.OUTSIDE and self._topics != self._joined_topics:
            self._rejoin("subscription has changed")

    def _on_coordinator_found(self, now: float) -> None:
        self._session_ends_at = now + self.settings.session_timeout_ms

    def _on_coordinator_lost(self, now: float) -> None:
        self._heartbeat = None
        self._beat_at = now
        if self._asked is not None:
            self._asked = None
            self._start_over("the coordinator was lost", None)

    def _ask_for_what_is_missing(self, now: float) -> None:
        if self.phase in (Phase.OUTSIDE, Phase.STABLE) and self._why_join is not None:
            self.phase = Phase.READY
            self._round_since = now
            self._prepare(now)
        if self.phase is Phase.READY:
            self._join(now)
        self._keep_alive(now)

    def _deadlines(self) -> Iterable[float]:
        if not self._coordinator:
            if not self._finding:
                yield self._retry_at
        elif self.phase is Phase.READY and not self.expired:
            yield self._retry_at
        yield from self._beats_at()
        if self.generation >= 0 and not self.expired:
            yield self._poll_deadline()

    def _beats_at(self) -> Iterable[float]:
        if self._coordinator and self.phase in _BEATING and self.generation >= 0:
            yield self._session_ends_at if self._heartbeat is not None else min(self._beat_at, self._session_ends_at)

    def _keep_alive(self, now: float) -> None:
        if self._coordinator and self.phase in _BEATING and self.generation >= 0:
            self._beat(now)

    def _on_answer_while_leaving(self, sent: Send, reply: Any | None) -> None:
        if sent is self._heartbeat:
            self._heartbeat = None
            self._session_ends_at = self.counters.last_heartbeat_at + self.settings.session_timeout_ms

    def _drop_out(self) -> None:
        self._forget(keep_member_id=False)
        self._rejoin("consumer pro-actively leaving the group")

    def _farewell_request(self, why: str) -> Any | None:
        # A static member that restarts gets its partitions back; its session ends it when it does not.
        if self.settings.instance_id is not None or not self.member_id:
            return None
        who = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, reason=why)
        return LeaveGroupRequest(group_id=self.settings.group_id, members=[who])

    # A round, in order.

    def _rejoin(self, why: str) -> None:
        if self._why_join is None:
            self._why_join = why

    def _prepare(self, now: float) -> None:
        """Gives up what must not be held while joining."""
        lost = self.generation < 0
        if lost or not self._cooperative:
            going = self.owned
        else:
            going = frozenset(partition for partition in self.owned if partition.topic not in self._topics)
        self.leader, self.watched, self._snapshot = False, frozenset(), None
        if going:
            self.phase = Phase.PREPARING
            self._begin_hook(Revoke(going, lost=lost), now)

    def _join(self, now: float) -> None:
        if self.owned and self.generation < 0:
            self._prepare(now)  # expelled after it had prepared
            return
        if not self._coordinator or self.expired or now < self._retry_at:
            return
        self.phase = Phase.JOINING
        self.counters.joins += 1
        settings = self.settings
        self._joined_topics = self._topics
        why, self._why_join = self._why_join, None
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=assignor.name, metadata=self._subscription(assignor))
                for assignor in settings.assignors
            ],
            reason=(why or "")[:REASON_CHARS_MAX],
        )
        self._ask(request, self._held_back_ms)

    def _subscription(self, assignor: Assignor) -> bytes:
        return encode_subscription(
            Subscription(
                topics=tuple(self._topics),
                owned=tuple(self.owned),
                generation=self._remembered.generation,
                user_data=assignor.user_data(self._remembered),
                rack=self.settings.rack,
            )
        )

    def _joined(self, reply: JoinGroupResponse, now: float) -> None:
        name = reply.protocol_name or ""
        if reply.protocol_type not in (None, PROTOCOL_TYPE) or not any(
            assignor.name == name for assignor in self.settings.assignors
        ):
            self._fail(refusal(INCONSISTENT_GROUP_PROTOCOL.code, _WORDS[INCONSISTENT_GROUP_PROTOCOL], self._where))
            return
        self.member_id, self.generation, self._protocol = reply.member_id, reply.generation_id, name
        self._failures = 0
        self._session_ends_at = now + self.settings.session_timeout_ms
        self._beat_at = now + self.settings.heartbeat_interval_ms
        if reply.leader != reply.member_id:
            self._sync([])
            return
        try:
            self._members = {
                member.member_id: decode_subscription(member.metadata, member.group_instance_id)
                for member in reply.members
            }
        except Malformed as broken:
            self._fail(BrokerRefused(f"a member's subscription cannot be read: {broken}", where=self._where))
            return
        self.leader = True
        self._skip_assignment = reply.skip_assignment
        self.watched = frozenset(topic for member in self._members.values() for topic in member.topics)
        self.phase = Phase.LEARNING
        self._emit(LearnTopics(self.watched))

    def _assign_all(self, topics: GroupTopics, now: float) -> None:
        self._snapshot = self._picture(topics)
        if not self._coordinator or self.generation < 0:
            self._start_over("the coordinator was lost", None)
            return
        if self._skip_assignment:
            self._sync([])
            return
        assignor = next(assignor for assignor in self.settings.assignors if assignor.name == self._protocol)
        there = {topic: topics[topic] for topic in sorted(self.watched) if topics.get(topic)}
        shares = assignor.assign(there, self._members)
        self._say(
            f"assigns generation {self.generation} by {assignor.name}: "
            + ", ".join(f"{member_id} gets {len(partitions)}" for member_id, partitions in sorted(shares.items()))
        )
        self._sync(
            [
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(share))
                for member_id, share in shares.items()
            ]
        )

    def _picture(self, topics: GroupTopics) -> dict[str, object]:
        """What would change the assignment: partition counts, and racks when a member has one."""
        with_racks = any(member.rack for member in self._members.values())
        return {
            topic: tuple(topics[topic]) if with_racks else len(topics[topic])
            for topic in self.watched
            if topics.get(topic)
        }

    def _sync(self, assignments: Sequence[SyncGroupRequest.SyncGroupRequestAssignment]) -> None:
        self.phase = Phase.SYNCING
        request = SyncGroupRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=list(assignments),
        )
        self._ask(request, self._held_back_ms)

    def _synced(self, reply: SyncGroupResponse, now: float) -> None:
        try:
            self._target = frozenset(decode_assignment(reply.assignment))
        except Malformed as broken:
            self._fail(BrokerRefused(f"the assignment cannot be read: {broken}", where=self._where))
            return
        self._session_ends_at = now + self.settings.session_timeout_ms
        going = self.owned - self._target
        if going:
            self.phase = Phase.GIVING_UP
            self._begin_hook(Revoke(going, lost=False), now)
        else:
            self._take(0, now)

    def _take(self, given_up: int, now: float) -> None:
        self.phase = Phase.TAKING
        added = self._target - self.owned
        self.owned = self._target
        self._remembered = Remembered(tuple(sorted(self._target)), self.generation)
        self._round_done(len(added), given_up, now)
        self._begin_hook(Assign(added), now)

    def _on_revoked(self, hook: Revoke, now: float) -> None:
        if self.phase is Phase.GIVING_UP:
            self._rejoin("need to revoke partitions and re-join")
            if self.generation < 0:
                self.phase = Phase.STABLE  # expelled meanwhile: what is left is lost in the next round
            else:
                self._take(len(hook.partitions), now)
        elif self.phase is Phase.PREPARING:
            self.phase = Phase.READY
            words = "lost" if hook.lost else "gives up"
            self._say(f"{words} {partitions_text(hook.partitions)} ({self._why_join or 'rejoins'})")

    def _on_assigned(self, now: float) -> None:
        if self.phase is Phase.TAKING:
            self.phase = Phase.STABLE

    # Heartbeats.

    def _beat(self, now: float) -> None:
        if now >= self._session_ends_at:
            self._lose_coordinator("no heartbeat was answered within session_timeout_ms", now)
            return
        if self._heartbeat is not None or now < self._beat_at:
            return
        settings = self.settings
        request = HeartbeatRequest(
            group_id=settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
        )
        self._heartbeat = Send(request, min(settings.request_timeout_ms, settings.session_timeout_ms))
        self._beat_at = now + settings.heartbeat_interval_ms
        self.counters.heartbeats += 1
        self.counters.last_heartbeat_at = now
        self._emit(self._heartbeat)

    def _beat_answered(self, sent: Send, error: ErrorCode, now: float) -> None:
        self._heartbeat = None
        if sent.request.generation_id != self.generation or sent.request.member_id != self.member_id:
            return
        if error in (NONE, REBALANCE_IN_PROGRESS):
            self._failures = 0
            self._session_ends_at = self.counters.last_heartbeat_at + self.settings.session_timeout_ms
            if error is REBALANCE_IN_PROGRESS and self.phase is not Phase.PREPARING:
                self._rejoin("group is already rebalancing")
        elif error in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
            self._expelled(error)
        elif error is COORDINATOR_LOAD_IN_PROGRESS:
            self._beat_at = now + self._backoff.delay_ms(1)
        else:
            self._refused(error, now)

    # What goes wrong.

    def _take_reply(self, sent: Send, reply: Any, now: float) -> None:
        error = error_of(reply.error_code)
        if sent is self._heartbeat:
            self._beat_answered(sent, error, now)
        elif sent is self._asked:
            self._asked = None
            if error is not NONE:
                self._round_refused(error, reply, now)
            elif isinstance(reply, JoinGroupResponse):
                self._joined(reply, now)
            else:
                self._synced(reply, now)

    def _take_silence(self, sent: Send, error: ClientError, now: float) -> None:
        if sent is self._heartbeat or sent is self._asked:
            if error.retriable:
                self._back_off(now)
                self._lose_coordinator(str(error), now)
            else:
                self._fail(error)

    def _round_refused(self, error: ErrorCode, reply: Any, now: float) -> None:
        sent_join = isinstance(reply, JoinGroupResponse)
        if error is MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            self.phase = Phase.READY
            self._rejoin("need to re-join with the given member-id")
        elif error is REBALANCE_IN_PROGRESS:
            # To a sync it means that the next round has begun; to a join, that the broker could not write.
            self._start_over(f"rebalance failed due to {error.name}", now if sent_join else None)
        elif error in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
            self._expelled(error)
            # At once, but not in a tight loop when the broker forgets us again and again.
            self._start_over(f"encountered {error.name}", now if self._failures else None)
            self._failures = max(self._failures, 1)
        else:
            self._start_over(f"rebalance failed due to {error.name}", None)
            self._refused(error, now)

    def _refused(self, error: ErrorCode, now: float) -> None:
        if error.retriable:
            self._back_off(now)
            if error in (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR):
                self._lose_coordinator(error.name, now)
        else:
            self._fail(refusal(error.code, _WORDS.get(error), self._where))

    def _expelled(self, error: ErrorCode) -> None:
        """The group goes on without us. The member id may still be good when only the generation is old."""
        self._say(f"is no longer a member: {error.name}")
        self._forget(keep_member_id=error is ILLEGAL_GENERATION)
        self._rejoin(f"encountered {error.name}")

    def _forget(self, *, keep_member_id: bool) -> None:
        self.generation = NO_GENERATION
        self._heartbeat = None
        if not keep_member_id:
            self.member_id = ""
        if self.phase in (Phase.JOINING, Phase.SYNCING):
            self._asked = None
            self.phase = Phase.READY

    def _start_over(self, why: str, now: float | None) -> None:
        """Another round without giving up more, after a pause when `now` is given."""
        self.counters.failed_rebalances += 1
        self.phase = Phase.READY
        self._rejoin(why)
        if now is not None:
            self._back_off(now)

    @property
    def _where(self) -> str:
        return f"group {self.settings.group_id}"

    @property
    def _held_back_ms(self) -> float:
        return max(self.settings.request_timeout_ms, self.settings.max_poll_interval_ms + HELD_BACK_GRACE_MS)

    def _ask(self, request: Any, timeout_ms: float) -> None:
        self._asked = Send(request, timeout_ms)
        self._emit(self._asked)
