"""`penstock sim`: a seed in, a story out."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from penstock.cli.sim import sim
from penstock.testing.sim import Story


def test_a_seed_that_holds_is_summed_up() -> None:
    said = CliRunner().invoke(sim, ["--seed", "3", "--nodes", "1", "--seconds", "2", "--format", "json"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.output)
    assert (told["ok"], told["seeds"], told["last"]["seed"]) == (True, 1, 3)
    assert told["last"]["counts"]["acknowledged"]


def test_a_violation_ends_the_search_with_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(seed: int, *, nodes: int, seconds: float, secured: bool, transactions: bool) -> Story:
        story = Story(seed, nodes, secured=secured, transactions=transactions, trouble_s=seconds)
        story.tell("node-2", "is killed")
        if seed == 8:
            story.violated("orders-0 has b'p1:7' twice")
        return story

    monkeypatch.setattr("penstock.testing.sim.run", run)
    said = CliRunner().invoke(sim, ["--seed", "7", "--seeds", "5", "--seconds", "4"])
    assert said.exit_code == 1
    assert "node-2      is killed" in said.output
    assert "violated: orders-0 has b'p1:7' twice" in said.output
    assert "replay: penstock sim --seed 8 --nodes 3 --seconds 4" in said.output
    assert "seed 9" not in said.output


def test_minutes_bound_how_many_seeds_are_begun() -> None:
    said = CliRunner().invoke(
        sim, ["--seeds", "1000", "--minutes", "0", "--nodes", "1", "--seconds", "1", "--format", "json"]
    )
    assert said.exit_code == 0, said.output
    assert '"seeds": 1,' in said.output
