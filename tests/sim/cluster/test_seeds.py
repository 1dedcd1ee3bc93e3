"""Whole clusters under seeds: nothing acknowledged is lost, and a seed tells the same story every time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.pool import AsyncResult

import pytest

from penstock.testing.sim import Story, run
from tests.faults.counts import MINUTES, SOAKING, time_s
from tests.sim.cluster.seeds import FOUND, SECONDS, SHAPES

FAST_S = 10.0
"""How long `make test` tries new seeds."""

FIRST_SEED = int(os.environ.get("PENSTOCK_SEED", "1"))


def held(story: Story) -> None:
    if not story.ok:
        pytest.fail(story.text(), pytrace=False)


def by_time(limit_s: float) -> Iterator[int]:
    """Seeds until time is over."""
    until = time_s() + limit_s
    seed = FIRST_SEED
    while time_s() < until:
        yield seed
        seed += 1


def live(seed: int) -> tuple[float, str]:
    """One world: how long it lived, and its story if something was violated."""
    story = run(seed, nodes=SHAPES[seed % len(SHAPES)], seconds=SECONDS)
    return story.virtual_s, "" if story.ok else story.text()


def on_all_cores(limit_s: float) -> Iterator[tuple[float, str]]:
    """The same with a process for each core, which are given a seed whenever they are free."""
    cores = os.cpu_count() or 1
    with get_context("spawn").Pool(cores) as pool:
        running = deque[AsyncResult[tuple[float, str]]]()
        for seed in by_time(limit_s):
            running.append(pool.apply_async(live, (seed,)))
            if len(running) > 2 * cores:
                yield running.popleft().get()
        while running:
            yield running.popleft().get()


@pytest.mark.parametrize(("seed", "nodes"), FOUND)
def test_what_was_found_once_is_not_found_again(seed: int, nodes: int) -> None:
    held(run(seed, nodes=nodes, seconds=SECONDS))


@pytest.mark.timeout(MINUTES * 60 + 300 if SOAKING else 120)
def test_clusters_keep_their_promises(capsys: pytest.CaptureFixture[str]) -> None:
    began, seeds, virtual_s = time_s(), 0, 0.0
    for lived_s, broken in on_all_cores(MINUTES * 60) if SOAKING else map(live, by_time(FAST_S)):
        if broken:
            pytest.fail(broken, pytrace=False)
        seeds, virtual_s = seeds + 1, virtual_s + lived_s
    rate = seeds / (time_s() - began)
    with capsys.disabled():
        print(f"\n{seeds} whole clusters, {virtual_s:.0f} virtual seconds, {rate:.2f} seeds a second")


@pytest.mark.parametrize("seed", [3])
def test_a_seed_tells_the_same_story_twice(seed: int) -> None:
    first, second = (run(seed, nodes=3, seconds=6) for _ in range(2))
    assert first.last == second.last
    assert first.digest == second.digest


def test_a_seed_does_not_depend_on_how_text_is_hashed() -> None:
    command = "from penstock.testing.sim import run; print(run(1, nodes=3, seconds=5).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "7")
    }
    assert len(digests) == 1, digests
