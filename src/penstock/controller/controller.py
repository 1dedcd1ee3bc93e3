"""The doors of the room: one controller over its working image.

decision = controller.decide(request, now=now, next_offset=log.next, api_version=version)     # ask
for batch in plan_batches(decision, controller.image.metadata_version): …append…              # do
controller.apply(record, offset, epoch)                                                       # tell, per record
…wait until committed…, then give decision.reply
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.controller import (
    acls,
    bootstrap,
    brokers,
    client_quotas,
    configs,
    heartbeats,
    leaders,
    levels,
    partitions,
    producers,
    reassignments,
    replicas,
    scram,
    tokens,
    topics,
)
from penstock.controller.decision import ControllerSettings, Decision, MayDescribe, World
from penstock.controller.index import PartitionIndex
from penstock.controller.sessions import Sessions
from penstock.controller.tokens import TokenAsker
from penstock.controller.topic_configs import TopicConfigs
from penstock.metadata.entities import CONFIG_BROKER
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import Record
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.disk.metadata_brokers import RegisterBrokerRecord, UnregisterBrokerRecord
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import NoOpRecord
from penstock.protocol.disk.metadata_security import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from penstock.protocol.disk.metadata_topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from penstock.protocol.disk.metadata_transactions import EndTransactionRecord
from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.alter_configs import AlterConfigsRequest
from penstock.protocol.messages.alter_partition import AlterPartitionRequest
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest
from penstock.protocol.messages.controller_registration import ControllerRegistrationRequest
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_acls import DeleteAclsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from penstock.protocol.messages.update_features import UpdateFeaturesRequest
from penstock.security.acl_index import AclIndex
from penstock.security.quotas.tokens import FREE, Mutations

if TYPE_CHECKING:
    from random import Random


class Controller:
    """Decides for the cluster. `image` is the working image: it must contain everything up to the end of the log.

    It is made anew whenever its node becomes the leader of the quorum, and dropped when it no longer is.
    """

    def __init__(self, image: ClusterImage, random: Random, settings: ControllerSettings) -> None:
        self.settings = settings
        sessions = Sessions(settings.session_timeout_ms)
        self._world = World(
            image, random, settings, sessions, PartitionIndex(image), TopicConfigs(image, settings.broker)
        )
        self._acls = AclIndex.of(image.acls)
        image.take_delta()
        for topic in image.topics.values():
            self._world.names.add(topic.name)

    @property
    def image(self) -> ClusterImage:
        """The working image, for reading."""
        return self._world.image

    # Events

    def activate(self, now: float, bootstrap_records: Callable[[], Iterable[Record]] = lambda: ()) -> Decision:
        """The node has become the active controller. Live brokers get a whole session to report.

        The decision bootstraps an empty cluster with `bootstrap_records`, those of bootstrap.checkpoint; without any it
        takes this release's levels. Any other cluster does not ask for them.
        """
        self._world.sessions.reset(heartbeats.live_brokers(self._world), now)
        return bootstrap.decide_activation(self._world, bootstrap_records)

    def decide_tick(self, now: float) -> Decision:
        """Call at `next_deadline`, and again at once while it has records: fences one silent broker after the other."""
        return heartbeats.decide_fencing(self._world, now)

    def next_deadline(self) -> float | None:
        """When the next heartbeat session runs out; None when no broker is live."""
        return self._world.sessions.next_deadline(heartbeats.live_brokers(self._world))

    def link_lost(self, broker_id: int, broker_epoch: int, now: float) -> None:
        """The connection over which this incarnation of a broker reported last is gone: it has less time to report."""
        broker = self._world.image.brokers.get(broker_id)
        if broker is not None and broker.epoch == broker_epoch:
            self._world.sessions.lose(broker_id, now)

    def decide_no_op(self) -> Decision:
        """Something to write on an idle cluster, so that everybody sees the log move."""
        return Decision([(NoOpRecord(), 0)])

    def decide_preferred_leaders(self) -> Decision:
        """Moves leadership back to preferred replicas; call again at once while a whole sweep comes back."""
        return leaders.decide_preferred(self._world)

    def decide_unclean_leaders(self) -> Decision:
        """Gives leaderless partitions a leader where losing records is allowed."""
        return leaders.decide_unclean(self._world)

    def decide_token_sweep(self, now_ms: Millis) -> Decision:
        """Removes delegation tokens that are over by the time of day; call again at once while a whole sweep comes."""
        return tokens.decide_sweep(self._world, now_ms)

    # Requests

    def decide(
        self,
        request: Any,
        *,
        now: float,
        next_offset: Offset,
        api_version: int,
        may_describe: MayDescribe = lambda _name: True,
        kraft_version: int = 1,
        asker: TokenAsker | None = None,
        mutations: Mutations = FREE,
    ) -> Decision:
        """The decision on any request this controller serves; KeyError for another.

        `asker` comes with requests about delegation tokens, `mutations` are what the asker may change of partitions.
        `now` is monotonic milliseconds, `next_offset` where the next record of the log will go.
        """
        match request:
            case CreateTopicsRequest():
                return topics.decide_create(self._world, request, may_describe, mutations)
            case DeleteTopicsRequest():
                return topics.decide_delete(self._world, request, api_version=api_version, mutations=mutations)
            case CreatePartitionsRequest():
                return partitions.decide_create_partitions(self._world, request, mutations)
            case UpdateFeaturesRequest():
                return levels.decide_update(self._world, request, api_version=api_version, kraft_version=kraft_version)
            case BrokerRegistrationRequest():
                return brokers.decide_register(
                    self._world, request, api_version=api_version, now=now, next_offset=next_offset
                )
            case BrokerHeartbeatRequest():
                return heartbeats.decide_heartbeat(self._world, request, now=now, next_offset=next_offset)
            case CreateAclsRequest():
                return acls.decide_create(self._world, request, self._acls)
            case DeleteAclsRequest():
                return acls.decide_delete(self._world, request, self._acls)
            case CreateDelegationTokenRequest() if asker is not None:
                return tokens.decide_create(self._world, request, asker)
            case RenewDelegationTokenRequest() if asker is not None:
                return tokens.decide_renew(self._world, request, asker)
            case ExpireDelegationTokenRequest() if asker is not None:
                return tokens.decide_expire(self._world, request, asker)
            case _:
                return _PLAIN[request.__class__](self._world, request)

    # Telling

    def apply(self, record: Record, offset: Offset, epoch: Epoch) -> None:
        """Takes a record that was appended at `offset` into the working image. In log order, every record."""
        world = self._world
        assert offset > world.image.offset, "records come in the order of the log, once each"
        world.image.apply(record, offset, epoch)
        match record:
            case PartitionChangeRecord() | PartitionRecord() if not world.image.in_transaction:
                partitions = world.image.topics[record.topic_id].partitions
                world.index.see((record.topic_id, record.partition_id), partitions[record.partition_id])
            case TopicRecord() | RemoveTopicRecord() | EndTransactionRecord() | ClearElrRecord():
                self._follow_delta()
            case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                self._follow_delta()
            case ConfigRecord() if record.resource_type == CONFIG_BROKER:
                world.topic_configs.forget()
            case RegisterBrokerRecord():
                world.registered_at[record.broker_id] = offset
            case UnregisterBrokerRecord():
                world.sessions.close(record.broker_id)
                world.registered_at.pop(record.broker_id, None)

    def _follow_delta(self) -> None:
        # The working image is published to nobody: its delta only serves the indexes of names, partitions and ACLs.
        world = self._world
        delta = world.image.take_delta()
        if any(key.type == CONFIG_BROKER for key in delta.configs):
            world.topic_configs.forget()  # they were part of a transaction, which has come to its end
        world.index.follow(world.image, delta)
        self._acls.follow(world.image, delta)
        for topic in delta.deleted.values():
            world.names.remove(topic.name)
        for name in delta.created.values():
            world.names.add(name)


_PLAIN: dict[type, Callable[[World, Any], Decision]] = {
    AlterConfigsRequest: configs.decide_alter,
    IncrementalAlterConfigsRequest: configs.decide_incremental,
    AllocateProducerIdsRequest: producers.decide_allocate,
    AlterPartitionReassignmentsRequest: reassignments.decide_alter_reassignments,
    ListPartitionReassignmentsRequest: reassignments.decide_list_reassignments,
    AlterPartitionRequest: replicas.decide_alter_partition,
    AssignReplicasToDirsRequest: replicas.decide_assign_directories,
    ElectLeadersRequest: leaders.decide_elect,
    ControllerRegistrationRequest: brokers.decide_register_controller,
    UnregisterBrokerRequest: brokers.decide_unregister,
    AlterClientQuotasRequest: client_quotas.decide_alter,
    AlterUserScramCredentialsRequest: scram.decide_alter,
}
