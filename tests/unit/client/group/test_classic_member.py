"""ClassicMember by script: what comes in on the left, what it wants done on the right."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.consumer.group.assignors import assignors_of
from penstock.client.consumer.group.assignors.subscription import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.client.consumer.group.classic_member import ClassicMember, Phase
from penstock.client.consumer.group.effects import (
    Assign,
    Effect,
    Ended,
    Fail,
    FindCoordinator,
    LearnTopics,
    LoseCoordinator,
    Revoke,
    Say,
    Send,
)
from penstock.client.consumer.group.membership import MemberSettings
from penstock.client.errors import MemberFenced, NotReachable
from penstock.client.retry import Backoff
from penstock.model import errors
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))
ONE_RACK = {"t": [frozenset[str]()] * 3}


def said(effects: list[Effect]) -> list[Effect]:
    """Effects without the lines for the log."""
    return [effect for effect in effects if not isinstance(effect, Say)]


class Play:
    """A member, the time, and the last request it sent."""

    def __init__(self, strategy: str = "range", *, instance_id: str | None = None) -> None:
        settings = MemberSettings("g", instance_id=instance_id, assignors=assignors_of(strategy.split(",")))
        self.member = ClassicMember(settings, Backoff(100, 1_000, lambda: 0.5))
        self.now = 0.0
        self.effects: list[Effect] = []
        self.sent: Send | None = None

    def take(self, effects: list[Effect]) -> Play:
        self.effects = said(effects)
        self.sent = next((effect for effect in effects if isinstance(effect, Send)), self.sent)
        return self

    def reply(self, reply: Any) -> Play:
        assert self.sent is not None
        return self.take(self.member.replied(self.sent, reply, self.now))

    def wait(self, ms: float) -> Play:
        self.now += ms
        return self.take(self.member.tick(self.now))

    def done(self) -> Play:
        return self.take(self.member.hook_done(self.now))

    @property
    def request(self) -> Any:
        assert len(self.effects) == 1, self.effects
        assert isinstance(self.effects[0], Send), self.effects
        return self.effects[0].request

    def begin(self) -> Play:
        self.member.subscribe(frozenset({"t"}), None, self.now)
        self.take(self.member.start(self.now))
        assert self.effects == [FindCoordinator()]
        return self.take(self.member.coordinator_found(self.now))

    def joined(self, *, generation: int = 1, leader: str = "other", strategy: str = "range") -> Play:
        return self.reply(
            JoinGroupResponse(
                generation_id=generation,
                protocol_type="consumer",
                protocol_name=strategy,
                leader=leader,
                member_id="me",
            )
        )

    def synced(self, *partitions: TopicPartition) -> Play:
        return self.reply(SyncGroupResponse(assignment=encode_assignment(partitions)))

    def stable(self, *partitions: TopicPartition, strategy: str = "range") -> Play:
        self.begin().joined(strategy=strategy).synced(*partitions)
        assert self.effects == [Assign(frozenset(partitions))]
        self.done()
        assert self.member.phase is Phase.STABLE
        return self

    def beat(self, error: ErrorCode = errors.NONE) -> Play:
        self.wait(3_000)
        assert isinstance(self.request, HeartbeatRequest)
        return self.reply(HeartbeatResponse(error_code=error.code))


def test_a_new_member_joins_twice_because_it_is_given_its_id_first() -> None:
    play = Play().begin()
    assert play.request.member_id == ""
    assert [protocol.name for protocol in play.request.protocols] == ["range"]
    play.reply(JoinGroupResponse(error_code=errors.MEMBER_ID_REQUIRED.code, member_id="me"))
    assert isinstance(play.request, JoinGroupRequest)
    assert play.request.member_id == "me"
    play.joined()
    assert isinstance(play.request, SyncGroupRequest)
    assert (play.request.generation_id, play.request.assignments) == (1, [])


def test_the_leader_learns_the_topics_and_assigns_for_everybody() -> None:
    play = Play().begin()
    members = [
        JoinGroupResponse.JoinGroupResponseMember(member_id=name, metadata=encode_subscription(Subscription(("t",))))
        for name in ("me", "you")
    ]
    reply = JoinGroupResponse(generation_id=1, protocol_name="range", leader="me", member_id="me", members=members)
    assert play.reply(reply).effects == [LearnTopics(frozenset({"t"}))]
    play.take(play.member.topics_learned(ONE_RACK, play.now))
    shares = {share.member_id: decode_assignment(share.assignment) for share in play.request.assignments}
    assert shares == {"me": (P0, P1), "you": (P2,)}


def test_a_leader_that_is_told_to_skip_hands_out_nothing() -> None:
    play = Play(instance_id="i").begin()
    mine = JoinGroupResponse.JoinGroupResponseMember(member_id="me", metadata=encode_subscription(Subscription(("t",))))
    play.reply(
        JoinGroupResponse(
            generation_id=4, protocol_name="range", leader="me", member_id="me", skip_assignment=True, members=[mine]
        )
    )
    play.take(play.member.topics_learned(ONE_RACK, play.now))
    assert play.request.assignments == []
    play.synced(P0).done()
    assert play.take(play.member.topics_seen({"t": [frozenset()] * 4}, play.now)).effects == [
        Revoke(frozenset({P0}), lost=False)
    ]


def test_an_eager_member_gives_everything_up_before_it_joins_again() -> None:
    play = Play().stable(P0, P1).beat(errors.REBALANCE_IN_PROGRESS)
    assert play.effects == [Revoke(frozenset({P0, P1}), lost=False)]
    assert play.member.owned == {P0, P1}
    assert isinstance(play.done().request, JoinGroupRequest)
    assert play.member.owned == frozenset()


def test_heartbeats_go_on_while_a_hook_runs() -> None:
    play = Play().stable(P0).beat(errors.REBALANCE_IN_PROGRESS)
    assert isinstance(play.wait(3_000).request, HeartbeatRequest)
    assert play.reply(HeartbeatResponse(error_code=errors.REBALANCE_IN_PROGRESS.code)).effects == []


def test_a_cooperative_member_keeps_its_partitions_and_joins_again_after_giving_some_up() -> None:
    play = Play("cooperative-sticky").stable(P0, P1, strategy="cooperative-sticky")
    play.beat(errors.REBALANCE_IN_PROGRESS)
    claim = decode_subscription(play.request.protocols[0].metadata)
    assert (set(claim.owned), claim.generation) == ({P0, P1}, 1)
    play.joined(generation=2, strategy="cooperative-sticky").synced(P0)
    assert play.effects == [Revoke(frozenset({P1}), lost=False)]
    assert play.done().effects == [Assign(frozenset())]
    assert isinstance(play.done().request, JoinGroupRequest)
    assert play.member.owned == {P0}


@pytest.mark.parametrize(("error", "member_id"), [(errors.UNKNOWN_MEMBER_ID, ""), (errors.ILLEGAL_GENERATION, "me")])
def test_a_member_that_the_group_has_forgotten_loses_its_partitions(error: ErrorCode, member_id: str) -> None:
    play = Play("cooperative-sticky").stable(P0, strategy="cooperative-sticky").beat(error)
    assert play.effects == [Revoke(frozenset({P0}), lost=True)]
    assert play.done().request.member_id == member_id
    assert decode_subscription(play.request.protocols[0].metadata).owned == ()


@pytest.mark.parametrize("error", [errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for_after_a_pause_and_nothing_is_given_up(error: ErrorCode) -> None:
    play = Play().stable(P0).beat(error)
    assert play.effects == [LoseCoordinator(error.name)]
    assert play.wait(50).effects == []
    assert play.wait(50).effects == [FindCoordinator()]
    play.take(play.member.coordinator_found(play.now))
    assert isinstance(play.request, HeartbeatRequest)
    assert play.member.owned == {P0}


def test_a_join_that_is_cut_off_is_sent_again_to_whoever_coordinates() -> None:
    play = Play().begin()
    assert play.sent is not None
    play.take(play.member.unanswered(play.sent, NotReachable("cut", retriable=True), play.now))
    assert [type(effect) for effect in play.effects] == [LoseCoordinator]
    assert play.wait(100).effects == [FindCoordinator()]
    assert isinstance(play.take(play.member.coordinator_found(play.now)).request, JoinGroupRequest)


def test_a_sync_that_comes_too_late_is_followed_by_a_join_at_once() -> None:
    play = Play().begin().joined()
    play.reply(SyncGroupResponse(error_code=errors.REBALANCE_IN_PROGRESS.code))
    assert isinstance(play.request, JoinGroupRequest)
    assert play.request.member_id == "me"


def test_a_loading_coordinator_is_asked_again_after_a_pause() -> None:
    play = Play().begin().reply(JoinGroupResponse(error_code=errors.COORDINATOR_LOAD_IN_PROGRESS.code))
    assert play.effects == []
    assert isinstance(play.wait(100).request, JoinGroupRequest)


def test_a_fenced_member_fails_and_loses_what_it_had() -> None:
    play = Play(instance_id="i").stable(P0).beat(errors.FENCED_INSTANCE_ID)
    assert isinstance(play.effects[0], Fail)
    assert isinstance(play.effects[0].error, MemberFenced)
    assert play.effects[1:] == [Revoke(frozenset({P0}), lost=True)]
    assert play.member.deadline() is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.INCONSISTENT_GROUP_PROTOCOL, "partition_assignment_strategy"),
        (errors.INVALID_SESSION_TIMEOUT, "session_timeout_ms"),
        (errors.GROUP_MAX_SIZE_REACHED, "group.max.size"),
        (errors.GROUP_AUTHORIZATION_FAILED, "forbid"),
    ],
)
def test_what_no_retry_can_mend_fails_with_words(error: ErrorCode, words: str) -> None:
    play = Play().begin().reply(JoinGroupResponse(error_code=error.code))
    assert play.member.failure is not None
    assert words in str(play.member.failure)


def test_a_silent_coordinator_is_given_up_when_the_session_is_over() -> None:
    play = Play().stable(P0).wait(3_000)
    assert isinstance(play.request, HeartbeatRequest)
    assert play.member.deadline() == 45_000
    play.wait(42_000)
    assert play.effects[0] == LoseCoordinator("no heartbeat was answered within session_timeout_ms")
    assert play.member.owned == {P0}


def test_an_application_that_does_not_poll_leaves_with_a_reason_and_loses_its_partitions() -> None:
    play = Play().stable(P0)
    for _ in range(99):
        play.beat()
    play.wait(3_000)
    leave, lost = play.effects[0], play.effects[1]
    assert isinstance(leave, Send)
    assert "max_poll_interval_ms" in leave.request.members[0].reason
    assert lost == Revoke(frozenset({P0}), lost=True)
    assert play.done().effects == []
    assert play.member.deadline() is None
    assert isinstance(play.take(play.member.polled(play.now)).request, JoinGroupRequest)


def test_leaving_gives_up_the_partitions_and_tells_the_coordinator() -> None:
    play = Play().stable(P0)
    assert play.take(play.member.leave(play.now)).effects == [Revoke(frozenset({P0}), lost=False)]
    request = play.done().request
    assert isinstance(request, LeaveGroupRequest)
    assert request.members[0].reason == "the consumer is being closed"
    assert play.reply(LeaveGroupResponse()).effects == [Ended()]


def test_a_static_member_leaves_without_a_word() -> None:
    play = Play(instance_id="i").stable(P0)
    play.take(play.member.leave(play.now))
    assert play.done().effects == [Ended()]


def test_another_subscription_calls_for_another_round() -> None:
    play = Play().stable(P0)
    play.take(play.member.subscribe(frozenset({"u"}), None, play.now))
    assert play.effects == [Revoke(frozenset({P0}), lost=False)]
    assert decode_subscription(play.done().request.protocols[0].metadata).topics == ("u",)


def test_a_refused_commit_is_a_reason_to_rejoin_only_in_the_generation_it_was_sent_in() -> None:
    play = Play().stable(P0)
    assert play.take(play.member.commit_refused(errors.UNKNOWN_MEMBER_ID, 0, play.now)).effects == []
    play.take(play.member.commit_refused(errors.UNKNOWN_MEMBER_ID, 1, play.now))
    assert play.effects == [Revoke(frozenset({P0}), lost=True)]


def test_a_commit_that_overtakes_the_answer_to_our_join_loses_nothing() -> None:
    """The coordinator has made the next generation already; a cooperative member still holds what it reads."""
    play = Play("cooperative-sticky").stable(P0, P1, strategy="cooperative-sticky")
    play.beat(errors.REBALANCE_IN_PROGRESS)
    join = play.sent
    assert isinstance(play.request, JoinGroupRequest)
    assert play.take(play.member.commit_refused(errors.ILLEGAL_GENERATION, 1, play.now)).effects == []
    play.sent = join
    play.joined(generation=2, strategy="cooperative-sticky")
    sync = play.sent
    assert play.take(play.member.commit_refused(errors.REBALANCE_IN_PROGRESS, 2, play.now)).effects == []
    play.sent = sync
    assert play.synced(P0).effects == [Revoke(frozenset({P1}), lost=False)]
