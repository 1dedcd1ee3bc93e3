"""SyncGroup, Heartbeat and LeaveGroup within a generation, and what ends one."""

from __future__ import annotations

from penstock.protocol.messages.leave_group import LeaveGroupResponse
from tests.unit.coordinators.classic.script import Script
from tests.unit.coordinators.classic.test_join import founded, pair


def rejoined() -> Script:
    """Two members that wait for an assignment of their second generation."""
    script = pair()
    script.play("""
        a join      | -
        b join      | a: generation 2 leads a b; b: generation 2
    """)
    return script


def test_members_that_the_leader_forgot_get_nothing() -> None:
    rejoined().play("""
        b sync      | -
        a sync a=x  | a: assigned x; b: assigned
    """)


def test_a_late_sync_finds_the_assignment_waiting() -> None:
    rejoined().play("""
        a sync a=x b=y      | a: assigned x
        b sync              | b: assigned y
    """)


def test_a_sync_must_name_member_generation_and_protocol() -> None:
    rejoined().play("""
        a sync group=                   | a: INVALID_GROUP_ID
        a sync group=other              | a: UNKNOWN_MEMBER_ID
        a sync id=ghost                 | a: UNKNOWN_MEMBER_ID
        a sync generation=1             | a: ILLEGAL_GENERATION
        a sync protocol=sticky          | a: INCONSISTENT_GROUP_PROTOCOL
        a sync type=connect             | a: INCONSISTENT_GROUP_PROTOCOL
        a sync protocol=none            | a: INCONSISTENT_GROUP_PROTOCOL
        a sync v=4 a=x b=y              | a: assigned x
    """)


def test_a_sync_during_the_join_phase_sends_the_member_back() -> None:
    pair().play("""
        a join      | -
        b sync      | b: REBALANCE_IN_PROGRESS
    """)


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout() -> None:
    script = rejoined()
    script.play("a sync a=x b=y | a: assigned x")
    for _ in range(7):
        script.play("""
            wait 8000   | -
            a beat      | a: NONE
            b beat      | b: NONE
        """)
    script.play("""
        wait 4000       | -
        b beat          | b: UNKNOWN_MEMBER_ID
        a join          | a: generation 3 leads a
    """)


def test_a_leader_that_never_syncs_is_removed_and_the_others_start_over() -> None:
    script = rejoined()
    script.play("b sync | -")
    for _ in range(7):
        script.play("""
            wait 8000   | -
            a beat      | a: NONE
        """)
    script.play("""
        wait 4000       | b: REBALANCE_IN_PROGRESS
        b join          | b: generation 3 leads b
    """)


def test_heartbeats_must_name_member_and_generation() -> None:
    founded().play("""
        a beat              | a: NONE
        a beat generation=0 | a: ILLEGAL_GENERATION
        a beat id=ghost     | a: UNKNOWN_MEMBER_ID
        a beat instance=7   | a: UNKNOWN_MEMBER_ID
        a beat group=other  | a: UNKNOWN_MEMBER_ID
        a beat group=       | a: INVALID_GROUP_ID
    """)


def test_a_silent_member_is_removed_and_a_commit_is_a_sign_of_life() -> None:
    pair().play("""
        wait 9000       | -
        a beat          | a: NONE
        b commit        | b: NONE
        wait 9000       | -
        a beat          | a: NONE
        wait 1000       | -
        a beat          | a: REBALANCE_IN_PROGRESS
        b beat          | b: UNKNOWN_MEMBER_ID
        a join          | a: generation 2 leads a
    """)


def test_a_member_that_waits_for_us_may_be_silent() -> None:
    script = pair()
    script.play("a join | -")
    for _ in range(7):
        script.play("""
            wait 8000   | -
            b beat      | b: REBALANCE_IN_PROGRESS
        """)
    script.play("wait 4000 | a: generation 2 leads a")


def test_a_new_member_may_wait_five_minutes_and_no_longer() -> None:
    script = Script()
    script.play("""
        a join v=3 rebalance=600000 session=1800000 | -
        wait 3000           | a: generation 1 leads a
        a sync a=x          | a: assigned x
        b join v=3          | -
        wait 299999         | -
        wait 1              | b: UNKNOWN_MEMBER_ID
    """)


def test_the_last_member_leaves_an_empty_group_of_the_next_generation() -> None:
    script = founded()
    script.play("a leave | a: NONE")
    value = script.log[-1].value
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (
        2, "consumer", None, None, [],
    )  # fmt: skip
    assert script.shard.next_deadline() == script.now.tick - 3_000 + 600_000, "no timer but the check of offsets"


def test_leaving_makes_the_others_rebalance() -> None:
    pair().play("""
        b leave         | b: NONE
        a beat          | a: REBALANCE_IN_PROGRESS
        a join          | a: generation 2 leads a
    """)


def test_a_leader_that_leaves_is_succeeded() -> None:
    pair().play("""
        a leave         | a: NONE
        b join          | b: generation 2 leads b
    """)


def test_several_members_leave_at_once_each_with_its_own_error() -> None:
    pair().play("""
        admin leave id=ghost and=a,b,ghost  | admin: UNKNOWN_MEMBER_ID NONE NONE UNKNOWN_MEMBER_ID
        a join                              | a: UNKNOWN_MEMBER_ID
    """)


def test_old_versions_have_one_error_for_the_one_member() -> None:
    script = founded()
    script.play("""
        a leave v=2 id=ghost    | a: UNKNOWN_MEMBER_ID
        a leave v=2             | a: NONE
        a leave group=other     | a: UNKNOWN_MEMBER_ID
        a leave group=          | a: INVALID_GROUP_ID
    """)
    (answer,) = script._leave("a", {"v": "2"})
    assert answer.reply == LeaveGroupResponse(error_code=25)


def test_a_pending_member_may_leave() -> None:
    founded().play("""
        b join      | b: MEMBER_ID_REQUIRED
        b leave     | b: NONE
        b join      | b: UNKNOWN_MEMBER_ID
        a join      | a: generation 2 leads a
    """)


def test_who_is_removed_while_it_waits_hears_of_it() -> None:
    rejoined().play("""
        b sync          | -
        admin leave id=ghost and=b   | admin: UNKNOWN_MEMBER_ID NONE; b: UNKNOWN_MEMBER_ID
        a beat          | a: REBALANCE_IN_PROGRESS
    """)


def test_commits_must_come_from_a_member_of_this_generation() -> None:
    rejoined().play("""
        a commit                            | a: REBALANCE_IN_PROGRESS
        b sync                              | -
        a sync a=x b=y                      | a: assigned x; b: assigned y
        a commit                            | a: NONE
        a commit generation=1               | a: ILLEGAL_GENERATION
        a commit id=ghost                   | a: UNKNOWN_MEMBER_ID
        admin commit                        | admin: UNKNOWN_MEMBER_ID
        a join                              | -
        b commit                            | b: NONE
        admin commit group=other            | admin: NONE
        admin commit group=third generation=1 v=8   | admin: ILLEGAL_GENERATION
        admin commit group=third generation=1       | admin: GROUP_ID_NOT_FOUND
    """)


def test_anybody_may_commit_for_an_empty_group() -> None:
    founded().play("""
        a leave             | a: NONE
        admin commit at=7   | admin: NONE
    """)


def test_a_reload_keeps_generation_members_and_assignment() -> None:
    pair().play("""
        reload      | -
        a beat      | a: NONE
        b sync      | b: assigned y
        wait 9999   | -
        a beat      | a: NONE
        wait 1      | -
        a beat      | a: REBALANCE_IN_PROGRESS
    """)


def test_a_reload_forgets_the_rebalance_under_way() -> None:
    script = pair()
    script.play("""
        c join v=3      | -
        a join          | -
    """)
    answers = script.reload()
    assert sorted(answer.token[0] for answer in answers) == ["a", "c"]
    assert {answer.reply.error_code for answer in answers} == {16}
    script.play("""
        b beat          | b: NONE
        a beat          | a: NONE
        c join v=3      | -
        a join          | -
        b join          | a: generation 2 leads a b c; b: generation 2; c: generation 2
        b sync          | -
        reload          | b: NOT_COORDINATOR
        b beat          | b: ILLEGAL_GENERATION
    """)
