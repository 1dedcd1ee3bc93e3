"""The things an image holds. All are immutable values: a change replaces the value, so readers may keep one."""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from penstock.model.ids import DIRECTORY_LOST, RESERVED_UUIDS, Epoch, NodeId, Uuid

NO_LEADER = NodeId(-1)
RECOVERED = 0
RECOVERING = 1


class VersionRange(NamedTuple):
    """The levels of a feature that a node can run at, both ends included."""

    min: int
    max: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.min <= level <= self.max


class Endpoint(NamedTuple):
    """Where a node listens. `security_protocol` is Kafka's number: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class PartitionImage(NamedTuple):
    """One partition. `directories[i]` is the log directory of `replicas[i]`; `elr` are the eligible leader replicas."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: Epoch = Epoch(0)
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def original_replicas(self) -> tuple[int, ...]:
        """The replicas before a reassignment began; all of them when none is under way."""
        return tuple(each for each in self.replicas if each not in self.adding)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas when a reassignment will be done; all of them when none is under way."""
        return tuple(each for each in self.replicas if each not in self.removing)

    def directory_of(self, replica: int) -> Uuid | None:
        """The directory that holds `replica`, None when it is no replica of this partition."""
        try:
            return self.directories[self.replicas.index(replica)]
        except (ValueError, IndexError):
            return None


_SHARED_MIN: Final = 256
_shared: dict[PartitionImage, PartitionImage] = {}
_sweep_at = _SHARED_MIN
# Of a value that nobody has but the table: as key and value, in the list that is looked at, its name, and the call.
_REFERENCES_OF_ITS_OWN: Final = 5


def shared(partition: PartitionImage) -> PartitionImage:
    """The same value, as an object that equal partitions share: thousands of them have the same replicas and epochs.

    Values that no image has any more are forgotten in time: the table is at most twice as large as what images have.
    """
    known = _shared.get(partition)
    if known is None:
        if len(_shared) >= _sweep_at:
            _sweep()
        known = _shared[partition] = partition
    return known


def _sweep() -> None:
    """Both loops of a node come here, so it only does what another thread cannot break."""
    global _sweep_at
    for each in list(_shared):
        if sys.getrefcount(each) <= _REFERENCES_OF_ITS_OWN:
            _shared.pop(each, None)
    _sweep_at = max(_SHARED_MIN, 2 * len(_shared))


# Stands in a topic's list for a partition whose record has not been applied yet (records may come in any order).
UNSEEN_PARTITION = PartitionImage(replicas=(), directories=(), isr=(), partition_epoch=-1)


class TopicImage:
    """A topic: `partitions[i]` is partition i. The list is the image's own; readers must not change it."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, id: Uuid, partitions: list[PartitionImage] | None = None) -> None:
        self.name = name
        self.id = id
        self.partitions: list[PartitionImage] = [] if partitions is None else partitions

    def get(self, partition: int) -> PartitionImage | None:
        """The partition, None when the topic does not have it."""
        if not 0 <= partition < len(self.partitions):
            return None
        found = self.partitions[partition]
        return None if found is UNSEEN_PARTITION else found

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0

    def copy(self) -> TopicImage:
        return TopicImage(self.name, self.id, list(self.partitions))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicImage):
            return NotImplemented
        return (self.name, self.id, self.partitions) == (other.name, other.id, other.partitions)

    __hash__ = None  # type: ignore[assignment]  # a topic's partitions change, so it cannot be a key

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {len(self.partitions)} partitions)"


class BrokerImage(NamedTuple):
    """A registered broker. `epoch` is the offset its registration was decided at; `log_dirs` are those online."""

    id: NodeId
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, VersionRange], ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    migrating_from_zookeeper: bool = False

    @property
    def active(self) -> bool:
        """Whether it may lead and be in sync: neither fenced nor on its way out."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_replicas(self) -> bool:
        """Whether it has a log directory that is not cordoned."""
        return not self.log_dirs or not set(self.log_dirs) <= set(self.cordoned_log_dirs or ())

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where it listens under this listener name."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def supports(self, feature: str) -> VersionRange:
        """What it supports of `feature`; 0-0 when it has never heard of it."""
        return dict(self.features).get(feature, VersionRange(0, 0))

    def has_online(self, directory: bytes | None) -> bool:
        """Whether a replica in `directory` can be read. Directories not known by id yet are taken to be there."""
        if directory is None or directory == DIRECTORY_LOST:
            return False
        return int.from_bytes(directory, "big") < RESERVED_UUIDS or directory in self.log_dirs


class ControllerImage(NamedTuple):
    """A registered controller."""

    id: NodeId
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, VersionRange], ...] = ()
    zookeeper_migration_ready: bool = False


class ProducerIdsImage(NamedTuple):
    """The last block of producer ids that was handed out; `next` is the first id of the next block."""

    broker_id: NodeId
    broker_epoch: int
    next: int


class ConfigKey(NamedTuple):
    """Whose configuration: a resource type number of Kafka's and a name ("" is the default of all brokers)."""

    type: int
    name: str


CONFIG_TOPIC = 2
CONFIG_BROKER = 4
CONFIG_BROKER_LOGGER = 8
CONFIG_CLIENT_METRICS = 16
CONFIG_GROUP = 32
