"""`Admin`: the door to everything a cluster can be asked or told about itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from penstock.client.admin.session import Results, Session
from penstock.client.cluster_view import ClusterView
from penstock.client.errors import BadSetting
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.client.admin.acls import Acl, AclFilter
    from penstock.client.admin.batches import CommittedSpan
    from penstock.client.admin.cluster import ClusterInfo, FeatureInfo, QuorumInfo
    from penstock.client.admin.configs import ConfigEntry, ConfigResource
    from penstock.client.admin.copying import Behind, Damage
    from penstock.client.admin.group_offsets import CommittedOffset, PartitionLag
    from penstock.client.admin.groups import GroupInfo, GroupListing
    from penstock.client.admin.log_dirs import LogDirInfo
    from penstock.client.admin.many_ends import ManyEnds
    from penstock.client.admin.offsets import OffsetInfo
    from penstock.client.admin.open_transactions import OpenTransaction
    from penstock.client.admin.placement import Reassignment
    from penstock.client.admin.producers import ProducerInfo
    from penstock.client.admin.quotas import QuotaEntity
    from penstock.client.admin.rights import Rights
    from penstock.client.admin.scram_users import ScramCredential, ScramPassword, ScramRemoval
    from penstock.client.admin.tokens import DelegationToken
    from penstock.client.admin.topics import TopicInfo
    from penstock.client.admin.transactions import TransactionInfo, TransactionListing
    from penstock.client.admin.watched_topics import WatchedTopics
    from penstock.client.keywords import AdminKeywords
    from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
    from penstock.client.settings import AdminSettings
    from penstock.kernels import ConsumerRecord

EVERYTHING = -1
"""Deleting the records before here empties a partition."""


class Admin:
    """Administration of a cluster, ours or Apache Kafka's. Use it with `async with`, or close it.

        async with Admin(bootstrap_servers="localhost:9092") as admin:
            await admin.create_topic("orders", partitions=6)

    Calls for one thing raise `ClientError`; calls for many give `Results` with `done` and `failed`, and `checked()`
    for those who want all or an exception. Settings are those of `AdminSettings`, as keywords.
    """

    def __init__(
        self, *, bootstrap_servers: str | Sequence[str] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        """Connects to nobody before the first call."""
        given = _settings(bootstrap_servers, settings)
        try:
            self._view = ClusterView(
                given.bootstrap_servers if given else bootstrap_servers or "localhost:9092",
                client_id=given.client_id if given else str(settings.get("client_id", "penstock")),
                timeout_ms=given.request_timeout_ms if given else 30_000,
                security=given.dial_security() if given else None,
            )
        except ValueError as wrong:
            raise BadSetting(f"bootstrap_servers: {wrong}") from None
        self._session = Session(self._view)
        self._many_ends: ManyEnds | None = None
        self._watched_topics: WatchedTopics | None = None
        if given:
            self._session = Session(
                self._view,
                timeout_ms=given.default_api_timeout_ms,
                request_timeout_ms=given.request_timeout_ms,
                backoff_ms=given.retry_backoff_ms,
                backoff_max_ms=given.retry_backoff_max_ms,
            )

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections. Calls that are under way fail."""
        self._view.close()

    # Topics.

    async def topics(self, *, internal: bool = False) -> list[TopicInfo]:
        """All topics by name, those of the platform itself only on request."""
        from penstock.client.admin.topics import list_topics

        return await list_topics(self._session, internal=internal)

    async def topic_operations(self) -> dict[str, frozenset[str]]:
        """What this very login may do with each topic that it may describe, as `read` or `alter_configs`."""
        from penstock.client.admin.topics import topic_operations

        return await topic_operations(self._session)

    async def watched_topics(self) -> Mapping[str, TopicInfo]:
        """All topics by name, those of the platform itself too, for whoever asks again and again: what has not changed
        since is the very same object, and the mapping too when nothing has."""
        from penstock.client.admin.watched_topics import WatchedTopics

        if self._watched_topics is None:
            self._watched_topics = WatchedTopics(self._session)
        return await self._watched_topics.look()

    async def describe_topic(self, name: str, *, offsets: bool = True, configs: bool = True) -> TopicInfo:
        """A topic with its partitions, the ends of their logs and what was set on it; UnknownTopic."""
        return (await self.describe_topics([name], offsets=offsets, configs=configs)).checked()[name]

    async def describe_topics(
        self, names: Sequence[str], *, offsets: bool = True, configs: bool = True
    ) -> Results[str, TopicInfo]:
        """Topics with partitions, the ends of their logs and what was set on them; results in the order of names."""
        from penstock.client.admin.topics import describe_topics

        return await describe_topics(self._session, names, offsets=offsets, configs=configs)

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
        *,
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> str:
        """Creates a topic and answers its id; what is None is the broker's default.

        `assignment` gives the replicas of each partition, leader first, in place of numbers.
        """
        from penstock.client.admin.topics import create_topic

        return await create_topic(
            self._session, name, partitions, replication, configs or {}, assignment, validate_only
        )

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        (await self.delete_topics([name])).checked()

    async def delete_topics(self, names: Sequence[str]) -> Results[str, None]:
        """Deletes topics with all their records."""
        from penstock.client.admin.topics import delete_topics

        return await delete_topics(self._session, names)

    async def grow_topic(self, name: str, to: int) -> None:
        """Raises the number of partitions to `to`. Keys may then map to other partitions than before."""
        from penstock.client.admin.topics import grow_topic

        await grow_topic(self._session, name, to)

    async def configure_topic(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Sets configs of a topic; None takes one back to its default."""
        from penstock.client.admin.configs import ConfigResource

        (await self.alter_configs({ConfigResource.topic(name): changes})).checked()

    async def trim_topic(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Deletes the records before an offset of each partition (-1: all); answers the new log starts.

        Nothing is deleted when one of the partitions does not exist.
        """
        from penstock.client.admin.session import partition_words, refused
        from penstock.model.errors import UNKNOWN_TOPIC_OR_PARTITION

        found = await self.describe_topic(name, offsets=False, configs=False)
        known = {partition.partition for partition in found.partitions}
        for index in sorted(set(before) - known):
            raise refused(UNKNOWN_TOPIC_OR_PARTITION.code, None, partition_words(TopicPartition(name, index)))
        trimmed = await self.delete_records({TopicPartition(name, index): to for index, to in before.items()})
        return {item.partition: start for item, start in trimmed.checked().items()}

    # Records and offsets.

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> Results[TopicPartition, int]:
        """Deletes the records before an offset (-1: all); answers the new log starts."""
        from penstock.client.admin.records import delete_records

        return await delete_records(self._session, before)

    async def offsets(
        self, wanted: Mapping[TopicPartition, str | int], *, read_committed: bool = False
    ) -> Results[TopicPartition, OffsetInfo]:
        """The offset of "earliest", "latest", "max_timestamp", or of the first record at or after a time in ms."""
        from penstock.client.admin.offsets import list_offsets, time_of

        times = {item: time_of(when) for item, when in wanted.items()}
        return await list_offsets(self._session, times, read_committed=read_committed)

    async def ends_of_led(
        self,
        led: Mapping[int, Collection[TopicPartition]],
        when: str | int = "latest",
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """`offsets` for very many partitions, by whoever knows which broker leads which; unknown ones are left out.

        It is cheap to ask the same again with the very same collections.
        """
        from penstock.client.admin.many_ends import ManyEnds
        from penstock.client.admin.offsets import time_of

        if self._many_ends is None:
            self._many_ends = ManyEnds(self._session)
        return await self._many_ends.of_led(led, time_of(when), read_committed=read_committed)

    async def committed_batches(self, partition: TopicPartition, start: int, end: int) -> CommittedSpan:
        """Who wrote what lies at offsets [start, end) of a partition, as far as it is committed; nothing is decoded."""
        from penstock.client.admin.batches import committed_batches

        return await committed_batches(self._session, partition, start, end)

    async def record_at(self, partition: TopicPartition, offset: int) -> ConsumerRecord | None:
        """The first record at or behind an offset, committed or not; None where none is stored yet."""
        from penstock.client.admin.record_at import record_at

        return await record_at(self._session, partition, offset)

    async def find_damage(self, behind: Iterable[Behind]) -> list[Damage]:
        """Of replicas that are not in sync, those whose leaders have a damaged batch where they stand."""
        from penstock.client.admin.copying import find_damage

        return await find_damage(self._session, behind)

    # Producers and transactions.

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> Results[TopicPartition, list[ProducerInfo]]:
        """The producers that partitions remember: those of their leaders, or of the replicas on one broker."""
        from penstock.client.admin.producers import describe_producers

        return await describe_producers(self._session, partitions, broker_id=broker_id)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Transactional ids that coordinators know, by id: all, or those that every filter lets through.

        `longer_than_ms` asks for those whose last transaction began before so long, ended or not, as in Kafka.
        `pattern` is a regular expression of RE2 for the whole id.
        """
        from penstock.client.admin.transactions import list_transactions

        return await list_transactions(
            self._session, states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
        )

    async def describe_transaction(self, transactional_id: str) -> TransactionInfo:
        """How the last transaction of a transactional id stands."""
        return (await self.describe_transactions([transactional_id])).checked()[transactional_id]

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> Results[str, TransactionInfo]:
        """How the last transactions of transactional ids stand, and which partitions are in them."""
        from penstock.client.admin.transactions import describe_transactions

        return await describe_transactions(self._session, transactional_ids)

    async def open_transactions(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> list[OpenTransaction]:
        """The transactions that are open in partitions, and which of them hang: no coordinator will end those.

        Leaders are asked, or one broker about its replicas. Whoever may not describe a transactional id takes its
        transaction for one that hangs.
        """
        from penstock.client.admin.open_transactions import open_transactions

        return await open_transactions(self._session, partitions, broker_id=broker_id)

    async def abort_transaction(
        self, partition: TopicPartition, *, start_offset: int | None = None, producer_id: int | None = None
    ) -> ProducerInfo:
        """Aborts a transaction that hangs in a partition, named by its first offset or its producer; whose it was.

        What is written is the end in this one partition, whatever a coordinator thinks: `open_transactions` tells which
        ones hang, and `fence_producers` aborts one that does not.
        """
        from penstock.client.admin.open_transactions import abort_transaction

        return await abort_transaction(self._session, partition, start_offset=start_offset, producer_id=producer_id)

    async def fence_producers(self, transactional_ids: Iterable[str]) -> Results[str, ProducerEpoch]:
        """Aborts what is open under transactional ids, and lets whoever has them write no more."""
        from penstock.client.admin.transactions import fence_producers

        return await fence_producers(self._session, transactional_ids)

    async def begin_producers(
        self, transactional_ids: Mapping[str, ProducerEpoch | None], *, transaction_timeout_ms: int
    ) -> Results[str, ProducerEpoch]:
        """Gets producer ids for producers elsewhere, which `Producer.adopt` takes. What is open is aborted.

        With None whoever had the id before is fenced. Who names the epoch it has gets the next one, or is refused when
        another has begun since.
        """
        from penstock.client.admin.transactions import begin_producers

        return await begin_producers(self._session, transactional_ids, transaction_timeout_ms)

    async def end_transaction(self, prepared: PreparedTransaction, *, commit: bool) -> ProducerEpoch:
        """Commits or aborts what `Producer.prepare` gave; asking for the same end again is fine.

        Answers as whom brokers know the producer after it. TransactionFenced when it cannot be done any more: it has
        ended the other way, its time was over, or a producer with its id has begun since.
        """
        from penstock.client.admin.transactions import end_transaction

        return await end_transaction(self._session, prepared, commit=commit)

    # Configuration.

    async def describe_configs(
        self, resources: Iterable[ConfigResource], *, documentation: bool = False, names: Sequence[str] | None = None
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The values of topics, brokers, the cluster's defaults, groups and loggers, by name: all, or those named."""
        from penstock.client.admin.configs import describe_configs

        return await describe_configs(self._session, resources, documentation=documentation, names=names)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        append: bool = False,
        subtract: bool = False,
        validate_only: bool = False,
    ) -> Results[ConfigResource, None]:
        """Sets values; None takes one away; `append` and `subtract` treat values as lists."""
        from penstock.client.admin.configs import alter_configs

        return await alter_configs(
            self._session, changes, append=append, subtract=subtract, validate_only=validate_only
        )

    async def replace_configs(
        self, values: Mapping[ConfigResource, Mapping[str, str]], *, validate_only: bool = False
    ) -> Results[ConfigResource, None]:
        """Puts values in place of all that were set before."""
        from penstock.client.admin.configs import replace_configs

        return await replace_configs(self._session, values, validate_only=validate_only)

    # The cluster.

    async def describe_cluster(self, *, fenced: bool = True) -> ClusterInfo:
        """Brokers, dead ones too if `fenced`, and the controller with its epoch."""
        from penstock.client.admin.cluster import describe_cluster

        return await describe_cluster(self._session, fenced=fenced)

    async def rights(self, topics: Iterable[str] = ()) -> Rights:
        """What this client may do to the cluster and to the named topics, by the cluster's own word."""
        from penstock.client.admin.rights import rights

        return await rights(self._session, topics)

    async def describe_quorum(self) -> QuorumInfo:
        """The metadata quorum: leader, epoch, voters and observers with their lag."""
        from penstock.client.admin.cluster import describe_quorum

        return await describe_quorum(self._session)

    async def features(self, node_id: int | None = None) -> list[FeatureInfo]:
        """The features that a broker knows (any broker if None) and the levels that the cluster has settled on."""
        from penstock.client.admin.cluster import describe_features

        return await describe_features(self._session, node_id)

    async def update_features(
        self, levels: Mapping[str, int], *, downgrade: str | None = None, validate_only: bool = False
    ) -> None:
        """Settles on other feature levels; a lower one needs `downgrade="safe"` or `"unsafe"`."""
        from penstock.client.admin.cluster import update_features

        await update_features(self._session, levels, downgrade=downgrade, validate_only=validate_only)

    async def api_versions(self, node_id: int) -> dict[str, tuple[int, int]]:
        """The APIs that a broker serves, with their lowest and highest versions."""
        from penstock.client.admin.cluster import api_versions

        return await api_versions(self._session, node_id)

    async def describe_log_dirs(
        self, node_ids: Iterable[int] | None = None, *, topics: Iterable[str] | None = None
    ) -> Results[int, list[LogDirInfo]]:
        """The log directories of brokers (of all, for None) with sizes and replicas."""
        from penstock.client.admin.log_dirs import describe_log_dirs

        return await describe_log_dirs(self._session, node_ids, topics)

    async def move_replicas(self, node_id: int, to: Mapping[TopicPartition, str]) -> Results[TopicPartition, None]:
        """Begins to move replicas of a broker to other log directories of its own."""
        from penstock.client.admin.log_dirs import move_replicas

        return await move_replicas(self._session, node_id, to)

    async def unregister_broker(self, node_id: int) -> None:
        """Forgets a broker that is gone for good: it has to be stopped, and to hold no replicas."""
        from penstock.client.admin.membership import unregister_broker

        await unregister_broker(self._session, node_id)

    async def add_voter(self, node_id: int, directory_id: str, endpoints: Sequence[str]) -> None:
        """Makes a controller that follows the metadata quorum one of its voters.

        `directory_id` is that of its metadata directory, `endpoints` are as `CONTROLLER://host:9093`.
        """
        from penstock.client.admin.membership import add_voter

        await add_voter(self._session, node_id, directory_id, endpoints)

    async def remove_voter(self, node_id: int, directory_id: str) -> None:
        """Takes a voter out of the metadata quorum."""
        from penstock.client.admin.membership import remove_voter

        await remove_voter(self._session, node_id, directory_id)

    # Where partitions lie.

    async def alter_partition_reassignments(
        self, to: Mapping[TopicPartition, Sequence[int] | None], *, allow_replication_change: bool = True
    ) -> Results[TopicPartition, None]:
        """Begins to move partitions to other brokers, preferred leader first; None cancels a move."""
        from penstock.client.admin.placement import alter_partition_reassignments

        return await alter_partition_reassignments(self._session, to, allow_replication_change=allow_replication_change)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The moves that are under way."""
        from penstock.client.admin.placement import list_partition_reassignments

        return await list_partition_reassignments(self._session, partitions)

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> Results[TopicPartition, bool]:
        """Gives partitions (all, for None) their preferred leaders; False for those that had them.

        `unclean` gives any live replica to those without a leader, and what only others have is lost.
        """
        from penstock.client.admin.placement import elect_leaders

        return await elect_leaders(self._session, partitions, unclean=unclean)

    # Groups.

    async def groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """All groups by id, or those in the given states and of the given types."""
        from penstock.client.admin.groups import list_groups

        return await list_groups(self._session, states, types)

    async def describe_group(self, group_id: str) -> GroupInfo:
        """A group with its members and what each of them has."""
        return (await self.describe_groups([group_id])).checked()[group_id]

    async def describe_groups(self, group_ids: Iterable[str]) -> Results[str, GroupInfo]:
        """Classic and consumer groups alike: state, members, assignment."""
        from penstock.client.admin.groups import describe_groups

        return await describe_groups(self._session, group_ids)

    async def delete_group(self, group_id: str) -> None:
        """Deletes a group that has no members, with its positions."""
        (await self.delete_groups([group_id])).checked()

    async def delete_groups(self, group_ids: Iterable[str]) -> Results[str, None]:
        """Deletes groups that have no members, with their positions."""
        from penstock.client.admin.groups import delete_groups

        return await delete_groups(self._session, group_ids)

    async def remove_members(
        self, group_id: str, members: Iterable[str] = (), *, instances: Iterable[str] = (), reason: str | None = None
    ) -> Results[str, None]:
        """Removes members by member id, static ones by instance id."""
        from penstock.client.admin.groups import REMOVED, remove_members

        return await remove_members(self._session, group_id, members, instances, reason or REMOVED)

    async def group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group has committed; partitions without a commit are left out."""
        from penstock.client.admin.group_offsets import group_offsets

        return await group_offsets(self._session, group_id, partitions, require_stable=require_stable)

    async def group_lag(self, group_id: str, *, read_committed: bool = False) -> list[PartitionLag]:
        """How far a group is behind, per partition.

        `read_committed` says that it reads no open transactions: then lag ends where the first of them begins. Of the
        groups that show how far Spark's queries are this is known.
        """
        from penstock.client.admin.group_offsets import group_lag

        return await group_lag(self._session, group_id, read_committed=read_committed)

    async def positions_of_groups(
        self, group_ids: Iterable[str]
    ) -> Results[str, dict[TopicPartition, CommittedOffset]]:
        """What many groups have committed, with few requests: as many groups in one as its coordinator has of them."""
        from penstock.client.admin.group_offsets import positions_of_groups

        return await positions_of_groups(self._session, group_ids)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> Results[TopicPartition, None]:
        """Moves the positions of a group that has no members."""
        from penstock.client.admin.group_offsets import CommittedOffset, alter_group_offsets

        wanted = {
            item: CommittedOffset(offset) if isinstance(offset, int) else offset for item, offset in offsets.items()
        }
        return await alter_group_offsets(self._session, group_id, wanted)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Forgets positions of topics that no member reads."""
        from penstock.client.admin.group_offsets import delete_group_offsets

        return await delete_group_offsets(self._session, group_id, partitions)

    # Security.

    async def create_acls(self, acls: Iterable[Acl]) -> Results[Acl, None]:
        """Adds ACLs; one that is there already is fine."""
        from penstock.client.admin.acls import create_acls

        return await create_acls(self._session, acls)

    async def describe_acls(self, which: AclFilter | None = None) -> list[Acl]:
        """The ACLs that a filter means (all, for None), in order."""
        from penstock.client.admin.acls import AclFilter, describe_acls

        return await describe_acls(self._session, which or AclFilter())

    async def delete_acls(self, filters: Iterable[AclFilter]) -> Results[AclFilter, list[Acl]]:
        """Removes the ACLs that filters mean; what each of them removed."""
        from penstock.client.admin.acls import delete_acls

        return await delete_acls(self._session, filters)

    async def describe_scram_users(self, names: Iterable[str] | None = None) -> Results[str, list[ScramCredential]]:
        """How users (all, for None) can log in by SCRAM: mechanisms and iterations."""
        from penstock.client.admin.scram_users import describe_scram_users

        return await describe_scram_users(self._session, names)

    async def alter_scram_users(
        self, changes: Iterable[ScramPassword | ScramRemoval]
    ) -> Results[ScramPassword | ScramRemoval, None]:
        """Sets passwords (`ScramPassword`) and removes credentials (`ScramRemoval`). Passwords are salted here."""
        from penstock.client.admin.scram_users import alter_scram_users

        return await alter_scram_users(self._session, changes)

    async def create_token(
        self, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int | None = None
    ) -> DelegationToken:
        """Makes a token to log in with as its owner (`User:alice`; None is whoever asks), who lends it.

        `renewers` may renew and end it beside its owner. Needs a login that is not itself by a token.
        """
        from penstock.client.admin.tokens import create_token

        return await create_token(self._session, owner, renewers, max_lifetime_ms)

    async def renew_token(self, hmac: bytes | str, *, period_ms: int | None = None) -> int:
        """Lets a token last longer, by as much as the cluster grants for None; when it ends now."""
        from penstock.client.admin.tokens import renew_token

        return await renew_token(self._session, hmac, period_ms)

    async def expire_token(self, hmac: bytes | str, *, after_ms: int | None = None) -> int:
        """Ends a token and its connections, at once for None; when that is."""
        from penstock.client.admin.tokens import expire_token

        return await expire_token(self._session, hmac, after_ms)

    async def describe_tokens(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """The tokens that one may know of, with their HMACs: of these owners, or of everybody for None."""
        from penstock.client.admin.tokens import describe_tokens

        return await describe_tokens(self._session, owners)

    async def describe_quotas(
        self, which: QuotaEntity | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The limits of entities that have all the parts of `which` (of all, for None); `strict`: and no others."""
        from penstock.client.admin.quotas import describe_quotas

        return await describe_quotas(self._session, which, strict=strict)

    async def alter_quotas(
        self, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Results[QuotaEntity, None]:
        """Sets limits of users, client ids and addresses; None takes one away."""
        from penstock.client.admin.quotas import alter_quotas

        return await alter_quotas(self._session, changes, validate_only=validate_only)


def _settings(bootstrap_servers: object, settings: Mapping[str, Any]) -> AdminSettings | None:
    """None when nothing but addresses and a name is given: the defaults need no table, and commands start sooner."""
    if settings.keys() <= {"client_id"}:
        return None
    from penstock.client.settings import AdminSettings

    return AdminSettings.of({"bootstrap_servers": bootstrap_servers, **settings})
