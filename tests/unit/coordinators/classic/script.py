"""Interaction tables: one step a line, what is done on the left and everything that is answered on the right, by name.

    a join            | a: MEMBER_ID_REQUIRED
    a join            | -
    wait 3000         | a: generation 1 leads a
    a sync a=x        | a: assigned x

A member is called by a letter; its id is what the coordinator gave it last. `-` means that nothing is answered. Options
of a step are words with an equals sign. After every step a second shard replays the log and must hold the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.coordinators.decision import Answer, Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.metadata.image import ClusterImage
from penstock.model.config.definition import ConfigValue
from penstock.model.errors import MEMBER_ID_REQUIRED, error_of
from penstock.model.ids import Epoch, Millis, Offset, Uuid
from penstock.protocol.codec import encode
from penstock.protocol.disk.metadata_topics import RemoveTopicRecord, TopicRecord
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.unit.coordinators.durable import durable, round_trip

GROUP = "g"
START = Moment(Millis(1_700_000_000_000), 5_000)
TOPICS = ("t", "u", "old")


def subscription(*topics: str) -> bytes:
    """A consumer's metadata as clients write it: a version, then the message without one."""
    return (1).to_bytes(2, "big") + bytes(encode(ConsumerProtocolSubscription(topics=list(topics)), 1))


class Script:
    """One shard, members by letter, and a log that is replayed after every step."""

    def __init__(self, **properties: ConfigValue) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.settings = GroupSettings.fixed(named)
        self.image = ClusterImage()
        self.topics_made = 0
        for topic in TOPICS:
            self.make_topic(topic)
        self.now = START
        self.log: list[StateRecord] = []
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.instances: dict[str, str] = {}
        self._made = 0
        self.shard = self._new_shard()
        self._carry_out(self.shard.loaded(self.now))

    def make_topic(self, name: str) -> Uuid:
        """The cluster has a topic of that name, which no other had the id of."""
        self.topics_made += 1
        topic_id = Uuid(bytes([self.topics_made]) * 16)
        self._change_image(TopicRecord(name=name, topic_id=topic_id))
        return topic_id

    def delete_topic(self, name: str) -> None:
        """The cluster has it no more, and the shard is not told."""
        self._change_image(RemoveTopicRecord(topic_id=self.image.ids[name]))

    def _change_image(self, record: object) -> None:
        self.image.apply(record, Offset(self.image.offset + 1), Epoch(0))

    def _new_shard(self) -> GroupShard:
        return GroupShard(self.settings, self.image, new_id=self._new_id)

    def _new_id(self) -> str:
        self._made += 1
        return f"{self._made:08x}-0000-0000-0000-000000000000"

    def play(self, table: str) -> None:
        """Does every line and compares what is answered."""
        for number, line in enumerate(table.strip().splitlines(), start=1):
            step, _, expected = (part.strip() for part in line.partition("|"))
            assert self.do(step) == (expected or "-"), f"line {number}: {step}"

    def do(self, step: str) -> str:
        """One step; everything that is answered."""
        words = step.split()
        options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        if words[0] == "wait":
            return self._told(self.wait(int(words[1])))
        if words[0] == "reload":
            return self._told(self.reload())
        return self._told(getattr(self, f"_{words[1]}")(words[0], options))

    # Steps

    def wait(self, ms: int) -> list[Answer]:
        end = self.now.tick + ms
        answers: list[Answer] = []
        while (due := self.shard.next_deadline()) is not None and due <= end:
            self._move_to(max(due, self.now.tick))
            answers += self._carry_out(self.shard.expire(self.now))
        self._move_to(end)
        return answers

    def _move_to(self, tick: int) -> None:
        self.now = Moment(Millis(self.now.wall + tick - self.now.tick), tick)

    def reload(self) -> list[Answer]:
        """The coordinator goes down; another one reads the log."""
        answers = self.shard.unload()
        self.shard = self.replayed()
        return answers + self._carry_out(self.shard.loaded(self.now))

    def _join(self, who: str, options: dict[str, str]) -> list[Answer]:
        names = options.get("protocols", "range").split(",")
        topics = options.get("topics", "t").split(",")
        request = JoinGroupRequest(
            group_id=options.get("group", GROUP),
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            member_id=options.get("id", self.ids.get(who, "")).replace("none", ""),
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type", "consumer").replace("none", ""),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=subscription(*topics))
                for name in names
                if name != "none"
            ],
        )
        if request.group_instance_id is not None:
            self.instances[who] = request.group_instance_id
        return self.ask(who, request, int(options.get("v", 9)))

    def _sync(self, who: str, options: dict[str, str]) -> list[Answer]:
        version = int(options.pop("v", 5))
        named = (None, None) if version < 5 else (options.pop("type", "consumer"), options.pop("protocol", "range"))
        request = SyncGroupRequest(
            group_id=options.pop("group", GROUP),
            generation_id=int(options.pop("generation", self.generations.get(who, -1))),
            member_id=options.pop("id", self.ids.get(who, "")),
            group_instance_id=options.pop("instance", self.instances.get(who)),
            protocol_type=named[0] if named[0] != "none" else None,
            protocol_name=named[1] if named[1] != "none" else None,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.ids[name], assignment=given.encode())
                for name, given in options.items()
            ],
        )
        return self.ask(who, request, version)

    def _beat(self, who: str, options: dict[str, str]) -> list[Answer]:
        request = HeartbeatRequest(
            group_id=options.get("group", GROUP),
            generation_id=int(options.get("generation", self.generations.get(who, -1))),
            member_id=options.get("id", self.ids.get(who, "")),
            group_instance_id=options.get("instance", self.instances.get(who)),
        )
        return self.ask(who, request, 4)

    def _leave(self, who: str, options: dict[str, str]) -> list[Answer]:
        version = int(options.get("v", 5))
        member_id = options.get("id", self.ids.get(who, "")).replace("none", "")
        instance = options.get("instance", self.instances.get(who))
        if version < 3:
            request = LeaveGroupRequest(group_id=GROUP, member_id=member_id)
        else:
            members = [LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance)]
            members += [
                LeaveGroupRequest.MemberIdentity(member_id=self.ids.get(name, name))
                for name in options.get("and", "").split(",")
                if name
            ]
            request = LeaveGroupRequest(group_id=options.get("group", GROUP), members=members)
        return self.ask(who, request, version)

    def _commit(self, who: str, options: dict[str, str]) -> list[Answer]:
        member = options.get("id", self.ids.get(who, "")).replace("none", "")
        request = OffsetCommitRequest(
            group_id=options.get("group", GROUP),
            generation_id_or_member_epoch=int(options.get("generation", self.generations.get(who, -1))),
            member_id=member,
            group_instance_id=options.get("instance", self.instances.get(who)),
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=options.get("topic", "t"),
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=int(options.get("at", 1)), committed_metadata=""
                        )
                    ],
                )
            ],
        )
        return self.ask(who, request, int(options.get("v", 9)))

    def ask(self, who: str, request: Any, version: int) -> list[Answer]:
        """One request of a member; the answers to everybody."""
        # A fresh object: the same member may have two requests under way.
        token = [who]
        caller = Caller(f"client-{who}", "/127.0.0.1", version, token)
        decision = self.shard.decide(request, caller, self.now)
        if decision.reply is not None:
            decision.answers.insert(0, Answer(token, decision.reply))
        return self._carry_out([decision])

    # The driver's part

    def _carry_out(self, decisions: Iterable[Decision]) -> list[Answer]:
        answers: list[Answer] = []
        for decision in decisions:
            for record in decision.records:
                stored = round_trip(record)
                self.log.append(stored)
                self.shard.apply(stored)
            answers += decision.answers
        self.check()
        return answers

    def replayed(self) -> GroupShard:
        twin = self._new_shard()
        for record in self.log:
            twin.apply(record)
        return twin

    def check(self) -> None:
        """What was decided and applied is what the log says."""
        live, replayed = durable(self.shard.table), durable(self.replayed().table)
        for group_id, state in live.groups.items():
            if state is not None:
                assert replayed.groups.get(group_id) == state
        assert replayed.offsets == live.offsets
        assert live.groups.keys() == replayed.groups.keys()

    # Telling

    def _told(self, answers: list[Answer]) -> str:
        for answer in answers:
            self._learn(answer.token[0], answer.reply)
        answers.sort(key=lambda answer: answer.token[0])
        told = [f"{answer.token[0]}: {self._words(answer.reply)}" for answer in answers]
        return "; ".join(told) or "-"

    def _learn(self, who: str, reply: Any) -> None:
        """A member knows the id and the generation that it was given."""
        if isinstance(reply, JoinGroupResponse):
            if reply.error_code == 0:
                self.generations[who] = reply.generation_id
            if reply.error_code in (0, MEMBER_ID_REQUIRED.code):
                self.ids[who] = reply.member_id

    def name_of(self, member_id: str) -> str:
        return next((name for name, known in self.ids.items() if known == member_id), member_id)

    def _words(self, reply: Any) -> str:
        match reply:
            case JoinGroupResponse(error_code=0):
                words = f"generation {reply.generation_id}"
                if reply.leader == reply.member_id:
                    words += " leads " + " ".join(sorted(self.name_of(member.member_id) for member in reply.members))
                return words + (" skip" if reply.skip_assignment else "")
            case SyncGroupResponse(error_code=0):
                return f"assigned {bytes(reply.assignment).decode()}".strip()
            case LeaveGroupResponse(error_code=0) if reply.members:
                return " ".join(error_of(member.error_code).name for member in reply.members)
            case OffsetCommitResponse():
                return error_of(reply.topics[0].partitions[0].error_code).name
            case _:
                return error_of(reply.error_code).name
