"""Draws requests of group members. Every group has one member at most, so that nobody's answer waits for another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.model.ids import Uuid
from tests.compat.answers.chance import Chance
from tests.compat.answers.world import CLASSIC, CONSUMER, GROUPS, NEVER, STEADY, World

LONG_MS = 1_700_000
"""Longer than all of it takes: no session ends by itself."""
NOBODY = "nobody"
# A consumer's own protocol in its first version: the topic `alpha`, its partition 0, and no further data.
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1\0\5alpha" + b"\xff\xff\xff\xff"
ASSIGNMENT = b"\0\0" + b"\0\0\0\1\0\5alpha\0\0\0\1\0\0\0\0" + b"\xff\xff\xff\xff"


class GroupRequests:
    def __init__(self, random: Chance, world: World) -> None:
        self._random, self._world = random, world
        self._count = 0
        self.makers: dict[str, Callable[[Any, int], Any]] = {
            "JoinGroup": self._join,
            "SyncGroup": self._sync,
            "Heartbeat": self._heartbeat,
            "LeaveGroup": self._leave,
            "OffsetCommit": self._commit,
            "OffsetFetch": self._fetch,
            "OffsetDelete": self._delete,
            "ConsumerGroupHeartbeat": self._consumer_heartbeat,
        }

    # -- classic groups

    def _who(self, group: str, version: int, since: int) -> dict[str, Any]:
        """A member of a group as requests name it: the real one, or one that is not or no longer."""
        known = self._world.classic.get(group)
        member, generation = (known.member, known.generation) if known is not None else ("", -1)
        if self._random.happens(0.25):
            member = self._random.choice((NOBODY, "", member))
            generation = self._random.choice((generation - 1, generation + 1, -1, 0, generation))
        said: dict[str, Any] = {"member_id": member}
        if version >= since and self._random.happens(0.1):
            said["group_instance_id"] = self._random.choice(("static", ""))
        return {**said, "generation": generation}

    def _classic(self) -> str:
        if self._random.happens(0.85):
            return self._random.choice(CLASSIC)
        return self._random.choice(("", "g-missing", "g-committed", *CONSUMER[:2]))

    def _join(self, made: Any, version: int) -> Any:
        group = self._random.choice(CLASSIC) if self._random.happens(0.9) else ""
        known = self._world.classic.get(group)
        member = NOBODY
        if known is not None and not self._random.happens(0.1):
            # Whoever else came in would have to wait for the one who is there.
            member = known.member or known.pending
        protocols = [made.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)]
        if self._random.happens(0.1):
            protocols = self._random.choice(([], [made.JoinGroupRequestProtocol(name="other", metadata=SUBSCRIPTION)]))
        request = made(
            group_id=group,
            session_timeout_ms=self._random.choice((LONG_MS, LONG_MS, LONG_MS, LONG_MS, 1, -1, (1 << 31) - 1)),
            member_id=member,
            protocol_type=self._random.choice(("consumer", "consumer", "consumer", "consumer", "connect", "")),
            protocols=protocols,
        )
        if version >= 1:
            request.rebalance_timeout_ms = LONG_MS
        return request

    def _sync(self, made: Any, version: int) -> Any:
        group = self._classic()
        who = self._who(group, version, 3)
        generation = who.pop("generation")
        request = made(group_id=group, generation_id=generation, **who)
        if self._random.happens(0.9):
            given = made.SyncGroupRequestAssignment(member_id=who["member_id"], assignment=ASSIGNMENT)
            request.assignments = [given]
        if version >= 5:
            request.protocol_type = self._random.choice(("consumer", "consumer", "consumer", "connect", None))
            request.protocol_name = self._random.choice(("range", "range", "range", "other", None))
        return request

    def _heartbeat(self, made: Any, version: int) -> Any:
        group = self._classic()
        who = self._who(group, version, 3)
        return made(group_id=group, generation_id=who.pop("generation"), **who)

    def _leave(self, made: Any, version: int) -> Any:
        group = self._classic()
        if version < 3:
            return made(group_id=group, member_id=self._who(group, version, 99)["member_id"])

        def member() -> Any:
            who = self._who(group, version, 3)
            del who["generation"]
            return made.MemberIdentity(**who)

        return made(group_id=group, members=self._random.several(member))

    # -- offsets

    def _named(self, version: int, by_id_since: int) -> dict[str, Any]:
        topic = self._random.choice((*STEADY, *STEADY, NEVER, ""))
        if version >= by_id_since:
            return {"topic_id": self._world.ids.get(topic, Uuid(b"nobody's topic, "))}
        return {"name": topic}

    def _partition(self) -> int:
        return self._random.choice((0, 0, 0, 1, 2, 5, -1))

    def _commit(self, made: Any, version: int) -> Any:
        choice = self._random.choice

        def partition() -> Any:
            done = made.OffsetCommitRequestPartition(
                partition_index=self._partition(),
                committed_offset=choice((0, 1, 5, 1_000, -1)),
                committed_metadata=choice(("", "here", None, "m" * 4_096)),
            )
            if version >= 6:
                done.committed_leader_epoch = choice((-1, -1, 0, 5))
            return done

        def topic() -> Any:
            return made.OffsetCommitRequestTopic(**self._named(version, 10), partitions=self._random.several(partition))

        group = choice((*GROUPS, *CLASSIC, *CONSUMER))
        request = made(group_id=group, topics=self._random.several(topic))
        if group in self._world.classic and self._random.happens(0.8):
            who = self._who(group, version, 7)
            request.generation_id_or_member_epoch = who.pop("generation")
            for name, value in who.items():
                setattr(request, name, value)
        elif group in self._world.consumer and self._random.happens(0.8):
            member = self._world.consumer[group]
            request.member_id = member.member
            request.generation_id_or_member_epoch = member.epoch + choice((0, 0, 0, 1, -1))
        elif self._random.happens(0.1):
            request.member_id, request.generation_id_or_member_epoch = choice(((NOBODY, 1), ("", 1), (NOBODY, -1)))
        return request

    def _fetch(self, made: Any, version: int) -> Any:
        def indexes() -> list[int]:
            return self._random.several(self._partition)

        request = made()
        if version >= 7:
            request.require_stable = self._random.happens(0.5)
        if version < 8:
            topics = self._random.several(
                lambda: made.OffsetFetchRequestTopic(**self._named(version, 99), partition_indexes=indexes())
            )
            request.group_id = self._random.choice(GROUPS)
            request.topics = None if version >= 2 and self._random.happens(0.2) else topics
            return request

        def group() -> Any:
            name = self._random.choice((*GROUPS, *CONSUMER))
            topics = self._random.several(
                lambda: made.OffsetFetchRequestTopics(**self._named(version, 10), partition_indexes=indexes())
            )
            wanted = made.OffsetFetchRequestGroup(group_id=name, topics=None if self._random.happens(0.2) else topics)
            if version >= 9 and name in self._world.consumer and self._random.happens(0.5):
                member = self._world.consumer[name]
                wanted.member_id = self._random.choice((member.member, NOBODY))
                wanted.member_epoch = member.epoch + self._random.choice((0, 0, 1))
            return wanted

        request.groups = self._random.several(group)
        return request

    def _delete(self, made: Any, version: int) -> Any:
        def partition() -> Any:
            return made.OffsetDeleteRequestPartition(partition_index=self._partition())

        def topic() -> Any:
            return made.OffsetDeleteRequestTopic(**self._named(version, 99), partitions=self._random.several(partition))

        group = self._random.choice((*GROUPS, *CLASSIC, *CONSUMER))
        return made(group_id=group, topics=self._random.several(topic))

    # -- groups that the coordinator assigns

    def _consumer_heartbeat(self, made: Any, version: int) -> Any:
        choice = self._random.choice
        if self._random.happens(0.1):
            # Nobody joins these: members whose ids the brokers make themselves would be assigned by those ids.
            group = choice(("", "g-committed", *CLASSIC[:2]))
            return made(group_id=group, member_id=NOBODY, member_epoch=choice((3, -1)))
        group = choice(CONSUMER)
        known = self._world.consumer[group]
        if not known.member:
            return self._consumer_join(made, version, group)
        request = made(group_id=group, member_id=known.member, member_epoch=known.epoch)
        match self._random.randrange(10):
            case 0:
                request.member_epoch = known.epoch + choice((1, -1))
            case 1:
                request.member_id = NOBODY
            case 2:
                request.member_epoch = -1
            case 3:
                request.subscribed_topic_names = choice((["alpha"], ["alpha", "gamma"], ["beta", NEVER], []))
            case 4:
                request.server_assignor = choice(("range", "uniform", "unheard of", ""))
            case 5:
                request.topic_partitions = [made.TopicPartitions(topic_id=Uuid(b"nobody's topic, "), partitions=[0])]
            case 6 | 7 | 8:
                request.topic_partitions = [
                    made.TopicPartitions(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in known.owned.items()
                ]
        return request

    def _consumer_join(self, made: Any, version: int, group: str) -> Any:
        self._count += 1
        request = made(
            group_id=group,
            member_id=f"member-{self._count}" if version >= 1 or self._random.happens(0.5) else "",
            member_epoch=self._random.choice((0, 0, 0, 0, 0, 0, 3, -1, -2, -3)),
            rebalance_timeout_ms=self._random.choice((LONG_MS, LONG_MS, LONG_MS, LONG_MS, -1, 0)),
            subscribed_topic_names=self._random.choice((["alpha"], ["alpha", "beta"], [NEVER], [], None)),
            topic_partitions=self._random.choice(([], [], [], [], None)),
        )
        if self._random.happens(0.1):
            request.server_assignor = self._random.choice(("range", "uniform", "unheard of"))
        if self._random.happens(0.1):
            request.instance_id = self._random.choice(("", f"static-{self._count}"))
        if self._random.happens(0.1):
            request.rack_id = self._random.choice(("", "rack"))
        return request
