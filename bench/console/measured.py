"""A console that says what it costs: `python -m bench.console.measured BOOTSTRAP` prints its address, and for each line
that it is told a line of JSON: processor time, memory, and how long its loop was held since the last one.

A hold is the time by which a beat of a millisecond was late, as far as the process worked meanwhile: what it spent
waiting for a processor is the fault of the machine's other work, and waiting for the interpreter's lock is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import psutil

from penstock.cli.console import one_of_many_threads
from penstock.console.serving import listen, serve
from penstock.console.settings import ClusterAddress, ConsoleSettings

BEAT_S: Final = 0.001
LONG_MS: Final = 20.0


def _ran_s(native_id: int) -> float:
    """Seconds that a thread ran."""
    return int(Path(f"/proc/self/task/{native_id}/schedstat").read_text().split()[0]) / 1e9


class Holds:
    """How long the loop was held, beat by beat."""

    def __init__(self) -> None:
        self.worst_ms, self.long, self.beats = 0.0, 0, 0

    async def beat(self) -> None:
        while True:
            began, worked = time.perf_counter(), time.process_time()
            await asyncio.sleep(BEAT_S)
            late_s = min(time.perf_counter() - began - BEAT_S, time.process_time() - worked)
            self.beats += 1
            self.worst_ms = max(self.worst_ms, late_s * 1_000)
            self.long += late_s * 1_000 > LONG_MS

    def told(self) -> dict[str, Any]:
        found = {"worst_ms": self.worst_ms, "long": self.long, "beats": self.beats}
        self.worst_ms, self.long, self.beats = 0.0, 0, 0
        return found


def _costs(holds: Holds) -> dict[str, Any]:
    (sampler,) = [each for each in threading.enumerate() if each.name.startswith("penstock-sampler")]
    assert sampler.native_id is not None, "it runs"
    process = psutil.Process()
    used = process.cpu_times()
    return {
        "cpu_s": used.user + used.system,
        "sampler_cpu_s": _ran_s(sampler.native_id),
        "rss_mb": process.memory_info().rss / 1e6,
        **holds.told(),
    }


async def main(bootstrap: str) -> None:
    keywords = {"bootstrap_servers": bootstrap, "client_id": "penstock-console"}
    settings = ConsoleSettings((ClusterAddress("measured", keywords, keywords, keywords),), port=0, history=False)
    stop, holds = asyncio.Event(), Holds()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def answer() -> None:
        while await reader.readline():
            print(json.dumps(_costs(holds)), flush=True)
        stop.set()

    beside = [asyncio.create_task(holds.beat()), asyncio.create_task(answer())]
    await serve(settings, listen(settings), stop, lambda address: print(address, flush=True))
    for task in beside:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


if __name__ == "__main__":
    one_of_many_threads()  # as the command does
    asyncio.run(main(sys.argv[1]))
