"""Metadata-log records about nodes: registration, fencing and their end.

The version of a record follows from the finalized metadata.version.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int8, int16, int32, int64, message, string, struct, uint16, uuid


@message(key=0, kind="metadata", versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(since=2)
    incarnation_id: Uuid = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array("BrokerEndpoint")
    features: list[BrokerFeature] = array("BrokerFeature")
    rack: str | None = string(nullable=True)
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(since=1)
    log_dirs: list[Uuid] = array(uuid, since=3, tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, since=4, nullable=True, default=None, tag=1)

    @struct()
    class BrokerEndpoint:
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    @struct()
    class BrokerFeature:
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()


@message(key=1, kind="metadata", versions="0", flexible="0+")
class UnregisterBrokerRecord:
    broker_id: int = int32()
    broker_epoch: int = int64()


@message(key=7, kind="metadata", versions="0", flexible="0+")
class FenceBrokerRecord:
    id: int = int32()
    epoch: int = int64()


@message(key=8, kind="metadata", versions="0", flexible="0+")
class UnfenceBrokerRecord:
    id: int = int32()
    epoch: int = int64()


@message(key=17, kind="metadata", versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8(since=1, tag=1)
    log_dirs: list[Uuid] = array(uuid, since=2, tag=2)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, since=3, nullable=True, default=None, tag=3)


@message(key=27, kind="metadata", versions="0", flexible="0+")
class RegisterControllerRecord:
    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array("ControllerEndpoint")
    features: list[ControllerFeature] = array("ControllerFeature")

    @struct()
    class ControllerEndpoint:
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    @struct()
    class ControllerFeature:
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()
