"""A writer that appends, rotates, truncates, deletes and makes anew at random: every line comes at least once."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import shutil
from pathlib import Path

from tests.faults.agent.tailing import QUICK, Life, Recording, append, numbered, start_tail, until
from tests.faults.counts import rounds

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


async def random_life(folder: Path, seed: int) -> None:
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
    if not killed and not writer.small:
        doubled = [line for line, count in counts.items() if count > 1]
        assert not doubled, doubled[:5]


def test_whatever_a_writer_does_every_line_comes(tmp_path: Path) -> None:
    for seed in rounds(30, 3000):
        try:
            asyncio.run(random_life(tmp_path / str(seed), seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
