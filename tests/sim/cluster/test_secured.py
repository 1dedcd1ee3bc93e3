"""The secured world: logins, ACLs that change all the time, and guests who are served only what they may be."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from penstock.model.security import Operation, Permission, ResourceType
from penstock.security.authorizer import Authorizer, Verdict
from penstock.security.decisions import Decisions
from penstock.testing.sim import run
from penstock.testing.sim.doors import Known, Right, Rights, may
from penstock.testing.sim.world import World
from tests.faults.counts import MINUTES, SOAKING
from tests.sim.cluster.seeds import BUG_SEEDS, SECONDS, SHAPES

EVERY_DAY = 1
"""So many seeds of it are run in `make test`."""

Plant = Callable[[pytest.MonkeyPatch], None]


def decisions_that_outlive_the_acls(patch: pytest.MonkeyPatch) -> None:
    """What was once decided for somebody is remembered for ever."""

    def verdict(self: Decisions, operation: Operation, resource_type: ResourceType, name: str) -> Verdict:
        return self._verdicts.get((operation, resource_type, name)) or self._decide(operation, resource_type, name)

    patch.setattr(Decisions, "verdict", verdict)


def acls_of_the_past(patch: pytest.MonkeyPatch) -> None:
    """A broker knows the ACLs that there were when it came up, and hears of no others."""
    patch.setattr(Authorizer, "follow", lambda _self, _image, _delta: None)


@pytest.mark.timeout(MINUTES * 60 + 600 if SOAKING else 240)
def test_nothing_is_served_that_the_acls_refuse() -> None:
    deadline = time.monotonic() + MINUTES * 60
    for seed in range(1, BUG_SEEDS if SOAKING else 1 + EVERY_DAY):
        if SOAKING and time.monotonic() >= deadline:
            break
        story = run(seed, nodes=SHAPES[seed % len(SHAPES)], seconds=SECONDS, secured=True)
        assert story.ok, story.text()
        assert story.counts["rights changed"]
        assert story.counts["guests refused"]


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("plant", "found_last"), [(decisions_that_outlive_the_acls, 2), (acls_of_the_past, 2)])
def test_a_planted_bug_is_found(plant: Plant, found_last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed that found it last comes first: with another product it may be another one."""
    plant(monkeypatch)
    for seed in (found_last, *range(1, BUG_SEEDS)):
        story = run(seed, nodes=3, seconds=SECONDS, secured=True)
        if any(words.startswith("A: ") for words in story.violations):
            print(f"\nseed {seed}: {story.violations[0]}")
            return
    pytest.fail(f"{plant.__name__} was not found within {BUG_SEEDS} seeds")


def test_what_a_broker_knew_holds_from_its_publication_to_the_next() -> None:
    known = Known(World(1))
    nothing: Rights = frozenset()
    something = frozenset({Right("guest-1", Operation.READ, Permission.ALLOW)})
    known._since[1] = [(1.0, nothing), (2.0, something), (3.0, nothing)]
    assert known.between(1, 1.2, 1.8) == [nothing]
    assert known.between(1, 1.5, 2.0) == [nothing, something], "in the instant of a change both hold"
    assert known.between(1, 2.1, 5.0) == [something, nothing]
    assert known.between(1, 0.1, 0.5) == []
    assert known.between(2, 0.0, 9.0) == []


def test_a_deny_is_stronger_than_an_allow() -> None:
    allow, deny = (Right("guest-1", Operation.READ, each) for each in (Permission.ALLOW, Permission.DENY))
    assert may(frozenset({allow}), "guest-1", Operation.READ)
    assert not may(frozenset({allow, deny}), "guest-1", Operation.READ)
    assert not may(frozenset({allow}), "guest-1", Operation.WRITE)
    assert not may(frozenset({allow}), "guest-2", Operation.READ)
