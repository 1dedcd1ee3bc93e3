"""TxnOffsetCommit, with members of both group protocols and with nobody."""

from __future__ import annotations

from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.protocol.messages.sync_group import SyncGroupRequest
from tests.compat.transactions.looking import look
from tests.compat.transactions.scripts.adding import WRONG
from tests.compat.transactions.scripts.table import INT32_MAX, NOBODY, script
from tests.compat.transactions.stage import Stage

API = "TxnOffsetCommit"
LONG_MS = 1_700_000


@script(API)
async def without_being_added(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.commit_offsets(version)
    await stage.end(4)


@script(API)
async def of_an_unknown_id(stage: Stage, version: int) -> None:
    for name in (None, ""):
        await stage.commit_offsets(version, name=name, pid=NOBODY, epoch=0)
        await stage.commit_offsets(version, name=name, pid=-1, epoch=-1)


@script(API)
async def by_a_wrong_producer(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.init()
    for pid, epoch in WRONG:
        await stage.commit_offsets(version, pid=pid, epoch=epoch)
    await stage.add_offsets()
    for pid, epoch in WRONG:
        await stage.commit_offsets(version, pid=pid, epoch=epoch)
    await stage.commit_offsets(version)
    for pid, epoch in WRONG:
        await stage.commit_offsets(version, pid=pid, epoch=epoch)


@script(API)
async def by_a_fenced_producer(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add_offsets()
    await stage.commit_offsets(version)
    old = stage.epoch
    await stage.init()
    await stage.commit_offsets(version, epoch=old)
    await stage.add_offsets()
    await stage.commit_offsets(version, epoch=old)


@script(API)
async def of_another_group_than_was_added(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add_offsets()
    for number in range(4):
        await stage.commit_offsets(version, group=f"{stage.group}-{number}")
    await stage.end(4, commit=False)


@script(API)
async def partitions_that_do_not_exist(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add_offsets()
    for offsets in (
        {"missing": [(0, 1)]},
        {"": [(0, 1)]},
        {stage.topic: [(2, 1)]},
        {stage.topic: [(-1, 1), (0, 5)]},
        {stage.topic: [(INT32_MAX, 1), (1, 6)], "missing": [(0, 1)]},
        {OFFSETS_TOPIC: [(0, 1)]},
        {stage.topic: []},
        {},
    ):
        await stage.commit_offsets(version, offsets=offsets)
    await stage.end(4)


@script(API)
async def odd_offsets_and_words(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add_offsets()
    for offset in (-1, -2, 0, (1 << 62)):
        await stage.commit_offsets(version, offsets={stage.topic: [(0, offset)]})
    for metadata in (None, "", "m" * 4_096, "m" * 4_097):
        await stage.commit_offsets(version, metadata=metadata)
    await stage.commit_offsets(version, leader_epoch=5)
    await stage.commit_offsets(version, offsets={stage.topic: [(0, 1), (0, 2)]})
    await stage.end(4)


@script(API)
async def an_empty_group(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add_offsets(group="")
    await stage.commit_offsets(version, group="")
    await stage.end(4, commit=False)


@script(API)
async def committed_and_aborted(stage: Stage, version: int) -> None:
    for end in (4, 5):
        for commit in (True, False):
            await stage.init()
            await stage.add_offsets()
            await stage.commit_offsets(version, offsets={stage.topic: [(0, stage.epoch), (1, 1)]})
            await look(stage)
            await stage.end(end, commit=commit)
            await look(stage)


@script(API)
async def after_each_end(stage: Stage, version: int) -> None:
    for end in (4, 5):
        for commit in (True, False):
            await stage.init()
            await stage.add_offsets()
            await stage.commit_offsets(version)
            before = stage.epoch
            await stage.end(end, commit=commit)
            await stage.commit_offsets(version, epoch=before)
            await stage.commit_offsets(version)
            await look(stage)


@script(API)
async def beside_plain_commits(stage: Stage, version: int) -> None:
    """The later written wins, not the later committed; a plain deletion takes what is pending with it."""
    await _plain(stage, 3)
    await stage.init()
    await stage.add_offsets()
    await stage.commit_offsets(version)
    await _plain(stage, 12)
    await look(stage)
    await stage.end(4)
    await look(stage)
    await stage.add_offsets()
    await stage.commit_offsets(version, offsets={stage.topic: [(0, 30), (1, 31)]})
    made = OffsetDeleteRequest
    part = made.OffsetDeleteRequestPartition(partition_index=0)
    topics = [made.OffsetDeleteRequestTopic(name=stage.topic, partitions=[part])]
    await stage.ask(made(group_id=stage.group, topics=topics), 0)
    await look(stage)
    await stage.end(4)


async def _plain(stage: Stage, offset: int) -> None:
    made = OffsetCommitRequest
    part = made.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [made.OffsetCommitRequestTopic(name=stage.topic, partitions=[part])]
    await stage.ask(made(group_id=stage.group, generation_id_or_member_epoch=-1, topics=topics), 8)


# -- members

_MEMBERS: tuple[dict[str, object], ...] = (
    {"generation": 1, "member": "stranger"},
    {"generation": 0},
    {"generation": 5},
    {"generation": -1, "member": "stranger"},
    {"generation": -2, "member": ""},
    {"generation": 1, "instance": "static"},
    {"generation": -1, "instance": "static"},
    {"generation": -1, "instance": ""},
    {},
)


async def _by_everybody(stage: Stage, version: int, *own: dict[str, object]) -> None:
    await stage.init()
    await stage.add_offsets()
    for member in (*_MEMBERS, *own):
        await stage.commit_offsets(version, **member)  # type: ignore[arg-type]
    await look(stage)
    await stage.end(4)


@script(API, since=3)
async def members_of_no_group(stage: Stage, version: int) -> None:
    for number, member in enumerate(_MEMBERS):
        stage.group = f"group-of-{stage.id}-{number}"
        await stage.init()
        await stage.add_offsets()
        await stage.commit_offsets(version, **member)  # type: ignore[arg-type]
        await stage.end(4)
        await look(stage)


@script(API, since=3)
async def members_of_a_group_that_only_committed(stage: Stage, version: int) -> None:
    await _plain(stage, 3)
    await _by_everybody(stage, version)


async def _joined(stage: Stage, *, instance: str | None = None, sync: bool = True) -> tuple[str, int]:
    made = JoinGroupRequest
    protocol = made.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = made(
        group_id=stage.group,
        session_timeout_ms=LONG_MS,
        rebalance_timeout_ms=LONG_MS,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[protocol],
    )
    told = await stage.ask(request, 7)
    if told.member_id and instance is None:
        request.member_id = told.member_id
        told = await stage.ask(request, 7)
    assert told.error_code == 0, told
    if sync:
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=told.member_id, assignment=b"all")
        await stage.ask(
            SyncGroupRequest(
                group_id=stage.group,
                generation_id=told.generation_id,
                member_id=told.member_id,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[assignment],
            ),
            5,
        )
    return told.member_id, told.generation_id


@script(API, since=3)
async def members_of_a_classic_group(stage: Stage, version: int) -> None:
    member, generation = await _joined(stage)
    await _by_everybody(
        stage,
        version,
        {"generation": generation, "member": member},
        {"generation": generation + 1, "member": member},
        {"generation": generation - 1, "member": member},
        {"generation": -1, "member": member},
        {"generation": generation, "member": ""},
        {"generation": generation, "member": member, "instance": "static"},
    )
    made = LeaveGroupRequest
    leaving = [made.MemberIdentity(member_id=member)]
    await stage.ask(made(group_id=stage.group, members=leaving), 4)
    await _by_everybody(stage, version, {"generation": generation, "member": member})


@script(API, since=3)
async def static_members_of_a_classic_group(stage: Stage, version: int) -> None:
    member, generation = await _joined(stage, instance="static")
    await _by_everybody(
        stage,
        version,
        {"generation": generation, "member": member, "instance": "static"},
        {"generation": generation, "member": "stranger", "instance": "static"},
        {"generation": generation, "member": member, "instance": "another"},
        {"generation": generation + 1, "member": member, "instance": "static"},
        {"generation": generation, "member": member},
    )


@script(API, since=3)
async def members_while_a_classic_group_rebalances(stage: Stage, version: int) -> None:
    member, generation = await _joined(stage, sync=False)
    await _by_everybody(
        stage,
        version,
        {"generation": generation, "member": member},
        {"generation": generation - 1, "member": member},
    )


@script(API, since=3)
async def members_of_a_consumer_group(stage: Stage, version: int) -> None:
    made = ConsumerGroupHeartbeatRequest
    member = f"member-of-{stage.id}"
    joining = made(
        group_id=stage.group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=LONG_MS,
        subscribed_topic_names=[stage.topic],
        topic_partitions=[],
    )
    told = await stage.ask(joining, 1)
    epoch = told.member_epoch
    own = (
        {"generation": epoch, "member": member},
        {"generation": epoch + 1, "member": member},
        {"generation": epoch - 1, "member": member},
        {"generation": 0, "member": member},
        {"generation": -1, "member": member},
        {"generation": epoch, "member": ""},
        {"generation": epoch, "member": member, "instance": "static"},
    )
    await _by_everybody(stage, version, *own)
    given = [
        made.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
        for each in told.assignment.topic_partitions
    ]
    beat = made(group_id=stage.group, member_id=member, member_epoch=epoch, topic_partitions=given)
    beat.subscribed_topic_names = [stage.topic, "another"]
    changed = await stage.ask(beat, 1)
    await _by_everybody(stage, version, *own, {"generation": changed.member_epoch, "member": member})
    leaving = made(group_id=stage.group, member_id=member, member_epoch=-1)
    await stage.ask(leaving, 1)
    await _by_everybody(stage, version, *own)
