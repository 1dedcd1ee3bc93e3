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
    bootstrap,
    brokers,
    configs,
    heartbeats,
    leaders,
    levels,
    partitions,
    producers,
    reassignments,
    replicas,
    topics,
)
from penstock.controller.decision import ControllerSettings, Decision, MayDescribe, World
from penstock.controller.index import PartitionIndex
from penstock.controller.sessions import Sessions
from penstock.controller.topic_configs import TopicConfigs
from penstock.metadata.entities import CONFIG_BROKER
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import Record
from penstock.model.ids import Epoch, Offset
from penstock.protocol.disk.metadata_features import NoOpRecord

if TYPE_CHECKING:
    from random import Random


class Controller:
    """Decides for the cluster. `image` is the working image: it must contain everything up to the end of the log.

    It is made anew whenever its node becomes the leader of the quorum, and dropped when it no longer is.
    """

    def __init__(self, image: ClusterImage, random: Random, settings: ControllerSettings) -> None:
        self.settings = settings
        sessions = Sessions(settings.session_timeout_ms)
        self._world = World(image, random, settings, sessions, PartitionIndex(image), TopicConfigs(image, settings))
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
    ) -> Decision:
        """The decision on any request this controller serves; KeyError for another.

        `now` is monotonic milliseconds, `next_offset` where the next record of the log will go.
        """
        match request.__class__.__name__:
            case "CreateTopicsRequest":
                return topics.decide_create(self._world, request, may_describe)
            case "DeleteTopicsRequest":
                return topics.decide_delete(self._world, request, api_version=api_version)
            case "UpdateFeaturesRequest":
                return levels.decide_update(self._world, request, api_version=api_version, kraft_version=kraft_version)
            case "BrokerRegistrationRequest":
                return brokers.decide_register(
                    self._world, request, api_version=api_version, now=now, next_offset=next_offset
                )
            case "BrokerHeartbeatRequest":
                return heartbeats.decide_heartbeat(self._world, request, now=now, next_offset=next_offset)
            case name:
                return _PLAIN[name](self._world, request)

    # Telling

    def apply(self, record: Record, offset: Offset, epoch: Epoch) -> None:
        """Takes a record that was appended at `offset` into the working image. In log order, every record."""
        world = self._world
        world.image.apply(record, offset, epoch)
        match record.__class__.__name__:
            case "PartitionChangeRecord" | "PartitionRecord" if not world.image.in_transaction:
                partitions = world.image.topics[record.topic_id].partitions
                world.index.see((record.topic_id, record.partition_id), partitions[record.partition_id])
            case "TopicRecord" | "RemoveTopicRecord" | "EndTransactionRecord" | "ClearElrRecord":
                self._follow_delta()
            case "ConfigRecord" if record.resource_type == CONFIG_BROKER:
                world.topic_configs.forget()
            case "RegisterBrokerRecord":
                world.registered_at[record.broker_id] = offset
            case "UnregisterBrokerRecord":
                world.sessions.close(record.broker_id)
                world.registered_at.pop(record.broker_id, None)

    def _follow_delta(self) -> None:
        # The working image is published to nobody: its delta only serves the indexes of names and partitions.
        world = self._world
        delta = world.image.take_delta()
        if any(key.type == CONFIG_BROKER for key in delta.configs):
            world.topic_configs.forget()  # they were part of a transaction, which has come to its end
        world.index.follow(world.image, delta)
        for topic in delta.deleted.values():
            world.names.remove(topic.name)
        for name in delta.created.values():
            world.names.add(name)


_PLAIN: dict[str, Callable[[World, Any], Decision]] = {
    "CreatePartitionsRequest": partitions.decide_create_partitions,
    "AlterConfigsRequest": configs.decide_alter,
    "IncrementalAlterConfigsRequest": configs.decide_incremental,
    "AllocateProducerIdsRequest": producers.decide_allocate,
    "AlterPartitionReassignmentsRequest": reassignments.decide_alter_reassignments,
    "ListPartitionReassignmentsRequest": reassignments.decide_list_reassignments,
    "AlterPartitionRequest": replicas.decide_alter_partition,
    "AssignReplicasToDirsRequest": replicas.decide_assign_directories,
    "ElectLeadersRequest": leaders.decide_elect,
    "ControllerRegistrationRequest": brokers.decide_register_controller,
    "UnregisterBrokerRequest": brokers.decide_unregister,
}
