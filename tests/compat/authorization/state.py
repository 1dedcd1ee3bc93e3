"""What there is on both brokers to ask about; made by a super user, and made anew when a question has changed it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    NONE,
    TOPIC_ALREADY_EXISTS,
)
from penstock.model.ids import Uuid
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.describe_acls import DescribeAclsRequest
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.server.reception.dispatch import SERVED
from tests.compat.answers.duo import Exchange
from tests.compat.authorization.cast import ADMIN, OWNERS, Acl, Rule, acls_of, public_acls
from tests.compat.authorization.pair import Pair, Side
from tests.compat.batches import Record, encode_batch

TOPICS = ("own", "pre-one", "other", "public", "shut")
MISSING = ("void", "pre-void", "missing")
"""Topics and groups that there are not."""
GROUPS = ("own", "pre-one", "other")
"""Groups that committed, and have no members."""
CROWDS = {"crowd": ["own"], "pre-crowd": ["own", "pre-one"], "other-crowd": ["own", "other"]}
"""Groups with a member, and what it reads."""
TRANSACTIONS = "EndTxn" in SERVED
"""Until transactions are served, whoever asks Kafka for one would make there what we do not have."""
COMMITTED = 2
RECORDS = 3
MARKED = "segment.ms"
"""A config of `shut` that tells how far a broker has come."""
BASE_MS = 1_700_000_000_000
LONG_MS = 1_700_000
WITHIN_S = 60.0
AT_ONCE = 500
"""ACLs in one request."""


@dataclass
class World:
    """What both brokers have, in our words."""

    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    hmacs: dict[str, bytes] = field(default_factory=dict)
    """The delegation tokens of their owners."""
    directory: str = ""


def records(*, transactional: bool = False) -> bytes:
    told = [Record(b"value %d" % number, b"key") for number in range(RECORDS)]
    producer = {"producer_id": 4_000, "producer_epoch": 0, "base_sequence": 0} if transactional else {}
    return encode_batch(told, base_timestamp_ms=BASE_MS, transactional=transactional, **producer)


class State:
    """Keeps both brokers in the same state."""

    def __init__(self, pair: Pair, world: World) -> None:
        self._pair, self.world = pair, world
        self._marks = itertools.count(1_000_000_000)

    # -- making it

    async def seed(self, users: dict[str, tuple[Rule, ...]]) -> None:
        ids: list[dict[str, str]] = []
        for side in self._pair.sides:
            await self._topics(side)
            await _until(lambda side=side: _coordinates(side))
            await self._groups(side)
            for group, topics in CROWDS.items():
                await _join(side, group, topics)
            await _limits(side)
        await self._bind_topics()
        await self._bind_places()
        ids = await self._tokens()
        for side, token_ids in zip(self._pair.sides, ids, strict=True):
            acls = [acl for user, rules in users.items() for acl in acls_of(user, rules, token_ids)]
            await _allow(side, [*acls, *public_acls()])

    async def _topics(self, side: Side) -> None:
        """The topics that should be there, with their first records."""
        made = CreateTopicsRequest
        wanted = [made.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        reply = await side.admin(made(topics=wanted, timeout_ms=10_000), 7)
        codes = {each.error_code for each in reply.topics}
        assert codes <= {NONE.code, TOPIC_ALREADY_EXISTS.code}, reply
        for topic_id in [each.topic_id for each in reply.topics if each.error_code == NONE.code]:
            # By its id: what had the name before may still be there.
            await _until(lambda topic_id=topic_id: _produced(side, topic_id))

    async def _groups(self, side: Side) -> None:
        made = OffsetCommitRequest
        partition = made.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=COMMITTED, committed_metadata=""
        )
        topics = [made.OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in TOPICS]
        for group in GROUPS:
            reply = await side.admin(made(group_id=group, topics=topics), 8)
            assert {each.error_code for topic in reply.topics for each in topic.partitions} == {0}, reply

    async def _bind_topics(self) -> None:
        ours, theirs = [await _topic_ids(side) for side in self._pair.sides]
        assert ours.keys() == theirs.keys(), (ours, theirs)
        for name, topic_id in ours.items():
            self._pair.pairs.bind("uuid", topic_id, theirs[name])
        self.world.topic_ids = ours

    async def _bind_places(self) -> None:
        found = []
        for side in self._pair.sides:
            (directory,) = (await side.admin(DescribeLogDirsRequest(topics=[]), 3)).results
            found.append((directory.log_dir, (await side.admin(DescribeClusterRequest(), 0)).cluster_id))
        for kind, ours, theirs in zip(("directory", "cluster"), *found, strict=True):
            self._pair.pairs.bind(kind, ours, theirs)
        self.world.directory = found[0][0]

    async def _tokens(self) -> list[dict[str, str]]:
        """A token for each owner; their ids on both sides."""
        ids: list[dict[str, str]] = [{}, {}]
        for owner in OWNERS:
            made = []
            for side, known in zip(self._pair.sides, ids, strict=True):
                reply = await side.ask(owner, _token(), 3)
                assert reply.error_code == 0, reply
                known[owner] = reply.token_id
                made.append(reply)
            self._pair.pairs.bind("token", made[0].token_id, made[1].token_id)
            self._pair.pairs.bind("hmac", made[0].hmac, made[1].hmac)
            self.world.hmacs[owner] = made[0].hmac
        return ids

    # -- making it anew

    async def restore(self, exchange: Exchange) -> None:
        """Undoes what an exchange may have done."""
        undo = _UNDO.get(exchange.api)
        if undo is not None:
            await undo(self, exchange)

    async def _deleted_topics(self, exchange: Exchange) -> None:
        answers = (exchange.ours, exchange.theirs)
        gone = [{each.name for each in reply.responses if each.error_code == NONE.code} for reply in answers]
        if any(gone):
            for side, topics in zip(self._pair.sides, gone, strict=True):
                await _until(lambda side=side, topics=topics: _forgot(side, topics))
                await self._topics(side)
                await self._groups(side)
            await self._bind_topics()

    async def _made_topics(self, exchange: Exchange) -> None:
        """Nobody but whoever may make topics has made some, and the same ones on both."""
        answers = (exchange.ours, exchange.theirs)
        named = {
            each.name for reply in answers for each in reply.topics if each.name in MISSING and each.error_code != 29
        }
        if not named or not exchange.request.allow_auto_topic_creation:
            return
        for side in self._pair.sides:
            made = DeleteTopicsRequest(topic_names=list(MISSING), timeout_ms=10_000)
            reply = await side.admin(made, 5)
            gone = {each.name for each in reply.responses if each.error_code == 0}
            assert gone == named, f"{gone} were made of {named}"
        await self._settle()

    async def _settle(self) -> None:
        """Returns when both brokers show what was changed before: the metadata log is told in its order."""
        mark = str(next(self._marks))
        for side in self._pair.sides:
            await side.admin(_marked(mark), 1)
            await _until(lambda side=side: _shows(side, mark))

    async def _committed(self, exchange: Exchange) -> None:
        """A commit may have made the group; what is committed is what was there."""
        group = exchange.request.group_id
        if group not in MISSING:
            return
        for side in self._pair.sides:
            reply = await side.admin(DeleteGroupsRequest(groups_names=[group]), 2)
            assert reply.results[0].error_code in (NONE.code, GROUP_ID_NOT_FOUND.code), reply

    async def _deleted_groups(self, exchange: Exchange) -> None:
        if _has_done_something(exchange):
            for side in self._pair.sides:
                await self._groups(side)

    async def _made_token(self, exchange: Exchange) -> None:
        for side, reply in zip(self._pair.sides, (exchange.ours, exchange.theirs), strict=True):
            if reply.error_code == 0:
                await _until(lambda side=side, hmac=reply.hmac: _ended(side, hmac))


_UNDO: dict[str, Callable[[State, Exchange], Awaitable[None]]] = {
    "DeleteTopics": State._deleted_topics,
    "Metadata": State._made_topics,
    "OffsetCommit": State._committed,
    "OffsetDelete": State._deleted_groups,
    "DeleteGroups": State._deleted_groups,
    "CreateDelegationToken": State._made_token,
}


def _has_done_something(exchange: Exchange) -> bool:
    """Whether a group, or an offset of one, was deleted."""
    for reply in (exchange.ours, exchange.theirs):
        deleted = reply.results if exchange.api == "DeleteGroups" else [p for t in reply.topics for p in t.partitions]
        if any(each.error_code == NONE.code for each in deleted):
            return True
    return False


def _token() -> CreateDelegationTokenRequest:
    made = CreateDelegationTokenRequest
    admin = made.CreatableRenewers(principal_type="User", principal_name=ADMIN)
    return made(owner_principal_type=None, owner_principal_name=None, renewers=[admin], max_lifetime_ms=-1)


async def _ended(side: Side, hmac: bytes) -> bool:
    """Whether a token was ended; one that was made just now is not known at once."""
    reply = await side.admin(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), 2)
    return bool(reply.error_code == NONE.code)


async def _until(probe: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await probe():
            await asyncio.sleep(0.005)


async def _coordinates(side: Side) -> bool:
    """Whether groups and producers are served: the first who asks has the offsets topic and the first ids made."""
    reply = await side.admin(FindCoordinatorRequest(key="own"), 2)
    if reply.error_code:
        return False
    for group in (*GROUPS, *CROWDS):
        offsets = await side.admin(OffsetFetchRequest(group_id=group, topics=[]), 5)
        if offsets.error_code:
            return False
    if TRANSACTIONS and (await side.admin(FindCoordinatorRequest(key_type=1, key="own"), 2)).error_code:
        return False
    producer = await side.admin(InitProducerIdRequest(transactional_id=None), 4)
    return bool(producer.error_code == 0)


async def _produced(side: Side, topic_id: Uuid) -> bool:
    made = ProduceRequest
    data = made.PartitionProduceData(index=0, records=records())
    wanted = made.TopicProduceData(topic_id=topic_id, partition_data=[data])
    reply = await side.admin(made(acks=-1, timeout_ms=10_000, topic_data=[wanted]), 13)
    return bool(reply.responses[0].partition_responses[0].error_code == NONE.code)


async def _forgot(side: Side, topics: set[str]) -> bool:
    """Whether groups have no offsets of topics that were deleted; that takes a moment."""
    for group in GROUPS:
        offsets = await side.admin(OffsetFetchRequest(group_id=group, topics=None), 5)
        if topics & {each.name for each in offsets.topics}:
            return False
    return True


async def _topic_ids(side: Side) -> dict[str, Uuid]:
    made = MetadataRequest
    named = [made.MetadataRequestTopic(name=name) for name in TOPICS]
    reply = await side.admin(made(topics=named, allow_auto_topic_creation=False), 12)
    return {each.name: each.topic_id for each in reply.topics}


def _marked(mark: str) -> IncrementalAlterConfigsRequest:
    made = IncrementalAlterConfigsRequest
    config = made.AlterableConfig(name=MARKED, config_operation=0, value=mark)
    return made(resources=[made.AlterConfigsResource(resource_type=2, resource_name="shut", configs=[config])])


async def _shows(side: Side, mark: str) -> bool:
    made = DescribeConfigsRequest
    wanted = made.DescribeConfigsResource(resource_type=2, resource_name="shut", configuration_keys=[MARKED])
    reply = await side.admin(made(resources=[wanted]), 4)
    return bool(reply.results[0].configs[0].value == mark)


async def _join(side: Side, group: str, topics: list[str]) -> None:
    """One member, which has said that it reads what it was given."""
    made = ConsumerGroupHeartbeatRequest
    request = made(
        group_id=group,
        member_id=f"member-of-{group}",
        member_epoch=0,
        rebalance_timeout_ms=LONG_MS,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )
    reply = await side.admin(request, 1)
    assert reply.error_code == 0, reply
    given = [
        made.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
        for each in reply.assignment.topic_partitions
    ]
    assert len(given) == len(topics), reply
    again = made(group_id=group, member_id=request.member_id, member_epoch=reply.member_epoch, topic_partitions=given)
    assert (await side.admin(again, 1)).error_code == 0


async def _limits(side: Side) -> None:
    """A limit and a credential, for those who may see them."""
    made = AlterClientQuotasRequest
    entity = made.EntityData(entity_type="user", entity_name="limited")
    limit = made.OpData(key="producer_byte_rate", value=1e9, remove=False)
    await side.admin(made(entries=[made.EntryData(entity=[entity], ops=[limit])], validate_only=False), 1)
    scram = AlterUserScramCredentialsRequest
    listed = scram.ScramCredentialUpsertion(
        name="listed", mechanism=1, iterations=4_096, salt=b"salt", salted_password=b"salted"
    )
    await side.admin(scram(deletions=[], upsertions=[listed]), 0)


async def _allow(side: Side, acls: list[Acl]) -> None:
    made = CreateAclsRequest
    for at in range(0, len(acls), AT_ONCE):
        creations = [
            made.AclCreation(
                resource_type=acl.kind,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls[at : at + AT_ONCE]
        ]
        reply = await side.admin(made(creations=creations), 3)
        refused = [acl for acl, each in zip(acls[at:], reply.results, strict=False) if each.error_code]
        assert not refused, refused[:10]
    await _until(lambda: _has_acls(side, len(set(acls))))


async def _has_acls(side: Side, count: int) -> bool:
    names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    everything = DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1, **names
    )
    reply = await side.admin(everything, 3)
    return sum(len(each.acls) for each in reply.resources) == count
