"""The table at the top of `quorum/node.py`, row by row: what each role becomes when something happens to it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from penstock.model.errors import NOT_LEADER_OR_FOLLOWER
from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.quorum.events import (
    AddAsk,
    Answer,
    Answered,
    Appended,
    Asked,
    BeginAsk,
    ChangeAnswer,
    EndAsk,
    EpochAnswer,
    Event,
    FetchedFromLeader,
    LeaderGone,
    ShutDown,
    Started,
    Tick,
    VoteAnswer,
    VoteAsk,
)
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import QuorumState
from tests.unit.quorum.test_node import THREE, key, logged, voter

ME, LEADER, OTHER = NodeId(1), NodeId(2), NodeId(3)
EPOCH = Epoch(3)
NOW = 10_000.0


def started(epoch: int = EPOCH, leader: NodeId = NO_NODE) -> QuorumNode:
    node = QuorumNode(voter(ME), logged(THREE), Random(7))
    node.step(Started(0, QuorumState(Epoch(epoch), leader), Offset(0), Epoch(0)))
    return node


def after(node: QuorumNode, *events: Event) -> QuorumNode:
    for event in events:
        node.step(event)
    return node


def granted(epoch: int, *, pre_vote: bool) -> Answered:
    return Answered(NOW, LEADER, VoteAnswer(Epoch(epoch), granted=True, pre_vote=pre_vote))


def refused(by: NodeId, *, pre_vote: bool) -> Answered:
    return Answered(NOW, by, VoteAnswer(EPOCH, granted=False, pre_vote=pre_vote))


def following() -> QuorumNode:
    return after(started(leader=LEADER), FetchedFromLeader(NOW - 5_000, LEADER, EPOCH, None))


def standing() -> QuorumNode:
    return after(started(EPOCH - 1), Tick(NOW - 5_000), granted(EPOCH - 1, pre_vote=True))


ROLES: dict[str, Callable[[], QuorumNode]] = {
    "unattached": started,
    "resigned": lambda: started(leader=ME),
    "prospective": lambda: after(started(), Tick(NOW - 5_000)),
    "prospective, a leader was known": lambda: after(following(), Tick(NOW - 1_000)),
    "candidate": standing,
    "follower": following,
    "leader": lambda: after(standing(), granted(EPOCH, pre_vote=False), Appended(NOW, Offset(1), EPOCH)),
}


def becomes(node: QuorumNode) -> str:
    return f"{node.role.value} {node.epoch}"


def ask(*, pre_vote: bool) -> VoteAsk:
    return VoteAsk(EPOCH, key(OTHER), key(ME), Epoch(9), Offset(9), pre_vote)


DEADLINE_PASSES = "its deadline passes"
HAPPENINGS: dict[str, list[Event]] = {
    "a majority would vote for it": [granted(EPOCH, pre_vote=True)],
    "a majority would not": [refused(LEADER, pre_vote=True), refused(OTHER, pre_vote=True)],
    "a majority voted for it": [granted(EPOCH, pre_vote=False)],
    "a majority did not": [refused(LEADER, pre_vote=False), refused(OTHER, pre_vote=False)],
    "a vote is asked for": [Asked(NOW, ask(pre_vote=False))],
    "a later epoch, leader unknown": [Answered(NOW, OTHER, EpochAnswer(Epoch(4)))],
    "a later epoch has a leader": [Asked(NOW, BeginAsk(Epoch(4), OTHER, key(ME)))],
    "its leader says that it leads": [Asked(NOW, BeginAsk(EPOCH, LEADER, key(ME)))],
    "others say that it has a leader": [Answered(NOW, OTHER, EpochAnswer(EPOCH, LEADER))],
    "the leader says goodbye": [Asked(NOW, EndAsk(EPOCH, LEADER, (key(ME),)))],
    "the leader's process is gone": [LeaderGone(NOW, LEADER, EPOCH)],
    "the leader serves a fetch": [FetchedFromLeader(NOW, LEADER, EPOCH, None)],
    "the process stops": [ShutDown(NOW)],
}
STAYS = {name: becomes(make()) for name, make in ROLES.items()}
FOLLOWS = "follower 3"
# A leader is asked nothing by a leader of its own epoch: there is none.
TABLE: dict[str, dict[str, str]] = {
    DEADLINE_PASSES: {
        "unattached": "prospective 3",
        "resigned": "prospective 3",
        "prospective": "unattached 3",
        "prospective, a leader was known": FOLLOWS,
        "candidate": "prospective 3",
        "follower": "prospective 3",
    },
    "a majority would vote for it": {
        "prospective": "candidate 4",
        "prospective, a leader was known": "candidate 4",
    },
    "a majority would not": {"prospective": "unattached 3", "prospective, a leader was known": FOLLOWS},
    "a majority voted for it": {"candidate": "leader 3"},
    "a majority did not": {},
    "a vote is asked for": {"prospective": "unattached 3"},
    "a later epoch, leader unknown": dict.fromkeys(ROLES, "unattached 4"),
    "a later epoch has a leader": dict.fromkeys(ROLES, "follower 4"),
    "its leader says that it leads": dict.fromkeys(ROLES, FOLLOWS) | {"leader": "leader 3"},
    "others say that it has a leader": dict.fromkeys(ROLES, FOLLOWS)
    | {"leader": "leader 3", "prospective, a leader was known": "prospective 3"},
    "the leader says goodbye": dict.fromkeys(ROLES, FOLLOWS)
    | {"leader": "leader 3", "prospective, a leader was known": "prospective 3"},
    "the leader's process is gone": {},
    "the leader serves a fetch": dict.fromkeys(ROLES, FOLLOWS) | {"leader": "leader 3"},
    "the process stops": {
        "prospective": "unattached 3",
        "prospective, a leader was known": FOLLOWS,
        "candidate": "unattached 3",
        "leader": "resigned 3",
    },
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("happening", TABLE)
def test_a_role_becomes_what_the_table_says(role: str, happening: str) -> None:
    node = ROLES[role]()
    deadline = node.deadline
    assert deadline is not None
    events = [Tick(deadline)] if happening == DEADLINE_PASSES else HAPPENINGS[happening]
    assert becomes(after(node, *events)) == TABLE[happening].get(role, STAYS[role])


def test_all_roles_are_looked_at_and_in_one_epoch() -> None:
    assert {text.split()[0] for text in STAYS.values()} == {
        "unattached", "resigned", "prospective", "candidate", "follower", "leader",
    }  # fmt: skip
    assert {text.split()[1] for text in STAYS.values()} == {"3"}


@pytest.mark.parametrize("role", ROLES)
def test_who_gives_a_vote_and_who_a_pre_vote(role: str) -> None:
    def given(*, pre_vote: bool) -> bool:
        (answer,) = [
            effect.message
            for effect in ROLES[role]().step(Asked(NOW, ask(pre_vote=pre_vote)))
            if isinstance(effect, Answer)
        ]
        assert isinstance(answer, VoteAnswer)
        return answer.granted

    assert given(pre_vote=False) == (role in ("unattached", "prospective"))
    assert given(pre_vote=True) == (role not in ("follower", "leader"))


@pytest.mark.parametrize("happening", ["the leader says goodbye", "the leader's process is gone"])
def test_a_follower_stands_soon_when_its_leader_leaves(happening: str) -> None:
    node = after(following(), *HAPPENINGS[happening])
    assert node.deadline is not None
    assert node.deadline <= NOW + 250


def test_a_leader_resigns_when_no_majority_listens() -> None:
    node = ROLES["leader"]()
    assert becomes(after(node, Tick(NOW + 2_999))) == "leader 3"
    assert becomes(after(node, Tick(NOW + 3_000))) == "resigned 3"


@pytest.mark.parametrize("role", ROLES)
def test_only_a_leader_changes_the_voters(role: str) -> None:
    (answer,) = [
        effect.message for effect in ROLES[role]().step(Asked(NOW, AddAsk(voter(4)))) if isinstance(effect, Answer)
    ]
    assert isinstance(answer, ChangeAnswer)
    assert (answer.error is NOT_LEADER_OR_FOLLOWER) == (role != "leader")
