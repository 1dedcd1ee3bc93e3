"""Seeds of exactly-once sinks on the real coordinator: whatever dies, sleeps or comes twice, a record is shown once."""

from __future__ import annotations

import os

import pytest

from tests.faults.counts import rounds
from tests.sim.exactly.life import counted, live
from tests.sim.exactly.world import SinkWorld
from tests.sim.transactions.life import told

HAPPENS = (
    *("whole", "torn", "drivers", "drivers died", "drivers slept", "attempts died", "attempts slept", "speculated"),
    *("the ledger vanished", "forgotten", "failovers", "by the clock", "zombie markers"),
)


@pytest.mark.timeout(14_400)
def test_a_record_is_shown_once_whoever_dies_or_sleeps() -> None:
    chosen = os.environ.get("PENSTOCK_SEED")
    first: list[SinkWorld] = []
    for seed in [int(chosen)] if chosen else rounds(fast=300, full=100_000):
        try:
            world = live(seed)
        except Exception as broken:
            story = told(broken.world)  # type: ignore[attr-defined]  # `live` gives it
            rerun = f"PENSTOCK_SEED={seed} python -m pytest tests/sim/exactly/test_exactly.py"
            pytest.fail(f"seed {seed}: {type(broken).__name__}: {broken}\nrerun: {rerun}\n{story}")
        if len(first) < 300:
            first.append(world)
    happened = counted(first)
    assert chosen or all(happened[what] for what in HAPPENS), happened
