"""How a partition changes: who leads it, who is in sync, who may lead when nobody is, and when a reassignment is done.

Everything that changes a partition goes through `plan_change`, so the invariants are kept in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from penstock.metadata.entities import NO_LEADER, RECOVERING, PartitionImage
from penstock.model.ids import DIRECTORY_UNASSIGNED, Uuid
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord

NO_CHANGE = -2


class Election(Enum):
    """How far an election may go: the current leader first, the preferred one first, or anybody alive."""

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(slots=True)
class Change:
    """What a partition shall become; what is None stays as it is.

    `acceptable` says who may lead now. `lost` are replicas that came back without what they had: they are no longer
    eligible. `directories` names directories by replica, `default_directory` gives one for a replica that has none;
    old levels of metadata.version have no place for them (`tells_directories`).
    """

    acceptable: Callable[[int], bool]
    min_isr: int
    elr_enabled: bool
    election: Election = Election.ONLINE
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    lost: frozenset[int] = frozenset()
    recovery_state: int | None = None
    directories: Mapping[int, Uuid] = field(default_factory=dict)
    default_directory: Callable[[int], Uuid] = lambda _replica: DIRECTORY_UNASSIGNED
    bump_epoch_on_shrink: bool = False
    tells_directories: bool = True


def plan_change(topic_id: Uuid, index: int, old: PartitionImage, change: Change) -> PartitionChangeRecord | None:
    """The record that brings partition `index` to what `change` asks for; None when it is there already."""
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=index)
    isr, replicas, adding, removing = _finish_reassignment(
        old.isr if change.isr is None else change.isr,
        old.replicas if change.replicas is None else change.replicas,
        old.adding if change.adding is None else change.adding,
        old.removing if change.removing is None else change.removing,
    )
    elr = _eligible(old, isr, replicas, change)
    leader, unclean = _elect(old, isr, elr, replicas, change)
    if leader != old.leader:
        record.leader = leader
        if unclean:
            isr, elr = (leader,), ()
            if old.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING
        elif leader in elr:
            isr, elr = (leader,), tuple(each for each in elr if each != leader)
        # Alone in sync, the new leader may be all that a reassignment waited for: nobody would report that later.
        isr, replicas, adding, removing = _finish_reassignment(isr, replicas, adding, removing)
        elr = tuple(each for each in elr if each in replicas)
    if not isr and not change.elr_enabled:
        # Without eligible replicas the last in-sync member is the only memory of who has the data.
        isr = old.isr
    _write_membership(record, old, isr, elr, change)
    _write_assignment(record, old, replicas, adding, removing, change)
    if change.recovery_state is not None and change.recovery_state != old.leader_recovery_state:
        record.leader_recovery_state = change.recovery_state
    return None if _says_nothing(record) else record


def was_unclean(old: PartitionImage, change: PartitionChangeRecord) -> bool:
    """Whether a change lets a replica lead that was not known to have every committed record."""
    return change.leader >= 0 and change.leader != old.leader and change.leader not in (*old.isr, *old.elr)


def _finish_reassignment(
    isr: tuple[int, ...], replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A reassignment is done when all replicas that shall stay are in sync; then the others go."""
    if not adding and not removing:
        return isr, replicas, adding, removing
    staying = tuple(each for each in replicas if each not in removing)
    if not staying or not set(staying) <= set(isr):
        return isr, replicas, adding, removing
    return tuple(each for each in isr if each not in removing), staying, (), ()


def _eligible(old: PartitionImage, isr: tuple[int, ...], replicas: tuple[int, ...], change: Change) -> tuple[int, ...]:
    """Who may lead when nobody is in sync: whoever left the ISR while it was too small, unless it lost its log.

    A replica that a reassignment takes away does not come back by this door.
    """
    if not change.elr_enabled or len(isr) >= change.min_isr:
        return ()
    candidates = sorted({*old.elr, *old.isr})
    return tuple(each for each in candidates if each in replicas and each not in isr and each not in change.lost)


def _elect(
    old: PartitionImage, isr: tuple[int, ...], elr: tuple[int, ...], replicas: tuple[int, ...], change: Change
) -> tuple[int, bool]:
    """(who leads, whether that can lose records)."""

    def valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in elr)) and change.acceptable(replica)

    order = [old.leader, *replicas]
    if change.election is Election.PREFERRED:
        order = [replicas[0], old.leader, *replicas[1:]]
    for replica in order:
        if valid(replica):
            return replica, False
    if change.elr_enabled and not isr and not elr and len(old.last_known_elr) == 1:
        # Nobody is known to have every committed record; the last leader had them when it went.
        last = old.last_known_elr[0]
        if change.acceptable(last):
            return last, True
    if change.election is Election.UNCLEAN:
        for replica in replicas:
            if change.acceptable(replica):
                return replica, True
    return NO_LEADER, False


def _write_membership(
    record: PartitionChangeRecord, old: PartitionImage, isr: tuple[int, ...], elr: tuple[int, ...], change: Change
) -> None:
    if isr != old.isr:
        record.isr = list(isr)
    if elr != old.elr:
        record.eligible_leader_replicas = list(elr)
    if change.bump_epoch_on_shrink and record.leader == NO_CHANGE and not set(old.isr) <= set(isr):
        record.leader = old.leader
    if not change.elr_enabled:
        return
    led = old.leader if record.leader == NO_CHANGE else record.leader
    if led == NO_LEADER and old.leader != NO_LEADER and old.last_known_elr != (old.leader,):
        # Also where somebody is still in sync whose directory is offline: nobody else is known when that one goes too.
        record.last_known_elr = [old.leader]
    elif led != NO_LEADER and old.last_known_elr:
        record.last_known_elr = []


def _write_assignment(
    record: PartitionChangeRecord,
    old: PartitionImage,
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    change: Change,
) -> None:
    # Most changes are about who is in sync, and come by the thousand when a broker goes.
    if change.tells_directories and (replicas is not old.replicas or change.directories):
        known = {**dict(zip(old.replicas, old.directories, strict=False)), **change.directories}
        directories = tuple(known[each] if each in known else change.default_directory(each) for each in replicas)
        if directories != old.directories:
            record.directories = list(directories)
    if replicas != old.replicas:
        record.replicas = list(replicas)
        if record.leader == NO_CHANGE and not set(old.replicas) <= set(replicas):
            # A removed replica must not go on fetching or leading in the old epoch.
            record.leader = old.leader
    if adding != old.adding:
        record.adding_replicas = list(adding)
    if removing != old.removing:
        record.removing_replicas = list(removing)


def _says_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_CHANGE
        and record.leader_recovery_state < 0
        and not any(
            value is not None
            for value in (
                record.isr,
                record.replicas,
                record.removing_replicas,
                record.adding_replicas,
                record.directories,
                record.eligible_leader_replicas,
                record.last_known_elr,
            )
        )
    )
