"""Every case of the crash list again, with positions in transactions of which some are aborted, and with kills.

The same tests, told that inputs have their positions in transactions: what was committed counts, and every case says
itself that each line came once. Cases of whole agents are in `test_exactly_once.py`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.agent import test_crash_list
from tests.faults.agent.tailing import Recording, append, numbered, start_tail, transacting
from tests.faults.agent.test_random_writer import random_life
from tests.faults.counts import SOAKING, rounds

OF_AGENTS = {"test_kill_9_between_produce_and_checkpoint", "test_broker_away_for_a_while", "test_disk_full"}
"""They start agents, or fill the disk that positions are not on."""
LONG = {"test_10_000_files"}


@pytest.fixture(autouse=True)
def _in_transactions() -> Iterator[None]:
    with transacting():
        yield


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def _cases() -> dict[str, Callable[..., Any]]:
    found = {}
    for name, case in inspect.getmembers(test_crash_list, inspect.iscoroutinefunction):
        wanted = {"logs", "state"} <= set(inspect.signature(case).parameters)
        if name.startswith("test_") and name not in OF_AGENTS and wanted and (SOAKING or name not in LONG):
            found[name] = case
    return found


globals().update(_cases())


def test_the_list_is_the_whole_list() -> None:
    left = OF_AGENTS | (set() if SOAKING else LONG)
    everything = {name for name in vars(test_crash_list) if name.startswith("test_")}
    assert set(_cases()) == everything - left


async def test_killed_in_the_middle_of_a_rotation_again_and_again(logs: Path, state: Path) -> None:
    """At any moment, in whatever state a transaction is: exactly once, where at-least-once may send some again."""
    log, channel, written = logs / "app.log", Recording(), list[bytes]()
    for number in rounds(25, 300):
        life = start_tail(logs / "app.log*", state, channel, read_bytes=4096)
        lines = numbered(f"life {number}", 0, 300)
        append(log, lines[:200])
        written += lines
        await asyncio.sleep(0.002 * (number % 12))  # another moment each time
        if number % 3 == 0:
            log.rename(logs / f"app.log.{number}")
        append(log, lines[200:])
        await asyncio.sleep(0.001 * (number % 7))
        await life.kill()
        channel.acknowledging = True
    life = start_tail(logs / "app.log*", state, channel)
    await channel.wait_for(*written)
    await life.end()
    test_crash_list.once(channel, written)


def test_whatever_a_writer_does_every_line_comes_once(tmp_path: Path) -> None:
    for seed in rounds(8, 1000):
        try:
            asyncio.run(random_life(tmp_path / str(seed), seed, exactly=True))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
