"""A node that breaks ends with 1 and says why; one that is told to stop ends in time, whatever hangs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from penstock.quorum import events
from tests.cli.command import Running, penstock
from tests.compat.processes import Child, wait_for

PATIENCE_S = 60.0
BOUND_S = 1.0


@contextmanager
def planted(folder: Path, name: str, stop_within_s: float = BOUND_S) -> Iterator[Child]:
    """A node with something planted in it, which takes effect as soon as it has said that it is ready."""
    command = [sys.executable, "-m", "tests.faults.planted_node", name, str(stop_within_s), str(folder / "data")]
    child = Child(command, folder / "log")
    try:
        wait_for(
            "the node to be ready",
            lambda: "Penstock is ready" in child.log.read_text() or not child.running(),
            timeout_s=PATIENCE_S,
        )
        yield child
    finally:
        child.kill()


def effect_name(effect: type[Any]) -> str:
    return effect.__name__


@pytest.mark.parametrize("effect", get_args(events.Effect), ids=effect_name)
def test_a_node_whose_quorum_cannot_carry_out_an_effect_ends_with_1(tmp_path: Path, effect: type[Any]) -> None:
    with planted(tmp_path, effect.__name__) as node:
        assert node.wait(PATIENCE_S) == 1
    why = f"penstock: the node has stopped: the metadata quorum has stopped: {effect.__name__} failed: Planted"
    said = node.log.read_text()
    assert why in said
    assert "the alarm is off" in said, "an alarm that rings when Python has no handler any more kills the process"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("task", "planted task failed: Planted"),
        ("listener", "the listener broken of the metadata failed: Planted"),
        ("controller", "a decision of the controller's own failed: Planted"),
    ],
)
def test_a_node_of_which_a_part_breaks_ends_with_1(tmp_path: Path, name: str, words: str) -> None:
    with planted(tmp_path, name) as node:
        assert node.wait(PATIENCE_S) == 1
    assert words in node.log.read_text().rpartition("penstock: the node has stopped: ")[2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("await", "it was syncing and closing the logs; waiting in sleep (tasks.py:"),
        ("loop", "it was syncing and closing the logs; waiting in stop (node.py:"),
        ("thread", "it was waiting for calls to the disk that were begun"),
        ("held", "thread MainThread in hang_before_the_signal (planted_node.py:"),
    ],
)
def test_a_node_that_hangs_when_it_is_told_to_stop_ends_all_the_same_and_says_in_what(
    tmp_path: Path, name: str, words: str
) -> None:
    with planted(tmp_path, name) as node:
        os.kill(node.pid, signal.SIGTERM)
        assert node.wait(PATIENCE_S) == 1
    said = node.log.read_text()
    assert f"penstock: the node did not end within {BOUND_S:.0f} s and is cut off" in said
    assert words in said


def test_two_signals_at_once_are_one_wish_to_stop(tmp_path: Path) -> None:
    for one, two in ((signal.SIGINT, signal.SIGTERM), (signal.SIGINT, signal.SIGINT)):
        with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / two.name) as node:
            node.wait_to_say("Penstock is ready")
            node.send(one)
            assert node.stop(two) == 0, node.words
            assert "at once" not in node.words


def test_signals_that_go_on_stop_a_node_at_once(tmp_path: Path) -> None:
    def pressed_again() -> bool:
        if node.running():
            os.kill(node.pid, signal.SIGINT)
        return not node.running()

    with planted(tmp_path, "await", stop_within_s=PATIENCE_S) as node:
        wait_for("the node to end", pressed_again, timeout_s=PATIENCE_S / 2)
        assert node.wait(PATIENCE_S) == 1
    assert "stopped at once; the next start will recover" in node.log.read_text()


def test_a_node_whose_bootstrap_file_is_broken_starts_if_it_has_a_log_and_says_so_if_it_has_none(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    bootstrap = data / "node-1" / "bootstrap.checkpoint"
    with Running("dev", "--port", "0", "--data-dir", data, log=tmp_path / "first") as node:
        node.wait_to_say("Penstock is ready")
        assert node.stop() == 0
    bootstrap.write_bytes(b"")
    with Running("dev", "--port", "0", "--data-dir", data, log=tmp_path / "second") as node:
        address = node.wait_to_say(r"bootstrap +(\S+)")[1]
        assert penstock("topic", "create", "t", "-b", address).code == 0
        assert node.stop() == 0
    for part in (data / "node-1" / "__cluster_metadata-0").iterdir():
        if not part.name.endswith(".checkpoint"):
            part.unlink()
    said = penstock("dev", "--port", "0", "--data-dir", data)
    assert said.code == 1
    assert f"a new cluster starts from {bootstrap}, and it cannot be read" in said.err


def test_a_stop_has_a_time_of_its_own_for_a_slow_disk(tmp_path: Path) -> None:
    """The last syncs may take longer than a disk of a node that serves may hang."""
    with planted(tmp_path, "slow", 60) as node:
        os.kill(node.pid, signal.SIGTERM)
        assert node.wait(PATIENCE_S) == 0, node.tail()
