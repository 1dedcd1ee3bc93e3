"""A disk of its own for a node: ext4 in a file, behind a loop device. Its power can be cut, it can hang and be filled.

A power cut is ext4's shutdown ioctl: from that moment nothing reaches the device any more, the journal's last words
neither, and whoever asks is told EIO. Mounted again, the file system replays its journal, and what was not synced is
gone, as after any power cut.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.leftovers import note_command
from tests.patience import within

DISK_BYTES = 256 << 20
_EXT4_IOC_SHUTDOWN = 0x8004587D
_WITHOUT_THE_JOURNAL = 2
_FREEZE, _THAW = 0xC0045877, 0xC0045878
FILLER = "filler"


def _run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=check, timeout=within(30))


@cache
def disks_allowed() -> bool:
    """Whether we may mount ext4 from a file and cut its power."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        return False
    with TemporaryDirectory() as home:
        disk = Disk(Path(home) / "image", Path(home) / "mounted")
        try:
            disk.make()
            disk.cut_power()
            disk.repair()
        except (OSError, subprocess.CalledProcessError):
            return False
        finally:
            disk.close()
    return True


class Disk:
    """`image` is the file, `path` where it is mounted; the file system belongs to this object alone."""

    def __init__(self, image: Path, path: Path) -> None:
        self.image, self.path = image, path

    def make(self) -> None:
        self.image.parent.mkdir(parents=True, exist_ok=True)
        with self.image.open("wb") as file:
            file.truncate(DISK_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", str(self.image))
        self.path.mkdir(parents=True, exist_ok=True)
        note_command("rm", "-f", str(self.image))
        note_command("umount", "-l", str(self.path))
        note_command("fsfreeze", "-u", str(self.path))
        self._mount()
        # A directory of the file system's own, which no node has to know.
        (self.path / "lost+found").rmdir()

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.path))

    def cut_power(self) -> None:
        """From now on nothing is written, and every call that would is told EIO."""
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(directory, _EXT4_IOC_SHUTDOWN, struct.pack("I", _WITHOUT_THE_JOURNAL))
        finally:
            os.close(directory)

    def hang(self) -> None:
        """Whoever writes waits, until it is `thaw`ed. Reads are answered."""
        self._ioctl(_FREEZE)

    def thaw(self) -> None:
        self._ioctl(_THAW)

    def _ioctl(self, request: int) -> None:
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(directory, request, 0)
        finally:
            os.close(directory)

    def repair(self) -> None:
        """Mounts it again, with what its journal has. Nobody may have a file of it open."""
        _run("umount", str(self.path))
        self._mount()

    def fill(self) -> None:
        """Nothing more fits."""
        with (self.path / FILLER).open("wb", buffering=0) as file:
            for size in (1 << 24, 1 << 20, 1 << 12):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        (self.path / FILLER).unlink(missing_ok=True)

    def close(self) -> None:
        _run("umount", "-l", str(self.path), check=False)
        self.image.unlink(missing_ok=True)
