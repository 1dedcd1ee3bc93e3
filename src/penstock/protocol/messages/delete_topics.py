"""DeleteTopics (20), versions 1-6: delete topics.

Notes: 2 throttle time in use; 4 flexible; 5 error text, may be throttled; 6 also by topic id.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, string, struct, uuid


@message(key=20, kind="request", versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = array("DeleteTopicState", since=6)
    topic_names: list[str] = array(string, until=5, ignorable=True)
    timeout_ms: int = int32()

    @struct(versions="6+")
    class DeleteTopicState:
        name: str | None = string(nullable=True, default=None)
        topic_id: Uuid = uuid()


@message(key=20, kind="response", versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: int = int32(ignorable=True)
    responses: list[DeletableTopicResult] = array("DeletableTopicResult")

    @struct()
    class DeletableTopicResult:
        name: str | None = string(nullable="6+")
        topic_id: Uuid = uuid(since=6, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(since=5, nullable=True, default=None, ignorable=True)
