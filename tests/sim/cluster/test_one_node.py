"""A cluster of one in the simulator: it comes up, works, dies, recovers, and a story tells what happened."""

from __future__ import annotations

import pytest

from penstock.testing.sim import run


@pytest.mark.parametrize("seed", range(4))
def test_one_node_keeps_what_it_synced_and_comes_back(seed: int) -> None:
    story = run(seed, nodes=1, seconds=5)
    assert story.ok, story.text()
    assert story.counts["acknowledged"]
    assert story.counts["read"]


def test_a_story_of_a_failure_names_what_happened_and_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unwilling(_store: object) -> None:
        raise OSError("no")

    monkeypatch.setattr("penstock.server.reception.listener.Listeners.open", unwilling)
    story = run(9, nodes=1)
    assert not story.ok
    told = story.text()
    assert "node-1 cannot start" in told
    assert "penstock sim --seed 9 --nodes 1" in told
