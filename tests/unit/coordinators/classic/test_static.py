"""Static members: an instance keeps its place while it is away for less than a session."""

from __future__ import annotations

from tests.unit.coordinators.classic.script import Script

PAIR = """
    a join instance=1   | -
    b join instance=2   | -
    wait 6000           | a: generation 1 leads a b; b: generation 1
    b sync              | -
    a sync a=x b=y      | a: assigned x; b: assigned y
"""


def pair() -> Script:
    script = Script()
    script.play(PAIR)
    return script


def test_a_static_member_needs_no_second_join_and_is_named_after_its_instance() -> None:
    assert pair().ids["b"] == "2-00000002-0000-0000-0000-000000000000"


def test_a_restarted_follower_keeps_generation_and_assignment() -> None:
    pair().play("""
        b join id=none instance=2   | b: generation 1
        b sync                      | b: assigned y
        a beat                      | a: NONE
    """)


def test_a_restarted_leader_skips_the_assignment() -> None:
    pair().play("""
        a join id=none instance=1   | a: generation 1 leads a b skip
        a sync                      | a: assigned x
        b beat                      | b: NONE
    """)


def test_a_restarted_leader_of_an_old_client_is_told_that_another_leads() -> None:
    script = pair()
    before = script.ids["a"]
    (answer,) = script._join("a", {"id": "", "instance": "1", "v": "8"})
    assert (answer.reply.leader, answer.reply.members, answer.reply.skip_assignment) == (before, [], False)
    assert answer.reply.member_id == script.shard.table.groups["g"].leader  # type: ignore[attr-defined]  # classic


def test_the_former_incarnation_is_fenced() -> None:
    script = pair()
    former = script.ids["b"]
    script.play(f"""
        b join id=none instance=2           | b: generation 1
        b beat id={former}                  | b: FENCED_INSTANCE_ID
        b sync id={former}                  | b: FENCED_INSTANCE_ID
        b commit id={former}                | b: FENCED_INSTANCE_ID
        b leave id={former}                 | b: FENCED_INSTANCE_ID
        b join id={former} instance=2       | b: FENCED_INSTANCE_ID
        b beat                              | b: NONE
    """)


def test_what_the_former_incarnation_waits_for_is_fenced_too() -> None:
    pair().play("""
        a join instance=1                   | -
        a join id=none instance=1           | a: FENCED_INSTANCE_ID
        b join instance=2                   | a: generation 2 leads a b; b: generation 2
        b sync                              | -
        b join id=none instance=2           | b: FENCED_INSTANCE_ID
        a join instance=1                   | a: generation 3 leads a b; b: generation 3
    """)


def test_another_choice_of_protocol_rebalances() -> None:
    script = Script()
    script.play("""
        a join instance=1 protocols=range,sticky    | -
        wait 3000                                   | a: generation 1 leads a
        a sync a=x                                  | a: assigned x
        a join id=none instance=1 protocols=sticky,range    | a: generation 2 leads a
    """)


def test_a_static_member_keeps_its_place_in_a_rebalance_that_it_misses() -> None:
    script = pair()
    script.play(
        """
        c join v=4                  | c: MEMBER_ID_REQUIRED
        c join                      | -
        a join instance=1           | -
        wait 9999                   | -
        b beat                      | b: REBALANCE_IN_PROGRESS
    """
    )
    for _ in range(6):
        script.play("""
            wait 7000               | -
            b beat                  | b: REBALANCE_IN_PROGRESS
        """)
    script.play("""
        wait 8001                   | a: generation 2 leads a b c; c: generation 2
        c sync                      | -
        a sync a=x b=y c=z          | a: assigned x; c: assigned z
        b join id=none instance=2   | b: generation 2
        b sync                      | b: assigned y
    """)


def test_without_anybody_who_rejoins_static_members_get_more_time() -> None:
    script = pair()
    script.settings = Script(group_max_size=1).settings
    script.do("reload")
    for _ in range(9):
        script.play("""
            wait 8000           | -
            a beat              | a: REBALANCE_IN_PROGRESS
            b beat              | b: REBALANCE_IN_PROGRESS
        """)
    script.play("""
        a join instance=1       | -
        wait 60000              | a: generation 2 leads a
    """)


def test_an_instance_is_unknown_after_its_session() -> None:
    pair().play(
        """
        wait 9000               | -
        a beat                  | a: NONE
        wait 1000               | -
        a beat                  | a: REBALANCE_IN_PROGRESS
        b beat                  | b: UNKNOWN_MEMBER_ID
        b join id=none instance=2   | -
        a join instance=1       | a: generation 2 leads a b; b: generation 2
    """
    )


def test_an_admin_removes_a_static_member_by_its_instance() -> None:
    pair().play("""
        admin leave id=none instance=2  | admin: NONE
        admin leave id=none instance=2  | admin: UNKNOWN_MEMBER_ID
        b beat                          | b: UNKNOWN_MEMBER_ID
        a join instance=1               | a: generation 2 leads a
    """)
