"""What a fetch deserves, and where logs part: all cases by hand, and any two histories by chance."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.ids import Epoch, Offset
from penstock.quorum.fetching import (
    Diverges,
    LogPoint,
    LogView,
    NeedsSnapshot,
    Serve,
    Verdict,
    judge_fetch,
    truncation_point,
)
from penstock.storage.epochs import Epochs


def point(end: int, epoch: int) -> LogPoint:
    return LogPoint(Offset(end), Epoch(epoch))


def indexed(log: list[int]) -> Epochs:
    """The epochs of a log whose records have these epochs."""
    epochs = Epochs([], lambda: Offset(len(log)))
    for at, epoch in enumerate(log):
        epochs.assign(Epoch(epoch), Offset(at))
    return epochs


def view(log: list[int], start: int = 0, snapshot: LogPoint | None = None) -> LogView:
    epochs = indexed(log)
    return LogView(Offset(start), point(len(log), log[-1] if log else 0), epochs.end_of, snapshot, snapshot)


LOG = [1, 1, 1, 3, 3]


@pytest.mark.parametrize(
    ("offset", "last_epoch", "verdict"),
    [
        (0, 0, Serve()),
        (2, 1, Serve()),
        (3, 1, Serve()),
        (5, 3, Serve()),
        (4, 1, Diverges(point(3, 1))),
        (4, 2, Diverges(point(3, 1))),
        (6, 3, Diverges(point(5, 3))),
        (9, 7, Diverges(point(5, 3))),
    ],
)
def test_a_fetch_is_served_where_both_logs_agree(offset: int, last_epoch: int, verdict: Verdict) -> None:
    assert judge_fetch(view(LOG), Offset(offset), Epoch(last_epoch)) == verdict


@pytest.mark.parametrize(
    ("offset", "last_epoch", "verdict"),
    [
        (0, 0, NeedsSnapshot(point(3, 1))),
        (2, 1, NeedsSnapshot(point(3, 1))),
        (3, 0, NeedsSnapshot(point(3, 1))),
        (3, 1, Serve()),
        (4, 3, Serve()),
    ],
)
def test_a_fetch_before_the_log_begins_needs_the_snapshot(offset: int, last_epoch: int, verdict: Verdict) -> None:
    assert judge_fetch(view(LOG, 3, point(3, 1)), Offset(offset), Epoch(last_epoch)) == verdict


def test_the_snapshot_of_a_formatted_directory_is_sent_to_nobody() -> None:
    assert judge_fetch(view(LOG, 0, point(0, 0)), Offset(0), Epoch(0)) == Serve()


def histories(rng: Random) -> tuple[list[int], list[int]]:
    """Two logs that were once the same: as many records as an epoch has in common, they have in common."""
    common: list[int] = []
    epoch = 1
    for _ in range(rng.randrange(6)):
        epoch += rng.randrange(2)
        common.append(epoch)
    tails: list[list[int]] = []
    used: set[int] = set()
    for _ in range(2):
        tail, at = [], epoch
        for _ in range(rng.randrange(6)):
            at += rng.randrange(2)
            while at in used or (not tail and at == epoch and tails):
                at += 1
            tail.append(at)
        used |= set(tail)
        tails.append(tail)
    return common + tails[0], common + tails[1]


def test_cutting_where_the_leader_says_ends_at_the_last_common_record() -> None:
    rng = Random(5)
    for _ in range(3_000):
        leader, follower = histories(rng)
        same = 0
        while same < min(len(leader), len(follower)) and leader[same] == follower[same]:
            same += 1
        for _ in range(20):
            verdict = judge_fetch(view(leader), Offset(len(follower)), Epoch(follower[-1] if follower else 0))
            if isinstance(verdict, Serve):
                break
            assert isinstance(verdict, Diverges)
            to = truncation_point(Offset(len(follower)), indexed(follower).end_of, verdict.point)
            assert same <= to < len(follower), "every cut takes something, and nothing that both have"
            follower = follower[:to]
        assert follower == leader[: len(follower)]
