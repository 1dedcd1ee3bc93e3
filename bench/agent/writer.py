"""Appends lines at a rate: `python -m bench.agent.writer FILE LINE_BYTES RATE:SECONDS[,RATE:SECONDS ...]`.

Lines are numbered, on from what the file has, and of one length, so the size of the file says how many there are.
Each step of ten milliseconds is one write, as a logger with a small buffer does it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from bench.agent.lines import make_block

STEP_S = 0.01
NUMBER_BYTES = 12
BLOCK_BYTES = 2_000_000


def write(path: Path, line_bytes: int, schedule: list[tuple[float, float]]) -> int:
    """Returns how many lines it wrote. A step that comes late is made up for."""
    block = make_block("numbered", line_bytes, BLOCK_BYTES)
    tails = [block[at + NUMBER_BYTES : at + line_bytes] for at in range(0, len(block), line_bytes)]
    written = path.stat().st_size // line_bytes if path.exists() else 0
    first, due = written, float(written)
    with path.open("ab", buffering=0) as file:
        began = time.monotonic()
        for rate, seconds in schedule:
            before, due = due, due + rate * seconds
            while written < int(due):
                elapsed_s = time.monotonic() - began
                goal = min(int(due), int(before + rate * elapsed_s) + 1)
                file.write(
                    b"".join(b"%012d%b" % (number, tails[number % len(tails)]) for number in range(written, goal))
                )
                written = goal
                time.sleep(STEP_S)
            # What the phase has left of its time, when nothing was to be written.
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            began = time.monotonic()
    return written - first


def main() -> None:
    path, line_bytes, words = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    schedule = [
        (float(rate), float(seconds)) for rate, _, seconds in (word.partition(":") for word in words.split(","))
    ]
    print(write(path, line_bytes, schedule))


if __name__ == "__main__":
    main()
