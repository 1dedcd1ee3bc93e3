"""Why a group is behind, from facts alone: each finding when it is due, and not when it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.admin import OpenTransaction
from penstock.model.ids import TopicPartition
from penstock.operations.explaining.explain import behind_ms, explain, summary
from penstock.operations.explaining.paces import Pace, paces_of, slowest_drain_s
from penstock.operations.explaining.sights import GroupFacts, GroupSight, Reader, ReadPartition, Unread, Usual

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000
A, B, C, D = (TopicPartition("clicks", number) for number in range(4))


def part(committed: int | None, end: int, member: str | None = "m1", **more: int) -> ReadPartition:
    given = {"start": 0, "stable": end, **more}
    return ReadPartition(committed, given.pop("start"), end, given.pop("stable"), member, **given)


def seen(
    partitions: Mapping[TopicPartition, ReadPartition],
    *,
    at_ms: int = NOW_MS,
    state: str = "Stable",
    epoch: int = -1,
    idle: tuple[str, ...] = (),
) -> GroupSight:
    has: dict[str, int] = dict.fromkeys(idle, 0)
    for each in partitions.values():
        if each.member_id is not None:
            has[each.member_id] = has.get(each.member_id, 0) + 1
    readers = {name: Reader(name, f"client-{name}", "/10.0.0.1", owned) for name, owned in has.items()}
    return GroupSight(at_ms, state, epoch, readers, partitions)


def over(*sights: GroupSight, span_ms: int = 10_000) -> GroupFacts:
    """Sights spread evenly over a span."""
    step = span_ms // max(len(sights) - 1, 1)
    first_ms = NOW_MS - step * (len(sights) - 1)
    return GroupFacts("g", [replace(sight, at_ms=first_ms + step * i) for i, sight in enumerate(sights)])


def kinds(facts: GroupFacts) -> list[str]:
    return [each.kind for each in explain(facts)]


def test_nothing_is_said_of_a_group_that_reads_along() -> None:
    facts = over(seen({A: part(100, 100), B: part(50, 52)}), seen({A: part(200, 200), B: part(150, 151)}))
    assert kinds(facts) == []
    assert summary(facts) == "group g (Stable, 1 member) is 1 record behind in 1 of 2 partitions"


def test_one_that_has_read_everything_and_is_empty_is_well() -> None:
    facts = over(seen({A: part(100, 100, None)}, state="Empty"))
    assert kinds(facts) == []
    assert summary(facts) == "group g (Empty, 0 members) has read everything"
    assert behind_ms(facts) == 0


def test_nobody_reads() -> None:
    facts = over(seen({A: part(90, 100, None)}, state="Empty"))
    (found,) = explain(facts)
    assert (found.level, found.kind) == ("problem", "nobody_reads")
    assert found.why.startswith("10 records wait")


def test_a_group_that_is_never_stable_rebalances() -> None:
    joining = seen({A: part(0, 10)}, state="PreparingRebalance")
    assert "rebalancing" in kinds(over(joining, joining, joining))
    assert "rebalancing" not in kinds(over(joining, seen({A: part(0, 10)}), seen({A: part(0, 10)})))
    assert "rebalancing" not in kinds(over(joining)), "one moment is no trend"


def test_members_that_come_and_go_are_named() -> None:
    sights = [seen({A: part(0, 10), B: part(0, 10, name)}) for name in ("x1", "x2", "x3")]
    (found,) = (each for each in explain(over(*sights)) if each.kind == "rebalancing")
    assert "changed 2 times" in found.what
    assert "client-x1 at 10.0.0.1, client-x2 at 10.0.0.1, client-x3 at 10.0.0.1" in found.why
    assert "client-m1" not in found.why


def test_epochs_of_the_consumer_protocol_count_as_changes() -> None:
    assert "rebalancing" in kinds(over(*(seen({A: part(0, 10)}, epoch=epoch) for epoch in (4, 5, 6))))
    assert "rebalancing" not in kinds(over(*(seen({A: part(0, 10)}, epoch=epoch) for epoch in (4, 5, 5))))


def test_a_member_that_commits_nowhere_is_told_from_a_record_that_stops_one_partition() -> None:
    before = {A: part(5, 50), B: part(5, 50), C: part(5, 50, "m2"), D: part(5, 50, "m2")}
    whole = {A: part(5, 60), B: part(5, 60), C: part(40, 60, "m2"), D: part(40, 60, "m2")}
    (found,) = (each for each in explain(over(seen(before), seen(whole))) if each.level == "problem")
    assert found.kind == "not_committing"
    assert "client-m1 at 10.0.0.1" in found.what
    assert "all 2 partitions" in found.what

    one = {A: part(5, 60), B: part(40, 60), C: part(40, 60, "m2"), D: part(40, 60, "m2")}
    facts = replace(over(seen(before), seen(one)), unread={A: Unread(5, NOW_MS, b"k\xff", 2_000)})
    (found,) = (each for each in explain(facts) if each.level == "problem")
    assert found.kind == "stuck"
    assert found.what.startswith("clicks-0 stands at offset 5 for 10.0 s")
    assert "offset 5 (2.0 KB, key 'k\\\\xff')" in found.why
    assert "--topic clicks:0 --to 6" in found.attempt


def test_a_single_partition_that_stands_is_stuck_and_a_short_look_says_nothing() -> None:
    sights = seen({A: part(5, 50)}), seen({A: part(5, 60)})
    assert "stuck" in kinds(over(*sights))
    assert "stuck" not in kinds(over(*sights, span_ms=5_000)), "commits come every 5 s"
    assert "stuck" not in kinds(over(seen({A: part(5, 5)}), seen({A: part(5, 60)}))), "it has only just got something"


def test_a_partition_that_changed_hands_is_not_stuck() -> None:
    assert "stuck" not in kinds(over(seen({A: part(5, 50, "m2")}), seen({A: part(5, 60)})))


def test_members_without_partitions_are_worth_a_word_when_there_is_lag() -> None:
    assert "idle_members" in kinds(over(seen({A: part(5, 50)}, idle=("m8", "m9"))))
    assert "idle_members" not in kinds(over(seen({A: part(50, 50)}, idle=("m8", "m9"))))
    (found,) = (each for each in explain(over(seen({A: part(5, 50)}, idle=("m8", "m9")))) if each.level == "notice")
    assert found.what.startswith("2 members of 3 have nothing to read: client-m8")


def test_one_member_that_has_most_of_the_lag_is_named() -> None:
    uneven = {A: part(0, 9_000), B: part(900, 1_000, "m2"), C: part(900, 1_000, "m3")}
    (found,) = (each for each in explain(over(seen(uneven))) if each.kind == "slow_member")
    assert "97 % of the lag with 1 partition" in found.what
    even = {A: part(0, 9_000), B: part(0, 9_000, "m2")}
    assert "slow_member" not in kinds(over(seen(even)))
    has_most = {A: part(0, 9_000), B: part(0, 9_000), C: part(1_000, 1_000, "m2")}
    assert "slow_member" not in kinds(over(seen(has_most)))


def open_transaction(start: int, transactional_id: str | None = "shop-1") -> OpenTransaction:
    state = ("Ongoing", NOW_MS - 60_000, 900_000) if transactional_id else (None, None, None)
    return OpenTransaction("clicks", 0, start, 7, 0, 1, NOW_MS - 10, transactional_id, *state)


def test_an_open_transaction_holds_back_who_stands_before_it_and_nobody_else() -> None:
    waiting = {A: part(40, 100, stable=40)}
    (found,) = (
        each for each in explain(replace(over(seen(waiting)), open=[open_transaction(40)])) if each.kind == "held_back"
    )
    assert "'shop-1', open for 1 min 0 s" in found.what
    assert found.why.startswith("60 records")
    assert "penstock txn fence shop-1" in found.attempt
    reads_all = {A: part(90, 100, stable=40)}
    assert "held_back" in kinds(replace(over(seen(reads_all)), open=[open_transaction(40)]))
    before = {A: part(30, 100, stable=40)}
    assert "held_back" not in kinds(replace(over(seen(before)), open=[open_transaction(40)]))
    other = {A: part(40, 100, stable=40)}
    assert "held_back" not in kinds(replace(over(seen(other)), open=[open_transaction(60)])), "it begins behind that"


def test_records_that_are_gone_are_counted() -> None:
    (found,) = explain(over(seen({A: part(10, 100, start=60)})))
    assert (found.level, found.kind) == ("problem", "already_lost")
    assert found.what == "clicks-0: 50 records were deleted before they were read"


@pytest.mark.parametrize(
    ("age_ms", "level"),
    [
        (DAY_MS, None),
        (6 * DAY_MS - 1, None),
        (6 * DAY_MS, "notice"),
        (7 * DAY_MS - 60_000, "problem"),
        (9 * DAY_MS, "problem"),
    ],
)
def test_records_that_retention_takes_soon_are_told_of(age_ms: int, level: str | None) -> None:
    facts = replace(
        over(seen({A: part(10, 100, None)}, state="Empty")),
        unread={A: Unread(10, NOW_MS - age_ms, None, 1)},
        retention_ms={"clicks": 7 * DAY_MS},
    )
    assert [each.level for each in explain(facts) if each.kind == "will_be_lost"] == ([level] if level else [])
    assert behind_ms(facts) == age_ms


def test_who_catches_up_before_loses_nothing() -> None:
    facts = replace(
        over(seen({A: part(0, 2_000)}), seen({A: part(1_000, 2_000)})),
        unread={A: Unread(1_000, NOW_MS - DAY_MS + 60_000, None, 1)},
        retention_ms={"clicks": DAY_MS},
    )
    assert kinds(facts) == ["catching_up"]


def test_one_partition_that_takes_most_is_hot() -> None:
    before = {item: part(1_000, 1_000) for item in (A, B, C, D)}
    after = {**{item: part(1_010, 1_010) for item in (B, C, D)}, A: part(1_100, 2_000)}
    (found,) = (each for each in explain(over(seen(before), seen(after))) if each.kind == "hot_partition")
    assert found.what.startswith("clicks-0 takes 97 % of what is written to clicks")
    even = {item: part(1_100, 2_000) for item in (A, B, C, D)}
    assert "hot_partition" not in kinds(over(seen(before), seen(even)))


def test_speeds_are_told_with_what_to_do() -> None:
    before = {A: part(0, 5_000), B: part(0, 5_000)}
    grows = {A: part(1_000, 8_000), B: part(1_000, 8_000)}
    (found,) = (each for each in explain(over(seen(before), seen(grows))) if each.level == "problem")
    assert found.kind == "slower_than_producers"
    assert "600 records/s are written and 200 are read: the lag grows by 400 a second" in found.what
    assert found.attempt == "add members: 1 read 2 partitions"
    shrinks = {A: part(4_000, 5_500), B: part(4_000, 5_500)}
    (found,) = explain(over(seen(before), seen(shrinks)))
    assert found.kind == "catching_up"
    assert found.what.endswith("no lag in about 4.3 s")
    enough = {A: part(1_000, 8_000), B: part(1_000, 8_000, "m2")}
    (found,) = (
        each
        for each in explain(over(seen(enough), seen({**enough, A: part(1_100, 9_000), B: part(1_100, 9_000, "m2")})))
        if each.kind == "slower_than_producers"
    )
    assert found.attempt.startswith("every partition that is behind has a member of its own")


def test_what_is_usual_tells_producers_from_consumers() -> None:
    before, after = {A: part(0, 5_000)}, {A: part(1_000, 9_000)}
    facts = over(seen(before), seen(after))
    assert "burst" in kinds(replace(facts, usual=Usual(incoming=100, outgoing=100)))
    assert "slower_than_usual" in kinds(replace(facts, usual=Usual(incoming=400, outgoing=400)))
    assert {"burst", "slower_than_usual"}.isdisjoint(kinds(replace(facts, usual=Usual(incoming=350, outgoing=110))))


def test_quotas_of_readers_are_named_when_they_are_behind() -> None:
    facts = replace(over(seen({A: part(0, 5_000)})), byte_rates={"client-m1": 1_000_000.0, "other": 5.0})
    (found,) = (each for each in explain(facts) if each.kind == "quota")
    assert found.what == "client 'client-m1' may read at most 976.6 KB a second"
    assert "quota" not in kinds(replace(facts, sights=[seen({A: part(5_000, 5_000)})]))


def test_leaders_and_replicas_that_are_away_are_named() -> None:
    facts = over(seen({A: part(0, 10, leader=-1), B: part(0, 10, in_sync=1, replicas=3)}))
    assert kinds(facts) == ["leaderless", "under_replicated"]


def test_a_group_without_positions_has_a_sentence() -> None:
    facts = over(seen({}))
    assert summary(facts) == "group g (Stable, 0 members) has no positions and reads nothing"
    assert kinds(facts) == []


numbers = st.integers(-1, 2**63 - 1)
positions = st.builds(
    lambda committed, start, length, open_, member, leader: ReadPartition(
        committed, start, start + length, start + length - min(open_, length), member, leader
    ),
    st.none() | st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.integers(0, 2**61),
    st.integers(0, 100),
    st.sampled_from([None, "m1", "m2"]),
    st.integers(-1, 2),
)
sights = st.builds(
    seen,
    st.dictionaries(st.sampled_from([A, B, C, D]), positions),
    state=st.sampled_from(["Stable", "Empty", "PreparingRebalance", "Reconciling", ""]),
    epoch=st.integers(-1, 2**31 - 1),
    idle=st.sampled_from([(), ("m8",)]),
)


@given(
    st.lists(sights, min_size=1, max_size=5),
    st.integers(0, 60_000),
    st.dictionaries(st.sampled_from([A, B]), st.builds(Unread, numbers, numbers, st.none() | st.binary(), numbers)),
    st.dictionaries(st.just("clicks"), numbers),
)
def test_whatever_was_seen_can_be_explained(
    found: list[GroupSight], span_ms: int, unread: dict[TopicPartition, Unread], kept: dict[str, int]
) -> None:
    facts = replace(over(*found, span_ms=span_ms), unread=unread, retention_ms=kept, open=[open_transaction(0, None)])
    said = explain(facts)
    assert [each.level for each in said] == sorted((each.level for each in said), reverse=True), "problems come first"
    assert all(each.what and each.why and each.attempt for each in said)
    assert summary(facts)
    assert all(pace.incoming >= 0 and pace.outgoing >= 0 for pace in paces_of(facts).values())


def test_a_group_has_caught_up_when_its_slowest_partition_has() -> None:
    assert slowest_drain_s([Pace(0, 10, 100), Pace(0, 10, 1_000)]) == 100
    assert slowest_drain_s([Pace(0, 10, 100), Pace(10, 10, 1)]) is None
    assert slowest_drain_s([]) == 0


def test_what_to_try_can_be_typed() -> None:
    """Commands in sentences are commands: they parse, whatever the names of topics and groups."""
    import re
    import shlex

    from click.testing import CliRunner

    from penstock.cli.main import cli

    before = {A: part(5, 50), B: part(5, 50), C: part(5, 50, "m2"), D: part(900, 1_000, "m2", stable=900)}
    after = {
        A: part(5, 60),
        B: part(40, 60),
        C: part(5, 60, "m2", leader=-1, start=9),
        D: part(900, 9_000, "m2", stable=900, in_sync=1, replicas=2),
    }
    facts = replace(
        over(seen(before, idle=("m9",)), seen(after, idle=("m9",))),
        unread={A: Unread(5, NOW_MS - DAY_MS, None, 1)},
        retention_ms={"clicks": DAY_MS},
        open=[replace(open_transaction(900), partition=3), replace(open_transaction(900, None), partition=3)],
        byte_rates={"client-m1": 1e6},
    )
    said = " ".join(each.attempt for each in [*explain(facts), *explain(over(seen({A: part(0, 9, None)})))])
    commands = re.findall(r"`(penstock [^`|]*?)\s*(?:\|[^`]*)?`", said)
    assert len(commands) > 10
    for command in commands:
        words = [word.replace("TOPIC", "clicks").replace("N", "6") for word in shlex.split(command)[1:]]
        # Words that no command has are refused before help is given.
        outcome = CliRunner().invoke(cli, [*words, "--help"])
        assert outcome.exit_code == 0, (command, outcome.output)
