"""The life of a broker: registered fenced, unfenced when it has caught up, moved out of the way, fenced when silent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Protocol

from penstock.controller.decision import Decision, World
from penstock.controller.replicas import Place, membership_records, places
from penstock.metadata import features
from penstock.metadata.entities import BrokerImage, Endpoint, VersionRange
from penstock.metadata.records import VersionedRecord
from penstock.metadata.snapshot import broker_record
from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REGISTRATION,
    UNSUPPORTED_VERSION,
    Refused,
)
from penstock.model.ids import RESERVED_UUIDS, NodeId, Offset, Uuid, uuid_text
from penstock.protocol.disk.metadata_brokers import (
    BrokerRegistrationChangeRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from penstock.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

FENCED: Final = 1
UNFENCED: Final = -1
IN_CONTROLLED_SHUTDOWN: Final = 1

LEAVE_MAX: Final = 500
"""How many partitions a broker leaves in one decision where there may be several: the first get their new leaders
while the others are still being decided on, and nothing else has to wait for all of them."""

_NO_PREVIOUS_EPOCH_BEFORE: Final = 3


class _NamedRange(Protocol):
    name: str
    min_supported_version: int
    max_supported_version: int


def decide_register(
    world: World, request: BrokerRegistrationRequest, *, api_version: int, now: float, next_offset: Offset
) -> Decision:
    """BrokerRegistration: a broker process introduces itself; its epoch becomes the next offset of the log."""
    try:
        _check_registration(world, request, now)
    except Refused as refused:
        # One that comes back before its session is over asks again until it is, and is told nothing new.
        passes = refused.error is DUPLICATE_BROKER_REGISTRATION
        warning = "" if passes else f"broker {request.broker_id} is not registered: {refused.why}"
        return Decision([], BrokerRegistrationResponse(error_code=refused.error.code), warning=warning)
    known = world.image.brokers.get(request.broker_id)
    same_process = known is not None and known.incarnation_id == request.incarnation_id
    records: list[VersionedRecord] = []
    if not same_process:
        # A broker that was unregistered has no epoch to come back with, but may have left traces in partitions.
        tells_epoch = api_version >= _NO_PREVIOUS_EPOCH_BEFORE
        kept_its_log = tells_epoch and known is not None and request.previous_broker_epoch == known.epoch
        records += _records_of_previous_life(world, request.broker_id, kept_its_log)
    knows_directories = world.image.metadata_version >= features.METADATA_3_7_DIRECTORIES
    broker = BrokerImage(
        id=NodeId(request.broker_id),
        epoch=known.epoch if known is not None and same_process else next_offset,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            Endpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners
        ),
        features=_ranges(request.features),
        rack=request.rack,
        fenced=known.fenced if known is not None and same_process else True,
        in_controlled_shutdown=known.in_controlled_shutdown if known is not None and same_process else False,
        log_dirs=tuple(request.log_dirs) if knows_directories else (),
    )
    records.append(world.versioned(broker_record(broker)))
    world.sessions.open(broker.id, now)
    return Decision(records, BrokerRegistrationResponse(broker_epoch=broker.epoch), f"register broker {broker.id}")


def _check_registration(world: World, request: BrokerRegistrationRequest, now: float) -> None:
    if request.cluster_id != world.settings.cluster_id:
        raise Refused(INCONSISTENT_CLUSTER_ID, f"this is cluster {world.settings.cluster_id}, not {request.cluster_id}")
    known = world.image.brokers.get(request.broker_id)
    other_process = known is not None and known.incarnation_id != request.incarnation_id
    # Whoever is fenced serves nobody: a process that died while it was starting does not keep out the next one.
    if other_process and known is not None and not known.fenced and world.sessions.occupied(known.id, now):
        raise Refused(DUPLICATE_BROKER_REGISTRATION, f"another process runs as broker {known.id}")
    if request.is_migrating_zk_broker:
        raise Refused(UNSUPPORTED_VERSION, "brokers that run on ZooKeeper cannot join")
    if world.image.metadata_version >= features.METADATA_3_7_DIRECTORIES:
        _check_directories(world, request.broker_id, request.log_dirs)
    supported = dict(_ranges(request.features))
    for name, level in world.image.features.items():
        if name in features.NOT_SERVED and name not in supported:
            continue
        allowed = supported.get(name, VersionRange(0, 0))
        if level not in allowed:
            raise Refused(
                UNSUPPORTED_VERSION,
                f"the cluster runs {name} {level}, broker {request.broker_id} supports {allowed.min} to {allowed.max}",
            )


def _check_directories(world: World, broker_id: int, directories: list[Uuid]) -> None:
    if not directories:
        raise Refused(INVALID_REGISTRATION, "a broker must report the ids of its log directories")
    if len(set(directories)) != len(directories):
        raise Refused(INVALID_REGISTRATION, "two log directories have the same id")
    if any(int.from_bytes(each, "big") < RESERVED_UUIDS for each in directories):
        raise Refused(INVALID_REGISTRATION, "the id of a log directory is one of the reserved ones")
    for other in world.image.brokers.values():
        taken = set(directories) & set(other.log_dirs)
        if other.id != broker_id and taken:
            text = uuid_text(min(taken))
            raise Refused(INVALID_REGISTRATION, f"log directory {text} belongs to broker {other.id}")


def _records_of_previous_life(world: World, broker_id: int, kept_its_log: bool) -> list[VersionedRecord]:
    """What has to be undone before a new process may take over an id.

    A process that stopped cleanly is like one that was fenced. One that did not may have lost what it never synced: it
    is neither in sync nor eligible any more.
    """
    if kept_its_log or not world.image.elr_enabled:
        return membership_records(world, places(world, world.index.in_sync(broker_id)), leaving=broker_id)
    return membership_records(world, places(world, world.index.in_sync_or_eligible(broker_id)), lost=broker_id)


def decide_register_controller(world: World, request: ControllerRegistrationRequest) -> Decision:
    """ControllerRegistration: a controller tells where it listens and what it supports."""
    if world.image.metadata_version < features.METADATA_3_7_CONTROLLERS:
        return Decision(
            [],
            ControllerRegistrationResponse(
                error_code=UNSUPPORTED_VERSION.code,
                error_message="controllers register from metadata.version 3.7-IV0 on; upgrade it first",
            ),
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return Decision([world.versioned(record)], ControllerRegistrationResponse())


def decide_unregister(world: World, request: UnregisterBrokerRequest) -> Decision:
    """UnregisterBroker: forget a broker that will not come back."""
    broker = world.image.brokers.get(request.broker_id)
    if broker is None:
        return Decision(
            [],
            UnregisterBrokerResponse(
                error_code=BROKER_ID_NOT_REGISTERED.code, error_message=f"broker {request.broker_id} is not registered"
            ),
        )
    # Should the id ever come back, nobody could say whether what it then has is what it had.
    records = membership_records(world, places(world, world.index.in_sync_or_eligible(broker.id)), lost=broker.id)
    records.append(world.versioned(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)))
    return Decision(records, UnregisterBrokerResponse(), f"unregister broker {broker.id}")


def _to_leave(world: World, broker_id: int) -> Iterator[Place]:
    """The partitions that change when a broker goes: not those where it is only remembered as the last in sync."""
    for topic, index in places(world, world.index.in_sync(broker_id)):
        partition = topic.partitions[index]
        if partition.has_leader or len(partition.isr) > 1:
            yield topic, index


def leaves_in_parts(world: World, broker_id: int) -> bool:
    """Whether a broker that goes has more than `LEAVE_MAX` partitions to leave."""
    return any(True for _ in islice(_to_leave(world, broker_id), LEAVE_MAX, None))


def leave_records(world: World, broker: BrokerImage) -> list[VersionedRecord]:
    """Takes a broker out of ISRs, and moves what it leads there: the first `LEAVE_MAX` of them."""
    return membership_records(world, islice(_to_leave(world, broker.id), LEAVE_MAX), leaving=broker.id)


def fence_records(world: World, broker: BrokerImage) -> list[VersionedRecord]:
    """Takes a broker out of service: it leaves every ISR and leads nothing any more."""
    records = membership_records(world, _to_leave(world, broker.id), leaving=broker.id)
    records.append((BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED), 0))
    return records


def unfence_records(world: World, broker: BrokerImage) -> list[VersionedRecord]:
    """Takes a broker into service: leaderless partitions that it may lead get it as their leader."""
    unfenced = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCED)
    leaderless = places(world, world.index.leaderless())
    hosted = ((topic, index) for topic, index in leaderless if broker.id in topic.partitions[index].replicas)
    return [(unfenced, 0), *membership_records(world, hosted, joining=broker.id)]


def shutdown_records(world: World, broker: BrokerImage) -> list[VersionedRecord]:
    """Moves what a broker leads to others before it stops: with every heartbeat `LEAVE_MAX` partitions."""
    records: list[VersionedRecord] = []
    if not broker.in_controlled_shutdown:
        leaving = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
        )
        records.append((leaving, 1))
    return records + leave_records(world, broker)


def directory_records(
    world: World, broker: BrokerImage, offline: Iterable[Uuid], *, leaves_anyway: bool
) -> list[VersionedRecord]:
    """Takes a broker's failed directories out of service; the replicas in them leave their ISRs.

    `leaves_anyway` says that the same decision takes the broker out of every ISR.
    """
    failed = {each for each in offline if each in broker.log_dirs}
    if not failed:
        return []
    records: list[VersionedRecord] = []
    if not leaves_anyway:
        in_sync = places(world, world.index.in_sync(broker.id))
        hit = ((topic, index) for topic, index in in_sync if topic.partitions[index].directory_of(broker.id) in failed)
        records = membership_records(world, hit, leaving=broker.id)
    online = [each for each in broker.log_dirs if each not in failed]
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online)
    return [*records, (change, 2)]


def cordon_records(world: World, broker: BrokerImage, cordoned: list[Uuid] | None) -> list[VersionedRecord]:
    """Notes which directories a broker wants no new replicas in."""
    if cordoned is None or world.image.metadata_version < features.METADATA_4_3:
        return []
    if broker.cordoned_log_dirs is not None and set(cordoned) == set(broker.cordoned_log_dirs):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
    )
    return [(change, 3)]


def _ranges(found: Iterable[_NamedRange]) -> tuple[tuple[str, VersionRange], ...]:
    ranges = ((each.name, VersionRange(each.min_supported_version, each.max_supported_version)) for each in found)
    return tuple(sorted(ranges))
