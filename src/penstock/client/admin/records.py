"""Records: deleting the oldest of a partition by moving its log start."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.admin.session import Results, Session, partition_words, refused
from penstock.client.errors import ClientError
from penstock.model.errors import OFFSET_OUT_OF_RANGE, POLICY_VIOLATION
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.delete_records import DeleteRecordsRequest

_WORDS = {
    OFFSET_OUT_OF_RANGE.code: "the offset lies beyond its high watermark",
    POLICY_VIOLATION.code: "only topics with cleanup.policy=delete can be trimmed",
}


async def delete_records(session: Session, before: Mapping[TopicPartition, int]) -> Results[TopicPartition, int]:
    """Deletes what lies before an offset (-1: everything); answers the new log starts."""

    async def ask(node: int, led: list[TopicPartition]) -> Mapping[TopicPartition, int | ClientError]:
        of_topic: dict[str, list[DeleteRecordsRequest.DeleteRecordsPartition]] = {}
        for item in led:
            of_topic.setdefault(item.topic, []).append(
                DeleteRecordsRequest.DeleteRecordsPartition(partition_index=item.partition, offset=before[item])
            )
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=partitions)
                for name, partitions in of_topic.items()
            ],
            timeout_ms=session.request_timeout_ms,
        )
        outcomes: dict[TopicPartition, int | ClientError] = {}
        for topic in (await session.broker(node, request)).topics:
            for found in topic.partitions:
                item = TopicPartition(topic.name, found.partition_index)
                where = partition_words(item)
                words = f"{where}: {_WORDS.get(found.error_code, 'it cannot be trimmed')}"
                outcomes[item] = refused(found.error_code, words, where) if found.error_code else found.low_watermark
        return outcomes

    return await session.by_leader(before, ask)
