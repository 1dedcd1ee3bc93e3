"""ConsumerMember by script: heartbeats in full and in part, reconciliation, being fenced, leaving."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.consumer.group.consumer_member import ConsumerMember
from penstock.client.consumer.group.effects import Assign, Effect, Ended, Fail, LearnNames, Revoke, Say, Send
from penstock.client.consumer.group.membership import MemberSettings
from penstock.client.errors import BrokerRefused, NotReachable
from penstock.client.retry import Backoff
from penstock.model import errors
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition, Uuid
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

T = Uuid(b"t" * 16)
P0, P1, P2 = (TopicPartition("t", n) for n in range(3))


def grouped(*numbers: int) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    return [ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=T, partitions=list(numbers))] if numbers else []


class Play:
    def __init__(self, **settings: Any) -> None:
        self.member = ConsumerMember(MemberSettings("g", **settings), Backoff(100, 1_000, lambda: 0.5), "me")
        self.now = 0.0
        self.effects: list[Effect] = []
        self.sent: Send | None = None

    def take(self, effects: list[Effect]) -> Play:
        self.effects = [effect for effect in effects if not isinstance(effect, Say)]
        self.sent = next((effect for effect in effects if isinstance(effect, Send)), self.sent)
        return self

    def begin(self, pattern: str | None = None) -> Play:
        topics = frozenset[str]() if pattern else frozenset({"t"})
        self.member.subscribe(topics, pattern, 0)
        self.member.start(0)
        return self.take(self.member.coordinator_found(0))

    def reply(self, epoch: int, *numbers: int | None, error: ErrorCode = errors.NONE) -> Play:
        """An assignment, or none when the only number is None."""
        given = ConsumerGroupHeartbeatResponse.TopicPartitions(
            topic_id=T, partitions=[n for n in numbers if n is not None]
        )
        assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=[given] if given.partitions else [])
        assert self.sent is not None
        return self.take(
            self.member.replied(
                self.sent,
                ConsumerGroupHeartbeatResponse(
                    error_code=error.code,
                    member_epoch=epoch,
                    heartbeat_interval_ms=5_000,
                    assignment=None if numbers == (None,) else assignment,
                ),
                self.now,
            )
        )

    def wait(self, ms: float) -> Play:
        self.now += ms
        return self.take(self.member.tick(self.now))

    def done(self) -> Play:
        return self.take(self.member.hook_done(self.now))

    @property
    def request(self) -> ConsumerGroupHeartbeatRequest:
        assert len(self.effects) == 1, self.effects
        assert isinstance(self.effects[0], Send), self.effects
        request = self.effects[0].request
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        return request

    def stable(self, *numbers: int) -> Play:
        self.begin().reply(1, *numbers)
        assert self.effects == [LearnNames(frozenset({T}))]
        self.take(self.member.names_learned({T: "t"}, self.now))
        assert self.effects == [Assign(frozenset(TopicPartition("t", n) for n in numbers))]
        assert self.done().request.topic_partitions == grouped(*numbers)
        return self.reply(1, None)


def test_the_first_heartbeat_says_everything() -> None:
    request = Play(rack="r", remote_assignor="range", instance_id="i").begin().request
    assert request == ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="me",
        member_epoch=0,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=["t"],
        server_assignor="range",
        topic_partitions=[],
    )


def test_a_pattern_is_sent_as_it_is() -> None:
    request = Play().begin("t.*").request
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "t.*")


def test_a_quiet_heartbeat_says_nothing_new() -> None:
    play = Play().stable(0, 1)
    assert play.wait(4_999).effects == []
    assert play.wait(1).request == ConsumerGroupHeartbeatRequest(group_id="g", member_id="me", member_epoch=1)


def test_what_is_revoked_is_acknowledged_before_anything_is_added() -> None:
    play = Play().stable(0, 1).wait(5_000).reply(1, 0)
    assert play.effects == [Revoke(frozenset({P1}), lost=False)]
    assert play.member.owned == {P0, P1}
    play.done()
    assert play.member.owned == {P0}
    assert play.effects[0] == Assign(frozenset())
    assert play.done().request.topic_partitions == grouped(0)
    play.reply(2, 0, 2)
    assert play.effects == [Assign(frozenset({P2}))]
    assert play.done().request.topic_partitions == grouped(0, 2)


def test_heartbeats_go_on_while_a_hook_runs_and_do_not_claim_what_is_not_done() -> None:
    play = Play().stable(0, 1).wait(5_000).reply(1, 0)
    beat = play.wait(5_000).request
    assert beat.topic_partitions is None


@pytest.mark.parametrize("error", [errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID])
def test_a_member_that_is_out_loses_its_partitions_and_joins_anew(error: ErrorCode) -> None:
    play = Play().stable(0).wait(5_000).reply(0, error=error)
    assert play.effects == [Revoke(frozenset({P0}), lost=True)]
    again = play.done().request
    assert (again.member_id, again.member_epoch, again.topic_partitions) == ("me", 0, [])
    assert again.subscribed_topic_names == ["t"]


def test_after_a_broken_connection_everything_is_said_again() -> None:
    play = Play().stable(0).wait(5_000)
    assert play.sent is not None
    play.take(play.member.unanswered(play.sent, NotReachable("cut", retriable=True), play.now))
    play.wait(100)
    play.take(play.member.coordinator_found(play.now))
    assert play.request.member_epoch == 1
    assert (play.request.subscribed_topic_names, play.request.topic_partitions) == (["t"], grouped(0))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.UNRELEASED_INSTANCE_ID, "close it first"),
        (errors.UNSUPPORTED_ASSIGNOR, "group_remote_assignor"),
        (errors.INVALID_REGULAR_EXPRESSION, "RE2"),
        (errors.UNSUPPORTED_VERSION, 'group_protocol="classic"'),
    ],
)
def test_what_no_retry_can_mend_fails_with_words(error: ErrorCode, words: str) -> None:
    play = Play().begin().reply(0, error=error)
    assert isinstance(play.effects[0], Fail)
    assert words in str(play.effects[0].error)


def test_a_broker_without_the_protocol_is_named_with_what_to_set() -> None:
    play = Play().begin()
    assert play.sent is not None
    lacking = BrokerRefused("the broker does not serve ConsumerGroupHeartbeat", error=errors.UNSUPPORTED_VERSION)
    play.take(play.member.unanswered(play.sent, lacking, play.now))
    assert 'set group_protocol="classic"' in str(play.member.failure)


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_is_a_last_heartbeat(instance_id: str | None, epoch: int) -> None:
    play = Play(instance_id=instance_id).stable(0)
    play.take(play.member.leave(play.now))
    assert play.effects == [Revoke(frozenset({P0}), lost=False)]
    assert play.done().request.member_epoch == epoch
    assert play.reply(epoch, None).effects == [Ended()]


def test_an_application_that_does_not_poll_leaves_and_returns_with_the_next_poll() -> None:
    play = Play(max_poll_interval_ms=4_000).stable(0).wait(4_000)
    assert isinstance(play.effects[0], Send)
    assert play.effects[0].request.member_epoch == -1
    assert play.effects[1] == Revoke(frozenset({P0}), lost=True)
    assert play.done().effects == []
    assert play.take(play.member.polled(play.now)).request.member_epoch == 0


def test_another_subscription_is_sent_at_once() -> None:
    play = Play().stable(0)
    play.take(play.member.subscribe(frozenset({"u"}), None, play.now))
    assert play.request.subscribed_topic_names == ["u"]
    assert play.request.topic_partitions is None
