"""The table at the top of `classic/group.py`: what a request does to a group in each of its states.

Member a leads and b follows, as static members, so that a join needs no second one. In PreparingRebalance a has joined
again and b has not.
"""

from __future__ import annotations

import pytest

from penstock.coordinators.groups.classic.group import State
from tests.unit.coordinators.classic.script import Script
from tests.unit.coordinators.classic.test_static import pair

WAYS: dict[State, tuple[str, ...]] = {
    State.EMPTY: ("a leave", "b leave"),
    State.PREPARING: ("a join instance=1",),
    State.COMPLETING: ("a join instance=1", "b join instance=2"),
    State.STABLE: (),
}
# What is done | in which state | what is answered | the state then
TABLE = """
    c join instance=3          | Empty               | -                                          | PreparingRebalance
    c join instance=3          | PreparingRebalance  | -                                          | PreparingRebalance
    c join instance=3          | CompletingRebalance | -                                          | PreparingRebalance
    c join instance=3          | Stable              | -                                          | PreparingRebalance
    b join instance=2          | Empty               | b: UNKNOWN_MEMBER_ID                       | Empty
    b join instance=2          | PreparingRebalance  | a: generation 2 leads a b; b: generation 2 | CompletingRebalance
    b join instance=2          | CompletingRebalance | b: generation 2                            | CompletingRebalance
    b join instance=2          | Stable              | b: generation 1                            | Stable
    a join instance=1          | CompletingRebalance | a: generation 2 leads a b                  | CompletingRebalance
    a join instance=1          | Stable              | -                                          | PreparingRebalance
    b join topics=u instance=2 | Empty               | b: UNKNOWN_MEMBER_ID                       | Empty
    b join topics=u instance=2 | PreparingRebalance  | a: generation 2 leads a b; b: generation 2 | CompletingRebalance
    b join topics=u instance=2 | CompletingRebalance | -                                          | PreparingRebalance
    b join topics=u instance=2 | Stable              | -                                          | PreparingRebalance
    b join id=none instance=2  | Empty               | -                                          | PreparingRebalance
    b join id=none instance=2  | PreparingRebalance  | a: generation 2 leads a b; b: generation 2 | CompletingRebalance
    b join id=none instance=2  | CompletingRebalance | -                                          | PreparingRebalance
    b join id=none instance=2  | Stable              | b: generation 1                            | Stable
    b sync                     | Empty               | b: UNKNOWN_MEMBER_ID                       | Empty
    b sync                     | PreparingRebalance  | b: REBALANCE_IN_PROGRESS                   | PreparingRebalance
    b sync                     | CompletingRebalance | -                                          | CompletingRebalance
    b sync                     | Stable              | b: assigned y                              | Stable
    a sync a=x b=y             | Empty               | a: UNKNOWN_MEMBER_ID                       | Empty
    a sync a=x b=y             | PreparingRebalance  | a: REBALANCE_IN_PROGRESS                   | PreparingRebalance
    a sync a=x b=y             | CompletingRebalance | a: assigned x                              | Stable
    a sync a=x b=y             | Stable              | a: assigned x                              | Stable
    b beat                     | Empty               | b: UNKNOWN_MEMBER_ID                       | Empty
    b beat                     | PreparingRebalance  | b: REBALANCE_IN_PROGRESS                   | PreparingRebalance
    b beat                     | CompletingRebalance | b: NONE                                    | CompletingRebalance
    b beat                     | Stable              | b: NONE                                    | Stable
    b commit                   | Empty               | b: UNKNOWN_MEMBER_ID                       | Empty
    b commit                   | PreparingRebalance  | b: NONE                                    | PreparingRebalance
    b commit                   | CompletingRebalance | b: REBALANCE_IN_PROGRESS                   | CompletingRebalance
    b commit                   | Stable              | b: NONE                                    | Stable
    b leave                    | Empty               | b: UNKNOWN_MEMBER_ID                       | Empty
    b leave                    | PreparingRebalance  | a: generation 2 leads a; b: NONE           | CompletingRebalance
    b leave                    | CompletingRebalance | b: NONE                                    | PreparingRebalance
    b leave                    | Stable              | b: NONE                                    | PreparingRebalance
""".strip()


def brought_to(state: State) -> Script:
    script = pair()
    for step in WAYS[state]:
        script.do(step)
    assert state_of(script) == state.value
    return script


def state_of(script: Script) -> str:
    return script.shard.table.groups["g"].state_name()


@pytest.mark.parametrize("line", TABLE.splitlines(), ids=lambda line: " in ".join(line.split("|")[:2]).strip())
def test_a_request_does_to_a_group_what_the_table_says(line: str) -> None:
    step, before, answered, then = (part.strip() for part in line.split("|"))
    script = brought_to(State(before))
    assert (script.do(step), state_of(script)) == (answered, then)


def test_the_last_member_leaves_an_empty_group_behind() -> None:
    script = brought_to(State.STABLE)
    script.play("""
        a leave     | a: NONE
        b leave     | b: NONE
    """)
    assert state_of(script) == "Empty"
