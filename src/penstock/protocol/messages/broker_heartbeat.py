"""BrokerHeartbeat (63), versions 0-2: keep a broker's session alive and ask to be unfenced or shut down.

Notes: 1 offline directories; 2 cordoned directories.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, int64, message, uuid


@message(key=63, kind="request", versions="0-2", flexible="0+")
class BrokerHeartbeatRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[Uuid] = array(uuid, since=1, tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, since=2, nullable=True, default=None, tag=1)


@message(key=63, kind="response", versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
