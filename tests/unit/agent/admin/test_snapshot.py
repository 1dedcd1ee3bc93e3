"""One picture of an agent: it survives JSON, and what is wrong with it is said in sentences."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from penstock.agent.admin.snapshot import InputSnapshot, Snapshot, decode
from penstock.agent.admin.verdicts import health, readiness
from penstock.agent.inputs.input import FileStatus

WELL = Snapshot(
    "web-1",
    state="running",
    bootstrap="b:9092",
    inputs={"access": InputSnapshot("tail", state="running", events=7, details=[FileStatus("/a", 9, 8, 7)])},
    memory_limit_bytes=100,
    brokers_up=True,
)


def test_a_picture_is_the_same_after_its_journey_as_json() -> None:
    assert decode(json.dumps(WELL.data()).encode()) == WELL


def test_a_reader_of_another_version_ignores_what_it_does_not_know() -> None:
    told = {"name": "a", "new_thing": 1, "inputs": {"x": {"kind": "tail", "also_new": []}}}
    assert decode(json.dumps(told).encode()) == Snapshot("a", inputs={"x": InputSnapshot("tail")})


def test_what_is_no_status_is_an_error() -> None:
    with pytest.raises(ValueError, match="name"):
        decode(b"{}")


def test_an_agent_that_is_well_gives_no_reasons() -> None:
    assert (health(WELL), readiness(WELL)) == ([], [])


@pytest.mark.parametrize(
    ("change", "healthy", "words"),
    [
        ({"brokers_up": False}, True, "no broker answers at b:9092"),
        (
            {"brokers_up": False, "last_error": "no broker answers: refused"},
            True,
            "no broker answers at b:9092 (refused)",
        ),
        ({"brokers_up": False, "memory_bytes": 100}, True, "memory is full, senders wait"),
        ({"brokers_up": False, "spool_limit_bytes": 50}, True, "goes to the spool"),
        ({"brokers_up": False, "spool_limit_bytes": 50, "spool_bytes": 50}, True, "the spool is full"),
        (
            {"checkpoint_age_s": 61.0, "state_dir": "/s"},
            False,
            "positions were not saved for 61 s; is the disk of /s full?",
        ),
        ({"state": "stopping"}, True, "it is stopping"),
        (
            {"inputs": {"cron": InputSnapshot("exec", state="waiting", last_error="code 127")}},
            False,
            "input cron fails and is tried again: code 127",
        ),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, object], healthy: bool, words: str) -> None:
    snapshot = replace(WELL, **change)  # type: ignore[arg-type]  # the cases name fields
    assert words in "; ".join(readiness(snapshot))
    assert (health(snapshot) == []) is healthy
