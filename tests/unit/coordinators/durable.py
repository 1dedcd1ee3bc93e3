"""What of a shard's state is durable, as plain values that can be compared."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.table import GroupTable
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.group_records import group_record
from penstock.protocol.schema import schema_of


class Durable(NamedTuple):
    """Groups by id, None where a rebalance is ahead of the records; offsets as they are."""

    groups: dict[str, Any]
    offsets: dict[str, dict[tuple[str, int], Any]]


def durable(table: GroupTable) -> Durable:
    groups = {group.id: _classic(group) for group in table.groups.values() if isinstance(group, ClassicGroup)}
    return Durable(groups, {group_id: dict(held) for group_id, held in table.offsets.items()})


def _classic(group: ClassicGroup) -> Any:
    if group.state not in (State.EMPTY, State.STABLE):
        return None
    members = {
        member.id: (
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol or ""),
            member.assignment,
        )
        for member in group.members.values()
    }
    # A group in name only has no record of its own, so nobody knows since when it is empty.
    since = group.state_timestamp if group.protocol_type else None
    about = (group.state, group.protocol_type, group.protocol, group.generation, group.leader, since)
    return (*about, group.subscribed, group.static_members, members)


def round_trip(record: StateRecord) -> StateRecord:
    """The record as a reader of the log gets it."""
    number = schema_of(type(record.key)).key
    key_class, value_class = group_record(number)
    key, _ = decode(key_class, 0, encode(record.key, 0))
    if record.value is None:
        return StateRecord(key, None)
    value, _ = decode(value_class, record.value_version, encode(record.value, record.value_version))
    return StateRecord(key, value, record.value_version)
