"""Clocks, threads and helper processes."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from penstock.server.loops.ports import SystemClock, ThreadOffload, WorkerFailed
from tests.unit.server.served import on_loop

WORKER = """
import json, sys, os
order = json.loads(sys.stdin.readline())
task, arguments = order["task"], order["arguments"]
if task == "double":
    print(json.dumps({"result": {"n": 2 * arguments["n"], "pid": os.getpid()}}))
elif task == "refuse":
    print(json.dumps({"error": "ValueError: no"}))
elif task == "crash":
    sys.exit("it broke")
elif task == "babble":
    print("hello")
elif task == "hang":
    sys.stdin.read()
    import time
    time.sleep(600)
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "pretended_worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "pretended_worker"


def test_the_clock_tells_wall_time_in_whole_milliseconds() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 1_000
    first = clock.monotonic_ms()
    assert clock.monotonic_ms() >= first


@on_loop
async def test_a_call_runs_in_another_thread() -> None:
    offload = ThreadOffload()
    assert await offload.call(threading.get_ident) != threading.get_ident()
    assert await offload.call(pow, 2, 10) == 1024
    offload.close()


@on_loop
async def test_a_task_runs_in_another_process(worker: str) -> None:
    offload = ThreadOffload(processes=2, module=worker)
    results = await asyncio.gather(*(offload.run("double", {"n": n}) for n in range(3)))
    assert [result["n"] for result in results] == [0, 2, 4]
    assert len({result["pid"] for result in results}) == 3
    offload.close()


@pytest.mark.parametrize(
    ("task", "words"), [("refuse", "ValueError: no"), ("crash", "ended with 1: it broke"), ("babble", "no JSON")]
)
@on_loop
async def test_a_task_that_fails_says_why(worker: str, task: str, words: str) -> None:
    offload = ThreadOffload(module=worker)
    with pytest.raises(WorkerFailed, match=words):
        await offload.run(task, {})
    offload.close()


@on_loop
async def test_cancelling_kills_the_helper(worker: str) -> None:
    offload = ThreadOffload(module=worker)
    running = asyncio.ensure_future(offload.run("hang", {}))
    while not (offload._helpers and next(iter(offload._helpers)).process):
        await asyncio.sleep(0.001)
    (helper,) = offload._helpers
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert helper.process is not None
    assert helper.process.returncode == -9
    offload.close()


@on_loop
async def test_cancelling_before_the_helper_runs_leaves_none_behind(worker: str) -> None:
    offload = ThreadOffload(module=worker)
    running = asyncio.ensure_future(offload.run("hang", {}))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not offload._helpers
    offload.close()
