"""A writer that appends, rotates, truncates, deletes and makes anew at random: every line comes at least once."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

from tests.faults.agent.tailing import QUICK, Life, Recording, append, numbered, start_tail
from tests.faults.counts import rounds
from tests.patience import until

STEPS = 25
NAMES = ("a.log", "b.log", "c.log")


class Writer:
    """Remembers every line it wrote. Waits until all is read where copying and truncating would race."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.lines: list[bytes] = []
        self.small = False
        """Whether files under 1 KB were copied, which may send lines twice."""

    def write(self, path: Path) -> None:
        count = self.chance.choice((1, 2, 5, 60))
        lines = numbered(path.name, len(self.lines), count, self.chance.choice((0, 10, 200)))
        self.lines += lines
        append(path, lines)

    async def step(self, life: Life) -> None:
        path = self.folder / self.chance.choice(NAMES)
        rotated = self.folder / f"{path.name}.{self.chance.randrange(1, 4)}"
        action = self.chance.choice(
            ("write",) * 6 + ("rename", "copytruncate", "delete", "truncate", "gzip", "link", "rest")
        )
        match action:
            case "write":
                self.write(path)
            case "rename" if path.exists() and not rotated.exists():
                os.rename(path, rotated)
            case "copytruncate" if path.exists() and not rotated.exists():
                await self.all_came(life)
                self.small |= path.stat().st_size < 1024
                shutil.copyfile(path, rotated)
                os.truncate(path, 0)
            case "delete" if path.exists():
                # What is deleted before anybody has opened it is gone.
                await self.all_came(life)
                path.unlink()
            case "truncate" if path.exists():
                await self.all_came(life)
                os.truncate(path, 0)
                self.write(path)
            case "gzip" if rotated.exists():
                await self.all_came(life)
                self.small |= rotated.stat().st_size < 1024
                packed = rotated.with_name(rotated.name + ".gz")
                packed.write_bytes(gzip.compress(rotated.read_bytes()))
                rotated.unlink()
            case "link" if path.exists():
                os.symlink(path, self.folder / "new link")
                os.rename(self.folder / "new link", self.folder / "current.log")
            case _:
                await asyncio.sleep(self.chance.choice((0, 0.005, 0.03)))

    async def all_came(self, life: Life) -> None:
        await life.channel.wait_for(*self.lines)


async def random_life(folder: Path, seed: int, *, exactly: bool = False) -> None:
    """`exactly` in transactions: a kill doubles nothing then."""
    chance = random.Random(seed)
    logs = folder / "logs"
    logs.mkdir(parents=True)
    writer, channel = Writer(logs, chance), Recording()
    settings = QUICK | {"read_bytes": chance.choice((4096, 256 << 10)), "open_files_max": chance.choice((8, 512))}
    life = start_tail(logs / "*.log*", folder / "state", channel, **settings)
    killed = 0
    for _ in range(STEPS):
        await writer.step(life)
        if chance.random() < 0.05:
            killed += 1
            await life.kill()
            channel.acknowledging = True
            life = start_tail(logs / "*.log*", folder / "state", channel, **settings)
    await writer.all_came(life)
    await until(lambda: life.task.done() or life.input.status().behind_bytes == 0)
    assert not life.task.done()
    await life.end()
    counts = channel.counts
    assert set(counts) == set(writer.lines), "lines that nobody wrote"
    if (exactly or not killed) and not writer.small:
        doubled = [line for line, count in counts.items() if count > 1]
        assert not doubled, doubled[:5]


def test_whatever_a_writer_does_every_line_comes(tmp_path: Path) -> None:
    for seed in rounds(30, 3000):
        try:
            asyncio.run(random_life(tmp_path / str(seed), seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


class Rusher(threading.Thread):
    """Writes and rotates by renaming as fast as it can, without regard to anybody who reads."""

    def __init__(self, folder: Path, seed: int, lines: int) -> None:
        super().__init__()
        self.folder, self.chance, self.count = folder, random.Random(seed), lines
        self.lines: list[bytes] = []

    def run(self) -> None:
        log, rotations = self.folder / "app.log", 0
        while len(self.lines) < self.count:
            some = numbered("line", len(self.lines), self.chance.choice((1, 7, 40)), self.chance.choice((0, 60)))
            content = b"".join(line + b"\n" for line in some)
            with log.open("ab", buffering=0) as file:
                # In pieces that end in the middle of lines.
                middle = self.chance.randrange(len(content))
                file.write(content[:middle])
                file.write(content[middle:])
            self.lines += some
            time.sleep(self.chance.choice((0, 0.0005, 0.003)))  # its pace; nothing is waited for
            if self.chance.random() < 0.2:
                rotations += 1
                os.rename(log, self.folder / f"app.log.{rotations:04}")
                if self.chance.random() < 0.3 and rotations > 1:
                    # As logrotate does with several: each moves up by one name.
                    os.rename(self.folder / f"app.log.{rotations:04}", self.folder / f"app.log.{rotations:04}.1")


async def rush(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    logs = folder / "logs"
    logs.mkdir(parents=True)
    channel, rusher = Recording(), Rusher(logs, seed, 5000)
    settings = QUICK | {"read_bytes": 4096, "open_files_max": chance.choice((8, 512))}
    life = start_tail(logs / "app.log*", folder / "state", channel, **settings)
    rusher.start()
    while rusher.is_alive():
        channel.open = chance.random() < 0.7
        await asyncio.sleep(0.001)
    channel.open = True
    await channel.wait_for(*rusher.lines)
    await life.end()
    assert channel.counts == Counter(rusher.lines)


def test_a_writer_that_waits_for_nobody_loses_and_doubles_nothing_by_renaming(tmp_path: Path) -> None:
    for seed in rounds(5, 1000):
        try:
            asyncio.run(rush(tmp_path / str(seed), seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
