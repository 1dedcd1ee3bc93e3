"""Whole clusters with transactions: both protocols, clients that die and are replaced, and bugs that must be found.

`make test` runs seeds for some seconds and, of each planted bug, the seed that found it last; `make soak PART=txn` runs
two thousand seeds, or as many as its minutes allow.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing import get_context

import pytest

from penstock.testing.sim import Story, run
from tests.faults.counts import MINUTES, SOAKING
from tests.sim.cluster.seeds import SHAPES
from tests.sim.cluster.transaction_bugs import BUGS, FOUND_BY

FAST_S = 20.0
"""How long `make test` tries new seeds."""

SEEDS = 2_000
BUG_SEEDS = 1_000
FIRST_SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
FOUND: tuple[int, ...] = ()
"""Seeds that once found something."""

SECONDS = 5.0
"""Virtual seconds of trouble. What counts happens all the time here, and most of the rest of a run is healing."""

HAPPENS = (
    "transactions committed", "transactions aborted", "classic producers", "transactions ended in a partition",
    "transactional client dies", "transactional client goes dark", "transactional client is left",
    "transactional client is paused", "transactional client is doubled", "transactions that take too long",
    "copiers hand over", "stable offsets asked for", "leaders moved", "kills", "power cuts", "pauses", "restarts",
    "requests of transactions late", "requests of transactions lost", "replies of transactions late",
    "replies of transactions lost", "markers late", "struck in ongoing",
    "struck in prepare_commit", "struck in prepare_abort", "logs compacted", "topics made again",
)  # fmt: skip
"""What has to happen in a tenth of all worlds."""

FEW = 3
EVERYWHERE = ("transactions committed", "transactions ended in a partition", "stable offsets asked for")


def live(seed: int) -> Story:
    return run(seed, nodes=SHAPES[seed % len(SHAPES)], seconds=SECONDS, transactions=True)


def happened(seed: int) -> list[str]:
    story = live(seed)
    assert story.ok, story.text()
    return list(story.counts)


def broken(seed: int) -> str:
    """The story of a world in which something was violated."""
    story = live(seed)
    return "" if story.ok else story.text()


def stories(seeds: Iterable[int]) -> Iterator[str]:
    """In the soak a process for each core tells them."""
    if not SOAKING:
        yield from map(broken, seeds)
        return
    with get_context("spawn").Pool(os.cpu_count() or 1) as pool:
        yield from pool.imap(broken, seeds)


@pytest.mark.timeout(MINUTES * 60 + 300 if SOAKING else 120)
def test_transactions_keep_their_promises(capsys: pytest.CaptureFixture[str]) -> None:
    began, count = time.monotonic(), 0
    limit_s = MINUTES * 60 if SOAKING else FAST_S
    for words in stories([*FOUND, *range(FIRST_SEED, FIRST_SEED + SEEDS)]):
        if words:
            pytest.fail(words, pytrace=False)
        count += 1
        if time.monotonic() - began >= limit_s:
            break
    with capsys.disabled():
        print(f"\n{count} clusters with transactions, {count / (time.monotonic() - began):.2f} seeds a second")


@pytest.mark.timeout(MINUTES * 60 + 3_600)
def test_everything_happens_in_a_tenth_of_all_worlds_with_transactions() -> None:
    """`make test` has time for a few worlds, which show what is in all of them."""
    if SOAKING:
        with get_context("spawn").Pool(os.cpu_count() or 1) as pool:
            worlds = Counter(name for names in pool.map(happened, range(1, 101), chunksize=1) for name in names)
        wanted, least = HAPPENS, 10
    else:
        worlds = Counter(name for seed in range(1, FEW + 1) for name in happened(seed))
        wanted, least = EVERYWHERE, FEW
    assert {name: worlds[name] for name in wanted if worlds[name] < least} == {}


def test_a_world_with_transactions_tells_the_same_story_twice() -> None:
    first, second = (run(10, nodes=1, seconds=4, transactions=True) for _ in range(2))
    assert first.last == second.last
    assert first.digest == second.digest


def test_a_story_says_how_to_see_it_again() -> None:
    story = Story(9, nodes=1, transactions=True, trouble_s=5.0)
    story.violated("something")
    assert "penstock sim --seed 9 --nodes 1 --seconds 5 --transactions" in story.text()


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(
    "name", [name if name in FOUND_BY else pytest.param(name, marks=pytest.mark.soak) for name in BUGS]
)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed that found it last comes first: with another product it may be another one."""
    BUGS[name](monkeypatch)
    for seed in (*([FOUND_BY[name]] if name in FOUND_BY else []), *range(1, BUG_SEEDS)):
        story = live(seed)
        if not story.ok:
            print(f"\nseed {seed}: {story.violations[0]}")
            return
    pytest.fail(f"{name} was not found within {BUG_SEEDS} seeds")
