"""BrokerRegistration (62), versions 0-4: register a broker with the controller.

Notes: 1 migration flag; 2 log directories; 3 the previous broker epoch; 4 features whose lowest level is 0.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, int64, message, string, struct, uint16, uuid


@message(key=62, kind="request", versions="0-4", flexible="0+")
class BrokerRegistrationRequest:
    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: Uuid = uuid()
    listeners: list[Listener] = array("Listener")
    features: list[Feature] = array("Feature")
    rack: str | None = string(nullable=True)
    is_migrating_zk_broker: bool = boolean(since=1)
    log_dirs: list[Uuid] = array(uuid, since=2, ignorable=True)
    previous_broker_epoch: int = int64(since=3, default=-1, ignorable=True)

    @struct()
    class Listener:
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    @struct()
    class Feature:
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()


@message(key=62, kind="response", versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
