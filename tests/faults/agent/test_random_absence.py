"""Logs that are rotated in every style while an agent comes and goes: every line comes once, or its file is told."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import random
import shutil
from pathlib import Path

import pytest
import zstandard

from tests.faults.agent.tailing import QUICK, Life, Recording, append, numbered, start_tail, until
from tests.faults.counts import rounds

STEPS = 30
DAY = 20261101


class Log:
    """One log and its rotations. Remembers every line, and which of them nobody can read any more."""

    def __init__(self, folder: Path, name: str, chance: random.Random) -> None:
        self.path, self.chance = folder / f"{name}.log", chance
        self.style = chance.choice(("number", "number", "dateext", "infix", "copytruncate", "copy over", "old"))
        self.packing = chance.choice(("", "", ".gz", ".zst"))
        self.delayed = chance.random() < 0.5
        """Whether it is compressed one rotation later."""
        self.keep = chance.choice((2, 3, 100))
        self.small = chance.random() < 0.2
        self.days = 0
        self.lines: list[bytes] = []
        self.deleted = 0

    def write(self) -> None:
        count = self.chance.choice((1, 2, 5)) if self.small else self.chance.choice((1, 10, 100))
        width = 10 if self.small else self.chance.choice((40, 200))
        lines = numbered(self.path.stem, len(self.lines), count, width)
        self.lines += lines
        append(self.path, lines)

    def rotated(self) -> list[Path]:
        """All of its rotations, the youngest first."""
        found = [path for path in self.path.parent.glob(f"{self.path.stem}*") if path != self.path]
        if self.style in ("number", "copytruncate"):
            return sorted(found, key=lambda path: int(path.name.split(".")[2]))
        return sorted(found, reverse=True)

    def rotate(self) -> None:
        if not self.path.exists():
            return
        self.days += 1
        match self.style:
            case "number" | "copytruncate":
                self._shift()
                first = self._name(".1")
            case "copy over":
                first = self._name(".1")
            case "old":
                first = self._name(".old")
            case "dateext":
                first = self._name(f"-{DAY + self.days}")
            case _:
                first = self.path.with_name(f"{self.path.stem}-{DAY + self.days}.log")
        if self.style in ("copy over", "old"):
            self.deleted += len([path for path in (first, self._packed(first)) if path.exists()])
            self._packed(first).unlink(missing_ok=True)
        if self.style in ("copytruncate", "copy over"):
            # So little proves nothing: it may come twice.
            self.small |= self.path.stat().st_size < 1400
            shutil.copyfile(self.path, first)
            os.truncate(self.path, 0)
        else:
            os.rename(self.path, first)
            if self.chance.random() < 0.5:
                self.path.touch()
        self._compress(first)
        for old in self.rotated()[self.keep :]:
            self.deleted += 1
            old.unlink()

    def _shift(self) -> None:
        for path in reversed(self.rotated()):
            stem, number, *rest = path.name.rsplit(".", 2 if path.suffix in (".gz", ".zst") else 1)
            path.rename(path.with_name(".".join([stem, str(int(number) + 1), *rest])))

    def _compress(self, first: Path) -> None:
        if not self.packing:
            return
        plain = [path for path in self.rotated() if path.suffix not in (".gz", ".zst")]
        for path in plain[1 if self.delayed and self.style in ("number", "dateext", "infix") else 0 :]:
            times, content = path.stat(), path.read_bytes()
            packed = gzip.compress(content) if self.packing == ".gz" else zstandard.compress(content)
            self._packed(path).write_bytes(packed)
            os.utime(self._packed(path), ns=(times.st_atime_ns, times.st_mtime_ns))
            path.unlink()

    def _name(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}{suffix}")

    def _packed(self, path: Path) -> Path:
        return path.with_name(f"{path.name}{self.packing or '.gz'}")


async def at_rest(life: Life, logs: list[Log]) -> None:
    """Until all that can be found is found and read."""
    followed = life.input._followed  # type: ignore[attr-defined]  # what it still looks for shows nowhere else

    def rests() -> bool:
        sizes = {log.path: log.path.stat().st_size for log in logs if log.path.exists()}
        files = {file.path: file for file in life.input.status(details=True).details}
        known = all(str(path) in files and files[str(path)].safe_bytes == size for path, size in sizes.items())
        return known and not followed.disturbed and life.input.status().behind_bytes == 0

    await until(rests, lambda: f"{followed.disturbed}, {[vars_of(file) for file in followed.catalogue]}")


def vars_of(file: object) -> dict[str, object]:
    names = ("path", "place", "read", "size", "ended", "settled", "rotated", "drained", "held_until_ms", "suspicious")
    return {name: getattr(file, name) for name in names}


async def random_life(folder: Path, seed: int, told: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)
    (folder / "logs").mkdir(parents=True)
    logs = [Log(folder / "logs", name, chance) for name in ("a", "b", "c")[: chance.choice((1, 2, 3))]]
    channel, killed = Recording(), 0
    settings = QUICK | {"read_bytes": chance.choice((4096, 256 << 10)), "open_files_max": chance.choice((8, 512))}

    def begin() -> Life:
        channel.acknowledging = True
        return start_tail(folder / "logs" / "?.log", folder / "state", channel, **settings)

    for log in logs:
        log.write()
    life: Life | None = begin()
    await at_rest(life, logs)
    # What an agent has never saved it has never seen.
    await life.end()
    life = begin()
    for _ in range(STEPS):
        log = chance.choice(logs)
        match chance.choice(("write", "write", "write", "rotate", "rotate", "rest", "come and go")):
            case "write":
                log.write()
            case "rotate":
                if life is not None and log.style in ("copy over", "old"):
                    # What is overwritten between two looks is known to nobody.
                    await at_rest(life, [log])
                log.rotate()
            case "rest":
                await asyncio.sleep(chance.choice((0, 0.01, 0.05)))
            case _ if life is None:
                life = begin()
            case _ if chance.random() < 0.3:
                killed += 1
                await life.kill()
                life = None
            case _:
                await life.end()
                life = None
    for log in logs:
        log.write()
    life = life or begin()
    await at_rest(life, logs)
    await life.end()
    for log in logs:
        words = f"seed {seed}: {log.path.name} ({log.style} {log.packing} keep {log.keep})"
        missing = [line for line in log.lines if line not in channel.counts]
        about = [each for each in told.messages if f"/{log.path.stem}." in each or f"/{log.path.stem}-" in each]
        assert not missing or (about and log.deleted), f"{words}: {len(missing)} lines are missing, {missing[:2]}"
        # Of a file that was empty when it was last seen nothing is known that its compressed copy could be known by.
        assert not about or log.deleted or log.packing, f"{words}: {about}"
        doubled = [line for line in log.lines if channel.counts[line] > 1]
        assert killed or log.small or not doubled, f"{words}: {len(doubled)} lines came twice, {doubled[:2]}"
    assert set(channel.counts) <= {line for log in logs for line in log.lines}, "lines that nobody wrote"


def test_whatever_happens_while_it_is_away_lines_come_once_or_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "penstock.agent")
    for seed in rounds(20, 2000):
        caplog.clear()
        try:
            asyncio.run(random_life(tmp_path / str(seed), seed, caplog))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
