"""Stories that were written down: code that only moves tells the same ones.

`stories.txt` has seed and digest, a line each. Who changes what a cluster does changes some; the commit says why, and
the line is written anew with what the failure prints.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.testing.sim import run
from tests.faults.counts import MINUTES, SOAKING
from tests.sim.cluster.seeds import SECONDS, SHAPES

EVERY_DAY = 2
"""So many of them are told in `make test`."""

STORIES = {
    int(seed): digest
    for seed, digest in map(str.split, Path(__file__).with_name("stories.txt").read_text().splitlines())
}


@pytest.mark.timeout(MINUTES * 60 + 600 if SOAKING else 120)
def test_seeds_tell_the_stories_that_were_written_down() -> None:
    told = {
        seed: run(seed, nodes=SHAPES[seed % len(SHAPES)], seconds=SECONDS).digest
        for seed in list(STORIES)[: None if SOAKING else EVERY_DAY]
    }
    other = {seed: digest for seed, digest in told.items() if digest != STORIES[seed]}
    assert not other, "\n".join(f"{seed} {digest}" for seed, digest in other.items())
