"""The blocking Admin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from penstock.client.admin import admin as asynchronous
from penstock.client.blocking.loop_thread import LoopThread, close_at_the_latest
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
    from penstock.client.admin.offsets import OffsetInfo
    from penstock.client.admin.open_transactions import OpenTransaction
    from penstock.client.admin.placement import Reassignment
    from penstock.client.admin.producers import ProducerInfo
    from penstock.client.admin.quotas import QuotaEntity
    from penstock.client.admin.rights import Rights
    from penstock.client.admin.scram_users import ScramCredential, ScramPassword, ScramRemoval
    from penstock.client.admin.session import Results
    from penstock.client.admin.tokens import DelegationToken
    from penstock.client.admin.topics import TopicInfo
    from penstock.client.admin.transactions import TransactionInfo, TransactionListing
    from penstock.client.keywords import AdminKeywords
    from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
    from penstock.kernels import ConsumerRecord


class Admin:
    """Administration of a cluster, ours or Apache Kafka's. Use it with `with`, or close it.

        with Admin(bootstrap_servers="localhost:9092") as admin:
            admin.create_topic("orders", partitions=6)

    Settings, results and errors are those of `penstock.Admin`. May be used from several threads.
    """

    def __init__(
        self, *, bootstrap_servers: str | Sequence[str] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        self._inner = asynchronous.Admin(bootstrap_servers=bootstrap_servers, **settings)
        self._thread = LoopThread("penstock-admin")
        self._farewell = close_at_the_latest(self, self._thread, self._inner.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections; closing twice is fine."""
        if self._farewell.detach() is not None:
            self._thread.call(self._inner.close())
            self._thread.stop()

    def topics(self, *, internal: bool = False) -> list[TopicInfo]:
        """All topics by name, those of the platform itself only on request."""
        return self._thread.call(self._inner.topics(internal=internal))

    def watched_topics(self) -> Mapping[str, TopicInfo]:
        """All topics by name, those of the platform itself too, for whoever asks again and again: what has not changed
        since is the very same object, and the mapping too when nothing has."""
        return self._thread.call(self._inner.watched_topics())

    def topic_operations(self) -> dict[str, frozenset[str]]:
        """What this very login may do with each topic that it may describe, as `read` or `alter_configs`."""
        return self._thread.call(self._inner.topic_operations())

    def describe_topic(self, name: str, *, offsets: bool = True, configs: bool = True) -> TopicInfo:
        """A topic with its partitions, the ends of their logs and what was set on it; UnknownTopic."""
        return self._thread.call(self._inner.describe_topic(name, offsets=offsets, configs=configs))

    def describe_topics(
        self, names: Sequence[str], *, offsets: bool = True, configs: bool = True
    ) -> Results[str, TopicInfo]:
        """Topics with partitions, the ends of their logs and what was set on them; results in the order of names."""
        return self._thread.call(self._inner.describe_topics(names, offsets=offsets, configs=configs))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
        *,
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> str:
        """Creates a topic and answers its id; what is None is the broker's default."""
        return self._thread.call(
            self._inner.create_topic(
                name, partitions, replication, configs, assignment=assignment, validate_only=validate_only
            )
        )

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        self._thread.call(self._inner.delete_topic(name))

    def delete_topics(self, names: Sequence[str]) -> Results[str, None]:
        """Deletes topics with all their records."""
        return self._thread.call(self._inner.delete_topics(names))

    def grow_topic(self, name: str, to: int) -> None:
        """Raises the number of partitions to `to`. Keys may then map to other partitions than before."""
        self._thread.call(self._inner.grow_topic(name, to))

    def configure_topic(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Sets configs of a topic; None takes one back to its default."""
        self._thread.call(self._inner.configure_topic(name, changes))

    def trim_topic(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Deletes the records before an offset of each partition (-1: all); answers the new log starts."""
        return self._thread.call(self._inner.trim_topic(name, before))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> Results[TopicPartition, int]:
        """Deletes the records before an offset (-1: all); answers the new log starts."""
        return self._thread.call(self._inner.delete_records(before))

    def offsets(
        self, wanted: Mapping[TopicPartition, str | int], *, read_committed: bool = False
    ) -> Results[TopicPartition, OffsetInfo]:
        """The offset of "earliest", "latest", "max_timestamp", or of the first record at or after a time in ms."""
        return self._thread.call(self._inner.offsets(wanted, read_committed=read_committed))

    def ends_of_led(
        self,
        led: Mapping[int, Collection[TopicPartition]],
        when: str | int = "latest",
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """`offsets` for very many partitions, by whoever knows which broker leads which; unknown ones are left out.

        It is cheap to ask the same again with the very same collections.
        """
        return self._thread.call(self._inner.ends_of_led(led, when, read_committed=read_committed))

    def committed_batches(self, partition: TopicPartition, start: int, end: int) -> CommittedSpan:
        """Who wrote what lies at offsets [start, end) of a partition, as far as it is committed; nothing is decoded."""
        return self._thread.call(self._inner.committed_batches(partition, start, end))

    def record_at(self, partition: TopicPartition, offset: int) -> ConsumerRecord | None:
        """The first record at or behind an offset, committed or not; None where none is stored yet."""
        return self._thread.call(self._inner.record_at(partition, offset))

    def find_damage(self, behind: Iterable[Behind]) -> list[Damage]:
        """Of replicas that are not in sync, those whose leaders have a damaged batch where they stand."""
        return self._thread.call(self._inner.find_damage(behind))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> Results[TopicPartition, list[ProducerInfo]]:
        """The producers that partitions remember: those of their leaders, or of the replicas on one broker."""
        return self._thread.call(self._inner.describe_producers(partitions, broker_id=broker_id))

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Transactional ids that coordinators know, by id: all, or those that every filter lets through."""
        return self._thread.call(
            self._inner.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def describe_transaction(self, transactional_id: str) -> TransactionInfo:
        """How the last transaction of a transactional id stands."""
        return self._thread.call(self._inner.describe_transaction(transactional_id))

    def describe_transactions(self, transactional_ids: Iterable[str]) -> Results[str, TransactionInfo]:
        """How the last transactions of transactional ids stand, and which partitions are in them."""
        return self._thread.call(self._inner.describe_transactions(transactional_ids))

    def open_transactions(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> list[OpenTransaction]:
        """The transactions that are open in partitions, and which of them hang: no coordinator will end those."""
        return self._thread.call(self._inner.open_transactions(partitions, broker_id=broker_id))

    def abort_transaction(
        self, partition: TopicPartition, *, start_offset: int | None = None, producer_id: int | None = None
    ) -> ProducerInfo:
        """Aborts a transaction that hangs in a partition, named by its first offset or its producer; whose it was."""
        return self._thread.call(
            self._inner.abort_transaction(partition, start_offset=start_offset, producer_id=producer_id)
        )

    def fence_producers(self, transactional_ids: Iterable[str]) -> Results[str, ProducerEpoch]:
        """Aborts what is open under transactional ids, and lets whoever has them write no more."""
        return self._thread.call(self._inner.fence_producers(transactional_ids))

    def begin_producers(
        self, transactional_ids: Mapping[str, ProducerEpoch | None], *, transaction_timeout_ms: int
    ) -> Results[str, ProducerEpoch]:
        """Gets producer ids for producers elsewhere, which `Producer.adopt` takes. What is open is aborted."""
        begun = self._inner.begin_producers(transactional_ids, transaction_timeout_ms=transaction_timeout_ms)
        return self._thread.call(begun)

    def end_transaction(self, prepared: PreparedTransaction, *, commit: bool) -> ProducerEpoch:
        """Commits or aborts what `Producer.prepare` gave; asking for the same end again is fine."""
        return self._thread.call(self._inner.end_transaction(prepared, commit=commit))

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, documentation: bool = False, names: Sequence[str] | None = None
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The values of topics, brokers, the cluster's defaults, groups and loggers, by name."""
        return self._thread.call(self._inner.describe_configs(resources, documentation=documentation, names=names))

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        append: bool = False,
        subtract: bool = False,
        validate_only: bool = False,
    ) -> Results[ConfigResource, None]:
        """Sets values; None takes one away; `append` and `subtract` treat values as lists."""
        return self._thread.call(
            self._inner.alter_configs(changes, append=append, subtract=subtract, validate_only=validate_only)
        )

    def replace_configs(
        self, values: Mapping[ConfigResource, Mapping[str, str]], *, validate_only: bool = False
    ) -> Results[ConfigResource, None]:
        """Puts values in place of all that were set before."""
        return self._thread.call(self._inner.replace_configs(values, validate_only=validate_only))

    def describe_cluster(self, *, fenced: bool = True) -> ClusterInfo:
        """Brokers, dead ones too if `fenced`, and the controller with its epoch."""
        return self._thread.call(self._inner.describe_cluster(fenced=fenced))

    def rights(self, topics: Iterable[str] = ()) -> Rights:
        """What this client may do to the cluster and to the named topics, by the cluster's own word."""
        return self._thread.call(self._inner.rights(topics))

    def describe_quorum(self) -> QuorumInfo:
        """The metadata quorum: leader, epoch, voters and observers with their lag."""
        return self._thread.call(self._inner.describe_quorum())

    def features(self, node_id: int | None = None) -> list[FeatureInfo]:
        """The features that a broker knows (any broker if None) and the levels that the cluster has settled on."""
        return self._thread.call(self._inner.features(node_id))

    def update_features(
        self, levels: Mapping[str, int], *, downgrade: str | None = None, validate_only: bool = False
    ) -> None:
        """Settles on other feature levels; a lower one needs `downgrade="safe"` or `"unsafe"`."""
        self._thread.call(self._inner.update_features(levels, downgrade=downgrade, validate_only=validate_only))

    def api_versions(self, node_id: int) -> dict[str, tuple[int, int]]:
        """The APIs that a broker serves, with their lowest and highest versions."""
        return self._thread.call(self._inner.api_versions(node_id))

    def describe_log_dirs(
        self, node_ids: Iterable[int] | None = None, *, topics: Iterable[str] | None = None
    ) -> Results[int, list[LogDirInfo]]:
        """The log directories of brokers (of all, for None) with sizes and replicas."""
        return self._thread.call(self._inner.describe_log_dirs(node_ids, topics=topics))

    def move_replicas(self, node_id: int, to: Mapping[TopicPartition, str]) -> Results[TopicPartition, None]:
        """Begins to move replicas of a broker to other log directories of its own."""
        return self._thread.call(self._inner.move_replicas(node_id, to))

    def unregister_broker(self, node_id: int) -> None:
        """Forgets a broker that is gone for good: it has to be stopped, and to hold no replicas."""
        self._thread.call(self._inner.unregister_broker(node_id))

    def add_voter(self, node_id: int, directory_id: str, endpoints: Sequence[str]) -> None:
        """Makes a controller that follows the metadata quorum one of its voters."""
        self._thread.call(self._inner.add_voter(node_id, directory_id, endpoints))

    def remove_voter(self, node_id: int, directory_id: str) -> None:
        """Takes a voter out of the metadata quorum."""
        self._thread.call(self._inner.remove_voter(node_id, directory_id))

    def alter_partition_reassignments(
        self, to: Mapping[TopicPartition, Sequence[int] | None], *, allow_replication_change: bool = True
    ) -> Results[TopicPartition, None]:
        """Begins to move partitions to other brokers, preferred leader first; None cancels a move."""
        return self._thread.call(
            self._inner.alter_partition_reassignments(to, allow_replication_change=allow_replication_change)
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The moves that are under way."""
        return self._thread.call(self._inner.list_partition_reassignments(partitions))

    def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> Results[TopicPartition, bool]:
        """Gives partitions (all, for None) their preferred leaders; False for those that had them."""
        return self._thread.call(self._inner.elect_leaders(partitions, unclean=unclean))

    def groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """All groups by id, or those in the given states and of the given types."""
        return self._thread.call(self._inner.groups(states=states, types=types))

    def describe_group(self, group_id: str) -> GroupInfo:
        """A group with its members and what each of them has."""
        return self._thread.call(self._inner.describe_group(group_id))

    def describe_groups(self, group_ids: Iterable[str]) -> Results[str, GroupInfo]:
        """Classic and consumer groups alike: state, members, assignment."""
        return self._thread.call(self._inner.describe_groups(group_ids))

    def delete_group(self, group_id: str) -> None:
        """Deletes a group that has no members, with its positions."""
        self._thread.call(self._inner.delete_group(group_id))

    def delete_groups(self, group_ids: Iterable[str]) -> Results[str, None]:
        """Deletes groups that have no members, with their positions."""
        return self._thread.call(self._inner.delete_groups(group_ids))

    def remove_members(
        self, group_id: str, members: Iterable[str] = (), *, instances: Iterable[str] = (), reason: str | None = None
    ) -> Results[str, None]:
        """Removes members by member id, static ones by instance id."""
        return self._thread.call(self._inner.remove_members(group_id, members, instances=instances, reason=reason))

    def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group has committed; partitions without a commit are left out."""
        return self._thread.call(self._inner.group_offsets(group_id, partitions, require_stable=require_stable))

    def group_lag(self, group_id: str, *, read_committed: bool = False) -> list[PartitionLag]:
        """How far a group is behind, per partition."""
        return self._thread.call(self._inner.group_lag(group_id, read_committed=read_committed))

    def positions_of_groups(self, group_ids: Iterable[str]) -> Results[str, dict[TopicPartition, CommittedOffset]]:
        """What many groups have committed, with few requests: as many groups in one as its coordinator has of them."""
        return self._thread.call(self._inner.positions_of_groups(group_ids))

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> Results[TopicPartition, None]:
        """Moves the positions of a group that has no members."""
        return self._thread.call(self._inner.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Forgets positions of topics that no member reads."""
        return self._thread.call(self._inner.delete_group_offsets(group_id, partitions))

    def create_acls(self, acls: Iterable[Acl]) -> Results[Acl, None]:
        """Adds ACLs; one that is there already is fine."""
        return self._thread.call(self._inner.create_acls(acls))

    def describe_acls(self, which: AclFilter | None = None) -> list[Acl]:
        """The ACLs that a filter means (all, for None), in order."""
        return self._thread.call(self._inner.describe_acls(which))

    def delete_acls(self, filters: Iterable[AclFilter]) -> Results[AclFilter, list[Acl]]:
        """Removes the ACLs that filters mean; what each of them removed."""
        return self._thread.call(self._inner.delete_acls(filters))

    def describe_scram_users(self, names: Iterable[str] | None = None) -> Results[str, list[ScramCredential]]:
        """How users (all, for None) can log in by SCRAM: mechanisms and iterations."""
        return self._thread.call(self._inner.describe_scram_users(names))

    def alter_scram_users(
        self, changes: Iterable[ScramPassword | ScramRemoval]
    ) -> Results[ScramPassword | ScramRemoval, None]:
        """Sets passwords (`ScramPassword`) and removes credentials (`ScramRemoval`). Passwords are salted here."""
        return self._thread.call(self._inner.alter_scram_users(changes))

    def create_token(
        self, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int | None = None
    ) -> DelegationToken:
        """Makes a token to log in with as its owner (`User:alice`; None is whoever asks), who lends it.

        `renewers` may renew and end it beside its owner. Needs a login that is not itself by a token.
        """
        return self._thread.call(
            self._inner.create_token(owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms)
        )

    def renew_token(self, hmac: bytes | str, *, period_ms: int | None = None) -> int:
        """Lets a token last longer, by as much as the cluster grants for None; when it ends now."""
        return self._thread.call(self._inner.renew_token(hmac, period_ms=period_ms))

    def expire_token(self, hmac: bytes | str, *, after_ms: int | None = None) -> int:
        """Ends a token and its connections, at once for None; when that is."""
        return self._thread.call(self._inner.expire_token(hmac, after_ms=after_ms))

    def describe_tokens(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """The tokens that one may know of, with their HMACs: of these owners, or of everybody for None."""
        return self._thread.call(self._inner.describe_tokens(owners))

    def describe_quotas(
        self, which: QuotaEntity | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The limits of entities that have all the parts of `which` (of all, for None); `strict`: and no others."""
        return self._thread.call(self._inner.describe_quotas(which, strict=strict))

    def alter_quotas(
        self, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Results[QuotaEntity, None]:
        """Sets limits of users, client ids and addresses; None takes one away."""
        return self._thread.call(self._inner.alter_quotas(changes, validate_only=validate_only))
