"""Takes in the records of classic groups: the only place where what is durable of a group changes."""

from __future__ import annotations

from penstock.coordinators.groups.classic.group import ClassicGroup, State
from penstock.coordinators.groups.classic.member import ClassicMember
from penstock.coordinators.groups.classic.timing import forget
from penstock.coordinators.groups.table import GroupTable
from penstock.protocol.disk.classic_group_records import GroupMetadataKey, GroupMetadataValue


def apply(table: GroupTable, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """The same for a record of the log and for one that was just decided.

    A group that is rebalancing is ahead of what its records say and stays so, with one exception: the record of the
    generation that it is completing makes it stable. During a load groups are only ever empty or stable.
    """
    known = table.groups.get(key.group)
    if value is None:
        if isinstance(known, ClassicGroup):
            forget(known)
            del table.groups[key.group]
        return
    if not isinstance(known, ClassicGroup):
        known = ClassicGroup(key.group, table.timers, state_timestamp=-1)
        table.groups[key.group] = known
    if known.state is State.PREPARING:
        return
    if known.state is State.COMPLETING and known.generation != value.generation:
        return
    _take_over(known, value)


def _take_over(group: ClassicGroup, value: GroupMetadataValue) -> None:
    members = [_member(group, value, each) for each in value.members]
    group.previous_state, group.state = group.state, State.STABLE if members else State.EMPTY
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol
    group.generation = value.generation
    group.leader = value.leader
    group.state_timestamp = value.current_state_timestamp
    group.members = {member.id: member for member in members}
    group.static_members = {m.instance_id: m.id for m in members if m.instance_id is not None}
    group.supported = {}
    for member in members:
        for name, _ in member.protocols:
            group.supported[name] = group.supported.get(name, 0) + 1
    group.note_subscriptions()


def _member(group: ClassicGroup, value: GroupMetadataValue, said: GroupMetadataValue.MemberMetadata) -> ClassicMember:
    """The member as the record has it. One that is known and the same keeps the further protocols it can do."""
    loaded = ClassicMember(
        group.id,
        said.member_id,
        instance_id=said.group_instance_id,
        client_id=said.client_id,
        client_host=said.client_host,
        rebalance_timeout_ms=said.session_timeout if said.rebalance_timeout == -1 else said.rebalance_timeout,
        session_timeout_ms=said.session_timeout,
        protocols=((value.protocol or "", bytes(said.subscription)),),
        assignment=bytes(said.assignment),
    )
    known = group.members.get(said.member_id)
    if known is None or not _same(known, loaded):
        return loaded
    known.assignment = loaded.assignment
    return known


def _same(known: ClassicMember, loaded: ClassicMember) -> bool:
    return (
        loaded.protocols[0] in known.protocols
        and known.session_timeout_ms == loaded.session_timeout_ms
        and known.rebalance_timeout_ms == loaded.rebalance_timeout_ms
        and (known.instance_id, known.client_id, known.client_host)
        == (loaded.instance_id, loaded.client_id, loaded.client_host)
    )
