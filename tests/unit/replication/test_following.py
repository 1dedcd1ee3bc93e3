"""What a follower decides, one answer at a time; and by histories, where two logs meet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
)
from penstock.model.ids import Epoch, Offset, PartitionKey, TopicPartition, Uuid
from penstock.replication.following import (
    Course,
    Cut,
    Following,
    Position,
    Restart,
    course_of,
    pause_ms,
    range_mended,
    taken,
    truncation_point,
)
from penstock.storage.checkpoints import EpochStart
from penstock.storage.epochs import Epochs

AT = Position(offset=10, leader_epoch=3, last_fetched_epoch=2, log_start=0)


def following() -> Following:
    made = Following(PartitionKey(Uuid(bytes(16)), 0), TopicPartition("t", 0), Epoch(3), None)
    made.sent, made.sent_in = AT, 5
    return made


def test_an_answer_counts_for_the_position_that_was_asked() -> None:
    assert following().answers(5, AT)
    assert following().answers(6, AT), "a later fetch of the session asks for the same"


def test_an_answer_counts_wherever_the_log_begins_meanwhile() -> None:
    """Retention moves the start on its own, and what comes behind the end is the same."""
    assert following().answers(5, AT._replace(log_start=7))


def test_an_answer_is_stale_once_the_replica_moved_got_another_epoch_asked_again_or_is_held() -> None:
    assert not following().answers(5, AT._replace(offset=11))
    assert not following().answers(5, AT._replace(leader_epoch=4))
    assert not following().answers(5, AT._replace(last_fetched_epoch=1)), "it was cut and may part from the leader"
    assert not following().answers(4, AT), "it was asked in request 5 and this answers request 4"
    held = following()
    held.held = "it is throttled"
    assert not held.answers(5, AT)


def test_errors_have_their_course() -> None:
    courses = {error: course_of(error.code) for error in (OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH)}
    assert list(courses.values()) == [Course.FIND_RANGE, Course.RETRY_LATER]
    assert course_of(NOT_LEADER_OR_FOLLOWER.code) == course_of(UNKNOWN_LEADER_EPOCH.code) == Course.RETRY_SOON


def test_pauses_grow_up_to_the_setting() -> None:
    assert [pause_ms(retries, 100) for retries in range(5)] == [20, 40, 80, 100, 100]
    assert pause_ms(10_000, 1_000) == 1_000


def test_an_end_outside_of_the_leaders_log_is_brought_back() -> None:
    assert range_mended(Offset(0), Offset(10), 0, 7) == Cut(Offset(7))
    assert range_mended(Offset(0), Offset(10), 20, 30) == Restart(Offset(20))
    assert range_mended(Offset(0), Offset(10), 5, 30) is None
    assert range_mended(Offset(0), Offset(10), 10, 10) is None


def test_a_log_that_begins_behind_the_leaders_end_begins_anew_where_the_leaders_does() -> None:
    """Cut to the leader's end it would be empty, look caught up, and lack everything that is committed."""
    assert range_mended(Offset(900), Offset(900), 0, 100) == Restart(Offset(0))
    assert range_mended(Offset(900), Offset(950), 40, 100) == Restart(Offset(40))
    assert range_mended(Offset(100), Offset(950), 0, 100) == Restart(Offset(0))
    assert range_mended(Offset(99), Offset(950), 0, 100) == Cut(Offset(100))


def test_batches_of_a_newer_epoch_than_asked_with_are_left() -> None:
    batches: list[tuple[int, Any]] = [
        (at, SimpleNamespace(leader_epoch=epoch)) for at, epoch in enumerate((1, 2, 3, 2))
    ]
    assert [taken(batches, Epoch(epoch)) for epoch in (3, 2, 1, 0)] == [4, 2, 1, 0]


# -- histories: a list of (epoch, how many records) is a log in which every epoch's records are its own


def epochs_of(history: list[tuple[int, int]]) -> tuple[Epochs, int]:
    end, entries = 0, []
    for epoch, count in history:
        entries.append(EpochStart(Epoch(epoch), Offset(end)))
        end += count
    made = Epochs(entries, lambda: Offset(end))
    return made, end


def records_of(history: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Each record is known by its epoch and offset: log matching says that these tell everything."""
    records: list[tuple[int, int]] = []
    for epoch, count in history:
        records += [(epoch, len(records) + number) for number in range(count)]
    return records


shared = st.lists(st.integers(0, 4), max_size=4)


@given(shared, shared, shared, st.randoms(use_true_random=False))
def test_two_logs_are_cut_to_what_they_share_and_never_further(
    common: list[int], leaders: list[int], followers: list[int], random: Any
) -> None:
    """Epochs are given out once: what is not in the common part differs in its epochs, however they lie."""
    epochs = sorted(random.sample(range(1, 100), len(common) + len(leaders) + len(followers)))
    both = list(zip(epochs[: len(common)], common, strict=True))
    rest = epochs[len(common) :]
    random.shuffle(rest)
    leader = both + list(zip(sorted(rest[: len(leaders)]), leaders, strict=True))
    follower = both + list(zip(sorted(rest[len(leaders) :]), followers, strict=True))
    leader.append((200, 0))  # a leader begins its epoch before anybody asks
    ours, theirs = records_of(follower), records_of(leader)
    common_end = next(
        (at for at, (own, their) in enumerate(zip(ours, theirs, strict=False)) if own != their),
        min(len(ours), len(theirs)),
    )
    leader_epochs, _ = epochs_of(leader)
    for _ in range(20):
        own_epochs, end = epochs_of(follower)
        if own_epochs.latest < 0:
            break
        known, known_end = leader_epochs.end_of(own_epochs.latest)
        if known == own_epochs.latest and known_end >= end:
            break
        to = truncation_point(known, known_end, own_end_of=own_epochs.end_of, log_end=Offset(end))
        assert to >= common_end, "what both have stays"
        follower = cut(follower, to)
    left = records_of(follower)
    assert left == theirs[: len(left)]
    assert len(left) >= common_end


def cut(history: list[tuple[int, int]], to: int) -> list[tuple[int, int]]:
    """Like `Log.truncate`: epochs that begin at the cut or later never happened."""
    left, at = [], 0
    for epoch, count in history:
        if at >= to:
            break
        left.append((epoch, min(count, to - at)))
        at += count
    return left
