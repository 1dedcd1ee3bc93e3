"""A life, short in `make test` and as long as asked for in the soak: nothing is lost, and in the soak nothing grows."""

from __future__ import annotations

import json
import logging
import os
import random
import time
from pathlib import Path

import pytest

from tests.compat.cluster import wait_for
from tests.faults.counts import MINUTES, SOAKING
from tests.life import page
from tests.life.sampling import Samples
from tests.life.settings import SETTLED_S
from tests.life.verdict import QUARTER, UNJUDGED, grown_types, growths
from tests.life.world import STEADY, World

# kafka-python leaves sockets behind whose connection failed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

SAMPLE_S = 2.0
KILL_S = (30.0, 60.0)
ACTIVITIES = (
    "topics created", "topics deleted", "topics made anew under an old name", "partitions added", "partitions moved",
    "configs changed", "records deleted", "leaders elected", "groups deleted", "groups of the classic protocol",
    "groups of the consumer protocol", "producers that came and went", "rotations of the log", "kill -9",
)  # fmt: skip


def live(world: World, samples: Samples, seconds: float, chance: random.Random) -> dict[int, dict[str, int]]:
    """Samples and kills for so long; answers what the nodes' memory consisted of after a quarter."""
    kill_at, counts = chance.uniform(*KILL_S), {}
    while samples.seconds < seconds:
        samples.look()
        assert not (found := world.troubles()), "\n".join(found)
        if not counts and samples.seconds >= QUARTER * seconds:
            counts = world.cluster.counts(STEADY)
        if samples.seconds >= kill_at:
            world.kill()
            kill_at = samples.seconds + chance.uniform(*KILL_S)
        time.sleep(SAMPLE_S)  # the pace of the samples; nothing is waited for
    return counts


@pytest.mark.soak
@pytest.mark.timeout(5 * 3_600)
def test_nothing_grows_in_a_life(tmp_path: Path) -> None:
    """PENSTOCK_SEED draws another one; KEEP=1 writes the page."""
    assert SOAKING
    seed = os.environ.get("PENSTOCK_SEED", "1")
    seconds = MINUTES * 60
    assert QUARTER * seconds >= SETTLED_S, f"a life of {MINUTES:g} minutes is too short to be judged on this machine"
    with World(tmp_path, topics=9, topic_life_s=8.0, visit_rate=0.1, measured=True, seed=seed) as world:
        samples = Samples(world)
        before = live(world, samples, seconds, random.Random(seed))
        after = world.cluster.counts(STEADY)
        (tmp_path / "samples.json").write_text(json.dumps(samples.series))
        wrong = world.end()
        counted = world.counted()
    judged = {name: points for name, points in samples.series.items() if not any(who in name for who in UNJUDGED)}
    told = {name: points for name, points in samples.series.items() if name not in judged}
    found = page.Found(MINUTES, samples.series, growths(judged, seconds), growths(told, seconds), counted, wrong)
    print(page.as_markdown(found))
    for node_id in STEADY:
        print(f"objects of node {node_id}: {', '.join(grown_types(before[node_id], after[node_id]))}")
    if os.environ.get("KEEP"):
        page.write(found)
    assert not wrong, "\n".join(wrong[:20])
    grown = [f"{each.name}: {each.quarter:.1f} → {each.end:.1f}" for each in found.growths if not each.held]
    assert not grown, f"grown: {grown}"
    assert [name for name in ACTIVITIES if not counted.get(name)] == []


@pytest.mark.timeout(300)
def test_a_short_life_loses_nothing(tmp_path: Path) -> None:
    """Everybody but Spark, every activity, one kill."""
    with World(tmp_path, topics=9, topic_life_s=3.0, visit_rate=0.2, measured=False, seed="1") as world:
        samples = Samples(world)
        world.kill()

        def everything_happened() -> bool:
            samples.look()
            assert not (found := world.troubles()), "\n".join(found)
            counted = world.counted()
            return all(counted.get(name) for name in ACTIVITIES)

        wait_for("every activity", everything_happened, timeout_s=60, pause_s=0.5)
        wrong = world.end()
        counted = world.counted()
    assert not wrong, "\n".join(wrong[:20])
    assert {name.partition(" of ")[0] for name in samples.series} >= {"memory", "descriptors", "threads", "files"}
    assert [name for name in ACTIVITIES if not counted.get(name)] == []
