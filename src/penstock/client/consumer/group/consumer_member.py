"""A member of a consumer group (KIP-848): one request, ConsumerGroupHeartbeat, carries everything.

The coordinator names the partitions that the member should have; the member gives up what is missing there, says so at
once, takes what is new, and says that too. A full heartbeat (all fields) opens a membership and follows every failure;
otherwise only what changed is sent.

Where a member is follows from what it knows: whether it has an epoch, a target that it has not reached, and partitions.
An empty field: it cannot happen, or nothing follows.

| | outside: no epoch | lost: no epoch, partitions | settled: no target | on its way to a target |
|---|---|---|---|---|
| no hook runs | full heartbeat, epoch 0 | `Revoke`, lost | heartbeats | `Revoke`, then `LearnNames`, then `Assign` |
| a reply with an assignment | on its way | | on its way | on its way, to that one |
| a reply without | settled | | | |
| a hook is done | | outside | a heartbeat says what it holds | the next step; the last: settled |
| the subscription changes | | | heartbeat at once | heartbeat at once |
| FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID | again | | lost, or outside | lost, or outside |
| the coordinator is lost, no reply | full heartbeat to the next one | | the same | the same |
| another error that may pass | pause, full heartbeat | | the same | the same |
| another error | failed | | failed: lost | failed: lost |
| the application polls too late | | | leaves: lost until it polls | leaves: lost until it polls |
| `leave` | ended | `Revoke`, ended | `Revoke`, farewell, ended | the same |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.client.consumer.group.effects import Assign, Effect, LearnNames, Revoke, Send
from penstock.client.consumer.group.membership import GroupMember, MemberSettings, partitions_text
from penstock.client.errors import ClientError, refusal
from penstock.client.retry import Backoff
from penstock.model.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REGULAR_EXPRESSION,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
    ErrorCode,
    error_of,
)
from penstock.model.ids import PartitionKey, TopicPartition, Uuid
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
NAMES_RETRY_MS = 1_000

_WORDS: Mapping[ErrorCode, str] = {
    FENCED_INSTANCE_ID: "another consumer with the same group_instance_id has taken its place",
    UNRELEASED_INSTANCE_ID: "another consumer with the same group_instance_id is a member; "
    "close it first, or wait until its session has ended",
    UNSUPPORTED_ASSIGNOR: "the broker has no such assignor; group_remote_assignor must be one of the broker's "
    "group.consumer.assignors, or unset",
    INVALID_REGULAR_EXPRESSION: "the pattern is not one that brokers understand (RE2 syntax)",
    UNSUPPORTED_VERSION: 'the cluster does not serve group_protocol="consumer", or not this use of it; '
    'set group_protocol="classic"',
    GROUP_MAX_SIZE_REACHED: "the group is full (group.consumer.max.size on the broker)",
    GROUP_ID_NOT_FOUND: "the group is gone",
}


class ConsumerMember(GroupMember):
    """See the module. `member_id` is made by the caller and stays the same for ever."""

    def __init__(self, settings: MemberSettings, backoff: Backoff, member_id: str) -> None:
        super().__init__(settings, backoff)
        self.member_id = member_id
        self._asked: Send | None = None
        self._asked_full = False
        self._beat_at = 0.0
        self._interval_ms: float = settings.heartbeat_interval_ms
        self._full = True
        self._said_subscription: tuple[frozenset[str], str | None] | None = None
        self._said_held: frozenset[PartitionKey] | None = None
        self._held: frozenset[PartitionKey] = frozenset()
        self._target: frozenset[PartitionKey] | None = None
        self._names: dict[Uuid, str] = {}
        self._learning = False
        self._learn_at = 0.0
        self._given_up = 0

    def names_learned(self, names: Mapping[Uuid, str], now: float) -> list[Effect]:
        """Names of topics that were asked for; those that are still unknown are asked for again later."""
        self._learning = False
        self._names.update(names)
        self._learn_at = now + NAMES_RETRY_MS
        return self._flush(now)

    def commit_refused(self, error: ErrorCode, generation: int, now: float) -> list[Effect]:
        """A commit learned before the heartbeat did that the member is out."""
        if not self._over and generation == self.generation and error is UNKNOWN_MEMBER_ID:
            self._expelled(error)
        return self._flush(now)

    # Membership.

    def _subscription_changed(self) -> None:
        self._beat_at = 0.0

    def _on_coordinator_found(self, now: float) -> None:
        self._beat_at = now

    def _on_coordinator_lost(self, now: float) -> None:
        self._asked = None
        self._full = True

    def _ask_for_what_is_missing(self, now: float) -> None:
        if self._hook is None:
            self._reconcile(now)
        self._keep_alive(now)

    def _deadlines(self) -> Iterable[float]:
        if not self._coordinator and not self._finding:
            yield self._retry_at
        yield from self._beats_at()
        if self._target is not None and not self._learning and self._unnamed():
            yield self._learn_at
        if self.generation >= 0 and not self.expired:
            yield self._poll_deadline()

    def _beats_at(self) -> Iterable[float]:
        if self._coordinator and self._asked is None and not self._outside:
            yield max(self._beat_at, self._retry_at)

    def _on_answer_while_leaving(self, sent: Send, reply: Any | None) -> None:
        if sent is self._asked:
            self._asked = None
            if reply is not None and reply.error_code == NONE.code:
                self.generation = reply.member_epoch  # commits in the last hook still need it

    def _drop_out(self) -> None:
        self.generation = -1
        self._asked = None
        self._target = None
        self._full = True

    def _farewell_request(self, why: str) -> Any | None:
        if self.generation < 0 and self._asked is None:
            return None
        epoch = LEAVE_EPOCH if self.settings.instance_id is None else LEAVE_STATIC_EPOCH
        return ConsumerGroupHeartbeatRequest(
            group_id=self.settings.group_id,
            member_id=self.member_id,
            instance_id=self.settings.instance_id,
            member_epoch=epoch,
        )

    # Reconciliation.

    def _reconcile(self, now: float) -> None:
        if self.generation < 0:
            if self._held:
                self._begin_hook(Revoke(self._named(self._held), lost=True), now)
            return
        target = self._target
        if target is None:
            return
        going = self._held - target
        if going:
            self._begin_hook(Revoke(self._named(going), lost=False), now)
            return
        unnamed = self._unnamed()
        if unnamed and not self._learning and now >= self._learn_at:
            self._learning = True
            self._emit(LearnNames(unnamed))
        coming = frozenset(key for key in target - self._held if key.topic_id in self._names)
        if coming or not unnamed:
            if not unnamed:
                self._target = None
            added = self._named(coming)
            self._held |= coming
            self.owned |= added
            self._round_done(len(added), self._given_up, now)
            self._given_up = 0
            self._begin_hook(Assign(added), now)

    def _on_revoked(self, hook: Revoke, now: float) -> None:
        self._held = frozenset(key for key in self._held if self._name(key) not in hook.partitions)
        self._given_up += len(hook.partitions)
        if hook.lost:
            self._say(f"lost {partitions_text(hook.partitions)}")

    def _on_assigned(self, now: float) -> None:
        """The next heartbeat acknowledges what was taken; `_keep_alive` sees the difference."""

    def _unnamed(self) -> frozenset[Uuid]:
        target = self._target or frozenset()
        return frozenset(key.topic_id for key in target if key.topic_id not in self._names)

    def _name(self, key: PartitionKey) -> TopicPartition:
        return TopicPartition(self._names[key.topic_id], key.partition)

    def _named(self, keys: Iterable[PartitionKey]) -> frozenset[TopicPartition]:
        return frozenset(map(self._name, keys))

    # Heartbeats.

    @property
    def _outside(self) -> bool:
        """Not a member, and not free to become one yet: lost partitions come first, or the application sleeps."""
        return self.generation < 0 and (self.expired or bool(self._held))

    def _keep_alive(self, now: float) -> None:
        if not self._coordinator or self._asked is not None or self._outside or now < self._retry_at:
            return
        joining = self.generation < 0
        # What a hook still holds is not given up, and what it is being told is not taken.
        steady = self._hook is None
        news = (steady and self._held != self._said_held) or self._subscription != self._said_subscription
        if not (joining or self._full or news or now >= self._beat_at):
            return
        self._asked_full = joining or self._full
        self._asked = Send(self._request(joining, steady), self.settings.request_timeout_ms)
        self._full = False
        self._beat_at = now + self._interval_ms
        self.counters.heartbeats += 1
        self.counters.joins += joining
        self.counters.last_heartbeat_at = now
        self._emit(self._asked)

    @property
    def _subscription(self) -> tuple[frozenset[str], str | None]:
        return self._topics, self._pattern

    def _request(self, joining: bool, steady: bool) -> ConsumerGroupHeartbeatRequest:
        settings, everything = self.settings, self._asked_full
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            instance_id=settings.instance_id,
            member_epoch=JOIN_EPOCH if joining else self.generation,
        )
        if everything:
            request.rack_id = settings.rack
            request.rebalance_timeout_ms = settings.max_poll_interval_ms
            request.server_assignor = settings.remote_assignor
        if everything or self._subscription != self._said_subscription:
            had_pattern = self._said_subscription is not None and self._said_subscription[1] is not None
            request.subscribed_topic_names = [] if self._pattern is not None else sorted(self._topics)
            request.subscribed_topic_regex = self._pattern if self._pattern is not None else "" if had_pattern else None
            self._said_subscription = self._subscription
        if everything or (steady and self._held != self._said_held):
            if steady:
                self._said_held = self._held
            request.topic_partitions = _grouped(self._said_held or self._held)
        return request

    def _take_reply(self, sent: Send, reply: ConsumerGroupHeartbeatResponse, now: float) -> None:
        if sent is not self._asked:
            return
        self._asked = None
        error = error_of(reply.error_code)
        if error is not NONE:
            self._full = True
            self._refused(error, reply.error_message, now)
            return
        self._failures = 0
        if reply.member_id:
            self.member_id = reply.member_id
        self.generation = reply.member_epoch
        self._interval_ms = reply.heartbeat_interval_ms
        self._beat_at = min(self._beat_at, now + self._interval_ms) if not self._asked_full else now + self._interval_ms
        if reply.assignment is not None:
            self._target = frozenset(
                PartitionKey(topic.topic_id, number)
                for topic in reply.assignment.topic_partitions
                for number in topic.partitions
            )
            self._learn_at = 0.0
            if self._round_since is None:
                self._round_since = now

    def _take_silence(self, sent: Send, error: ClientError, now: float) -> None:
        if sent is not self._asked:
            return
        self._asked = None
        self._full = True
        if error.error is UNSUPPORTED_VERSION:
            self._fail(refusal(UNSUPPORTED_VERSION.code, f"{_WORDS[UNSUPPORTED_VERSION]} ({error.why})", self._where))
        elif error.retriable:
            self._back_off(now)
            self._lose_coordinator(str(error), now)
        else:
            self._fail(error)

    def _refused(self, error: ErrorCode, why: str | None, now: float) -> None:
        if error in (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID):
            self._back_off(now) if self._failures else None
            self._failures = max(self._failures, 1)
            self._expelled(error)
        elif error.retriable:
            self._back_off(now)
            if error in (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR):
                self._lose_coordinator(error.name, now)
        else:
            known = _WORDS.get(error)
            self._fail(refusal(error.code, f"{known} ({why})" if known and why else known or why, self._where))

    def _expelled(self, error: ErrorCode) -> None:
        self._say(f"is no longer a member: {error.name}")
        self._drop_out()

    @property
    def _where(self) -> str:
        return f"group {self.settings.group_id}"


def _grouped(keys: Iterable[PartitionKey]) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, number in sorted(keys):
        topics.setdefault(topic_id, []).append(number)
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in topics.items()
    ]
