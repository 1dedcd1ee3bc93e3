"""DescribeGroups (15), versions 0-6, of classic groups."""

from __future__ import annotations

from typing import Final

from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.model.errors import GROUP_ID_NOT_FOUND
from penstock.protocol.messages.describe_groups import DescribeGroupsResponse

NOT_FOUND_SINCE: Final = 6
DEAD: Final = "Dead"


def described(group: ClassicGroup) -> DescribeGroupsResponse.DescribedGroup:
    """The group and its members. What members said of themselves is shown once a protocol holds for all of them."""
    stable = group.state is State.STABLE
    protocol = (group.protocol if stable else "") or ""
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group.id,
        group_state=group.state_name(),
        protocol_type=group.protocol_type,
        protocol_data=protocol,
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def described_missing(group_id: str, why: str, api_version: int) -> DescribeGroupsResponse.DescribedGroup:
    """A group that is not there, or not a classic one: an error since version 6, and before that just Dead."""
    if api_version < NOT_FOUND_SINCE:
        return DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=DEAD)
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group_id, group_state=DEAD, error_code=GROUP_ID_NOT_FOUND.code, error_message=why
    )
