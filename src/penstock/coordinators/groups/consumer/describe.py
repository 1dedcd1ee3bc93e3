"""ConsumerGroupDescribe (69), versions 0-1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.coordinators.groups.consumer.member import Member
from penstock.coordinators.groups.consumer.target import preferred_assignor
from penstock.model.errors import GROUP_ID_NOT_FOUND
from penstock.model.ids import Uuid
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse

if TYPE_CHECKING:
    from penstock.coordinators.groups.consumer.group import ConsumerGroup
    from penstock.metadata.image import ClusterImage

SPEAKS_CLASSIC = 0
SPEAKS_CONSUMER = 1


def described(group: ConsumerGroup, image: ClusterImage) -> ConsumerGroupDescribeResponse.DescribedGroup:
    """The group as it stands, members with what they have and what they shall have."""
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group.table, group.assignor_votes),
        members=[_member(group, member, image) for member in group.members.values()],
    )


def described_missing(group_id: str, why: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
    """A group that is not there, or is none of this protocol."""
    return ConsumerGroupDescribeResponse.DescribedGroup(
        error_code=GROUP_ID_NOT_FOUND.code, error_message=why, group_id=group_id
    )


def _member(group: ConsumerGroup, member: Member, image: ClusterImage) -> ConsumerGroupDescribeResponse.Member:
    has: dict[Uuid, set[int]] = {}
    for owned in (member.assigned, member.revoking):
        for topic_id, partitions in owned.items():
            has.setdefault(topic_id, set()).update(partitions)
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(has, image),
        target_assignment=_assignment(group.targets.get(member.id, {}), image),
        member_type=SPEAKS_CONSUMER if member.classic is None else SPEAKS_CLASSIC,
    )


def _assignment(
    partitions: Mapping[Uuid, Iterable[int]], image: ClusterImage
) -> ConsumerGroupDescribeResponse.Assignment:
    """Topics that were deleted meanwhile have no name any more and are left out."""
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id,
                topic_name=image.topics[topic_id].name,
                partitions=sorted(partitions[topic_id]),
            )
            for topic_id in sorted(partitions)
            if topic_id in image.topics
        ]
    )
