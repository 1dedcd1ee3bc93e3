"""JoinGroup of classic groups: who gets a place, and when."""

from __future__ import annotations

import pytest

from penstock.protocol.messages.join_group import JoinGroupResponse
from tests.unit.coordinators.classic.script import GROUP, Script

FOUNDED = """
    a join          | a: MEMBER_ID_REQUIRED
    a join          | -
    wait 3000       | a: generation 1 leads a
    a sync a=x      | a: assigned x
"""
PAIR = """
    a join          | a: MEMBER_ID_REQUIRED
    b join          | b: MEMBER_ID_REQUIRED
    a join          | -
    b join          | -
    wait 6000       | a: generation 1 leads a b; b: generation 1
    b sync          | -
    a sync a=x b=y  | a: assigned x; b: assigned y
"""


def founded(**properties: int) -> Script:
    script = Script(**properties)
    script.play(FOUNDED)
    return script


def pair(**properties: int) -> Script:
    script = Script(**properties)
    script.play(PAIR)
    return script


def test_a_member_gets_its_id_then_its_place_then_its_assignment() -> None:
    script = founded()
    assert script.ids["a"] == "client-a-00000001-0000-0000-0000-000000000000"


def test_old_clients_join_in_one_step() -> None:
    Script().play("""
        a join v=3          | -
        wait 3000           | a: generation 1 leads a
        a sync v=2 a=x      | a: assigned x
    """)


def test_the_first_rebalance_waits_longer_as_long_as_members_come() -> None:
    Script().play("""
        a join v=3          | -
        wait 2000           | -
        b join v=3          | -
        wait 2000           | -
        c join v=3          | -
        wait 4999           | -
        wait 1              | a: generation 1 leads a b c; b: generation 1; c: generation 1
    """)


def test_the_first_rebalance_never_waits_beyond_the_rebalance_timeout() -> None:
    Script().play("""
        a join v=3 rebalance=5000   | -
        wait 2000                   | -
        b join v=3 rebalance=5000   | -
        wait 2000                   | -
        c join v=3 rebalance=5000   | -
        wait 999                    | -
        wait 1                      | a: generation 1 leads a b c; b: generation 1; c: generation 1
    """)


def test_no_delay_means_the_first_member_is_in_at_once() -> None:
    Script(group_initial_rebalance_delay_ms=0).play("""
        a join v=3  | -
        wait 0      | a: generation 1 leads a
    """)


def test_a_new_member_makes_the_others_rejoin_and_the_leader_stays() -> None:
    founded().play("""
        b join          | b: MEMBER_ID_REQUIRED
        b join          | -
        a beat          | a: REBALANCE_IN_PROGRESS
        a join          | a: generation 2 leads a b; b: generation 2
        b sync          | -
        a beat          | a: NONE
        a sync a=x b=y  | a: assigned x; b: assigned y
        b beat          | b: NONE
    """)


def test_a_pending_member_holds_up_the_join_until_its_session_ends() -> None:
    founded().play("""
        b join          | b: MEMBER_ID_REQUIRED
        a join          | -
        wait 9999       | -
        wait 1          | a: generation 2 leads a
    """)


def test_members_that_do_not_rejoin_in_time_are_removed() -> None:
    script = pair()
    script.play("""
        c join v=3 rebalance=8000       | -
        a join rebalance=8000           | -
        wait 9999                       | -
    """)
    # The timeout that counts is the longest of all members at the time: b still allows a minute, but is silent.
    script.play("""
        wait 1                          | a: generation 2 leads a c; c: generation 2
        b beat                          | b: UNKNOWN_MEMBER_ID
    """)


def test_a_leader_that_does_not_rejoin_is_succeeded_by_one_who_has() -> None:
    script = pair()
    script.play("""
        c join v=3          | -
        b join              | -
    """)
    for _ in range(7):
        script.play("""
            wait 8000       | -
            a beat          | a: REBALANCE_IN_PROGRESS
        """)
    script.play("""
        wait 4000           | b: generation 2 leads b c; c: generation 2
        a beat              | a: UNKNOWN_MEMBER_ID
    """)


def test_a_follower_that_rejoins_unchanged_stays_in_the_generation() -> None:
    pair().play("""
        b join          | b: generation 1
        b sync          | b: assigned y
        a beat          | a: NONE
    """)


def test_a_follower_with_another_subscription_starts_a_rebalance() -> None:
    pair().play("""
        b join topics=t,u   | -
        a join              | a: generation 2 leads a b; b: generation 2
    """)


def test_a_leader_that_rejoins_starts_a_rebalance() -> None:
    pair().play("""
        a join      | -
        b join      | a: generation 2 leads a b; b: generation 2
    """)


def test_a_member_that_missed_its_reply_hears_it_again_before_the_sync() -> None:
    pair().play("""
        a join              | -
        b join              | a: generation 2 leads a b; b: generation 2
        b join              | b: generation 2
        a join              | a: generation 2 leads a b
        b sync              | -
        b join topics=u     | b: REBALANCE_IN_PROGRESS
        a join              | a: generation 3 leads a b; b: generation 3
    """)


def test_a_second_join_takes_the_place_of_the_first() -> None:
    pair().play("""
        a join      | -
        a join      | a: REBALANCE_IN_PROGRESS
        b join      | a: generation 2 leads a b; b: generation 2
    """)


@pytest.mark.parametrize("session", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session: int) -> None:
    Script().play(f"a join session={session} | a: INVALID_SESSION_TIMEOUT")


def test_bad_joins_are_refused_by_name() -> None:
    Script().play("""
        a join group=               | a: INVALID_GROUP_ID
        a join id=ghost             | a: UNKNOWN_MEMBER_ID
        a join protocols=none       | a: INCONSISTENT_GROUP_PROTOCOL
        a join type=none            | a: INCONSISTENT_GROUP_PROTOCOL
        a join                      | a: MEMBER_ID_REQUIRED
        b join id=ghost             | b: UNKNOWN_MEMBER_ID
    """)


def test_a_member_must_share_type_and_one_protocol_with_all_others() -> None:
    founded().play("""
        b join type=connect         | b: INCONSISTENT_GROUP_PROTOCOL
        b join protocols=sticky     | b: INCONSISTENT_GROUP_PROTOCOL
        b join protocols=sticky,range   | b: MEMBER_ID_REQUIRED
    """)


def test_the_protocol_with_the_most_votes_wins() -> None:
    script = Script()
    script.play("""
        a join v=3 protocols=range,sticky       | -
        b join v=3 protocols=sticky,range       | -
        c join v=3 protocols=sticky,odd,range   | -
        wait 6000       | a: generation 1 leads a b c; b: generation 1; c: generation 1
        a sync protocol=range   | a: INCONSISTENT_GROUP_PROTOCOL
        a sync protocol=sticky  | a: assigned
    """)


def test_a_full_group_takes_nobody_in() -> None:
    script = pair(group_max_size=2)
    script.play("""
        c join          | c: GROUP_MAX_SIZE_REACHED
        b join          | b: generation 1
        a join          | -
        c join          | c: MEMBER_ID_REQUIRED
        b join          | -
        c join          | c: GROUP_MAX_SIZE_REACHED
    """)


def test_a_group_over_a_lowered_limit_sheds_the_last_to_rejoin() -> None:
    script = pair()
    script.settings = Script(group_max_size=1).settings
    script.play("""
        reload      | -
        a beat      | a: REBALANCE_IN_PROGRESS
        b beat      | b: REBALANCE_IN_PROGRESS
        b join      | -
        a join      | a: GROUP_MAX_SIZE_REACHED
        wait 60000  | b: generation 2 leads b
    """)


def test_a_new_group_is_written_down_before_its_first_member_is() -> None:
    script = Script()
    script.do("a join")
    (record,) = script.log
    assert (record.key.group, record.value_version) == (GROUP, 3)
    value = record.value
    assert (value.protocol_type, value.generation, value.protocol, value.leader, value.members) == (
        "",
        0,
        None,
        None,
        [],
    )
    assert value.current_state_timestamp == script.now.wall


def test_names_of_protocols_are_null_only_where_that_can_be_said() -> None:
    script = founded()
    for version, expected in ((6, ""), (7, None)):
        (answer,) = script._join("b", {"id": "ghost", "v": str(version)})
        assert isinstance(answer.reply, JoinGroupResponse)
        assert answer.reply.protocol_name == expected


def test_a_member_of_version_0_gets_its_session_timeout_to_rejoin() -> None:
    script = Script()
    script.play("""
        a join v=0 session=7000                 | -
        wait 3000                               | a: generation 1 leads a
        a sync v=0 a=x                          | a: assigned x
        b join v=0 session=30000                | -
    """)
    script.play("""
        wait 7000   | b: generation 2 leads b
    """)


def test_a_pending_member_cannot_turn_static() -> None:
    founded().play("""
        b join                  | b: MEMBER_ID_REQUIRED
        b join instance=1       | b: UNKNOWN_SERVER_ERROR
        b join                  | -
    """)


def test_a_protocol_named_twice_counts_once() -> None:
    Script().play("""
        a join v=3 protocols=range,range,sticky     | -
        b join v=3 protocols=range                  | -
        wait 6000                                   | a: generation 1 leads a b; b: generation 1
        a sync a=x b=y                              | a: assigned x
    """)
