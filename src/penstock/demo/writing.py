"""The process that writes the access log, and the only one that says how many lines there are.

    python -m penstock.demo.writing FOLDER --seconds 60 --lines-per-s 4000

It writes until SIGTERM, much less when its day is over. FOLDER has `access.log` and what rotation made of it;
`count.json` beside FOLDER says several times a second how many lines were written, and in the end which are broken.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

from penstock.demo.rotating import RotatingLog
from penstock.demo.traffic import MIDNIGHT, Traffic, lines_until, log_time
from penstock.whole_files import write_whole

TICK_S: Final = 0.05
AFTERWARDS: Final = 0.05
"""The share of lines when the day is over: something goes on being written, and a slow machine is not buried."""
COUNT_EVERY_S: Final = 0.2
NEVER: Final = -1


@dataclass(slots=True)
class Count:
    """What the writer says of itself. `broken` are the numbers of broken lines, known when it is `done`."""

    lines: int = 0
    bytes: int = 0
    day_lines: int = 0
    day_bytes: int = 0
    day_s: float = 0.0
    """What the day itself had; afterwards there is little."""
    rotations: int = 0
    at_ms: int = 0
    log_time: str = ""
    done: bool = False
    broken_count: int = 0
    broken: list[int] = field(default_factory=list)

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> Count | None:
        """None while there is none."""
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(**found)


@dataclass(slots=True)
class Writer:
    """Lines in the rhythm of a day."""

    log: RotatingLog
    count_file: Path
    traffic: Traffic
    seconds: float
    lines_per_s: float
    rotate_every_s: float
    first: int = 0
    """The number of the first line."""
    begin: datetime = MIDNIGHT
    """What the log's clock shows then."""
    lose: int = NEVER
    """The number of a line that is counted and not written: a fault for the checks to find."""
    count: Count = field(default_factory=Count)
    _broken: list[int] = field(default_factory=list)
    _written_s: float = 0.0
    """When lines were written last."""
    _stopped: bool = False

    def stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        self._stopped = True

    def run(self) -> None:
        began_s, told_s, rotated_s = time.monotonic(), 0.0, 0.0
        while not self._stopped:
            elapsed_s = time.monotonic() - began_s
            if elapsed_s - rotated_s >= self.rotate_every_s and elapsed_s <= self.seconds:
                rotated_s = elapsed_s
                self.log.rotate()
            self._write_until(elapsed_s)
            if elapsed_s - told_s >= COUNT_EVERY_S:
                told_s = elapsed_s
                self._tell()
            time.sleep(TICK_S)
        self.log.close()
        self.count.broken, self.count.done = self._broken, True
        self._tell()

    def _write_until(self, elapsed_s: float) -> None:
        """The lines that are due, of times that are evenly between the last ones and now."""
        today_s = min(elapsed_s, self.seconds)
        night = int((elapsed_s - today_s) * self.lines_per_s * AFTERWARDS)
        due = lines_until(today_s, self.seconds, self.lines_per_s) + night - self.count.lines
        if due <= 0:
            return
        now_ms = _now_ms()
        before = log_time(self._written_s, self.seconds, self.begin)
        now = log_time(elapsed_s, self.seconds, self.begin)
        self._written_s = elapsed_s
        lines = []
        begin = self.first + self.count.lines
        for number in range(begin, begin + due):
            line, broken = self.traffic.line(number, before + (now - before) * ((number - begin) / due), now_ms)
            if number != self.lose:
                lines.append(line)
                if broken:
                    self._broken.append(number)
        whole = b"\n".join([*lines, b""])
        self.log.write(whole)
        self.count.lines += due
        self.count.bytes += len(whole)
        if elapsed_s <= self.seconds or not self.count.day_s:
            self.count.day_lines, self.count.day_bytes = self.count.lines, self.count.bytes
            self.count.day_s = elapsed_s
        self.count.broken_count = len(self._broken)
        self.count.log_time = now.isoformat()

    def _tell(self) -> None:
        self.count.at_ms, self.count.rotations = _now_ms(), self.log.rotations
        self.count.save(self.count_file)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="penstock.demo.writing", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--lines-per-s", type=float, required=True)
    parser.add_argument("--rotate-every-s", type=float, required=True)
    parser.add_argument("--broken-share", type=float, default=0.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--begin", type=datetime.fromisoformat, default=MIDNIGHT)
    parser.add_argument("--lose", type=int, default=NEVER)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args(arguments)
    writer = Writer(
        log=RotatingLog(given.folder / "access.log"),
        count_file=given.folder.parent / "count.json",
        traffic=Traffic(random.Random(given.seed), broken_share=given.broken_share),
        seconds=given.seconds,
        lines_per_s=given.lines_per_s,
        rotate_every_s=given.rotate_every_s,
        first=given.first,
        begin=given.begin,
        lose=given.lose,
    )
    signal.signal(signal.SIGTERM, writer.stop)
    writer.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
