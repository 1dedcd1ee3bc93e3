"""A running agent is found by its state; one that was killed is not taken for alive."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.agent.presence import FILE_NAME, Presence, announce, find, read, withdraw
from penstock.processes import birth_of


def test_who_runs_there_is_found_until_it_withdraws(tmp_path: Path) -> None:
    me = Presence(os.getpid(), "web-1", "127.0.0.1:9645", "0.1", "/etc/agent.toml")
    announce(tmp_path, me)
    assert find(tmp_path) == me
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    withdraw(tmp_path, me.pid + 1)
    assert find(tmp_path) == me
    withdraw(tmp_path, me.pid)
    assert find(tmp_path) is None


def test_a_process_that_is_gone_runs_nowhere(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    announce(tmp_path, Presence(gone.pid, "web-1"))
    assert read(tmp_path) == Presence(gone.pid, "web-1")
    assert find(tmp_path) is None


def test_another_process_with_its_number_is_not_the_agent(tmp_path: Path) -> None:
    """Numbers are used again, soonest after the machine was started anew."""
    me = Presence(os.getpid(), "web-1", born=birth_of(os.getpid()))
    announce(tmp_path, me)
    assert find(tmp_path) == me
    boot, _, began = me.born.partition("/")
    for born in (f"{boot}/{int(began) - 1}", f"another boot/{began}", birth_of(1)):
        announce(tmp_path, Presence(os.getpid(), "web-1", born=born))
        assert find(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", "3", '{"pid": "x", "name": "n"}', '{"pid": -1, "name": "n"}', '{"pid": 1}'])
def test_what_is_not_ours_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    assert find(tmp_path) is None
