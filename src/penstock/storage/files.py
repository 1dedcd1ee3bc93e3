"""The disk behind the Files port. Descriptors are borrowed, not owned: any file can be closed and opened again.

A node with 10,000 partitions has more files than descriptors, so `DiskFiles` keeps at most `max_open` descriptors and
closes the ones that were not used lately. A `DiskFile` opens its path again on demand and nobody notices. Whoever
is inside a call, or holds a pin, holds the descriptor itself: an eviction, a rename or a removal meanwhile cannot pull
the file away, because a descriptor closes when its last holder lets go.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from penstock.model.ids import Millis
from penstock.model.ports import File

# Linux refuses more buffers than this in one pwritev.
_BUFFERS_PER_WRITE = 1024


MODE = 0o600
"""Records, keys of users and secrets among configs are their owner's alone, whatever the umask."""


def descriptor_budget() -> int:
    """How many descriptors the log may keep: half of what the process has; the other half is for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, (soft if soft != resource.RLIM_INFINITY else 1 << 20) // 2)


class _Syncs:
    """Whether syncs are put off for now, and the renames that have to wait for them."""

    __slots__ = ("put_off", "renames")

    def __init__(self) -> None:
        self.put_off = False
        self.renames: list[tuple[str, str]] = []


class OpenFile:
    """An open descriptor that lives as long as somebody refers to it. Reads like a File, for pinned spans."""

    __slots__ = ("_device", "_syncs", "fd", "path", "used")

    def __init__(self, fd: int, path: str, syncs: _Syncs) -> None:
        self.fd = fd
        self.path = path
        self._syncs = syncs
        self._device = -1
        self.used = True

    @property
    def device(self) -> int:
        """The number of the volume that it lies on."""
        if self._device < 0:
            self._device = os.fstat(self.fd).st_dev
        return self._device

    def pread(self, size: int, position: int) -> bytes:
        try:
            return _pread(self.fd, size, position)
        except OSError as error:
            raise _named(error, self.path) from None

    def pwritev(self, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> int:
        try:
            return _pwritev(self.fd, buffers, position)
        except OSError as error:
            raise _named(error, self.path) from None

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self.fd, size)
        except OSError as error:
            raise _named(error, self.path) from None

    def sync(self) -> None:
        # The size and the bytes; nobody needs the file's times to be durable.
        if not self._syncs.put_off:
            try:
                os.fdatasync(self.fd)
            except OSError as error:
                raise _named(error, self.path) from None

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def fileno(self) -> int:
        return self.fd

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class DiskFile:
    """A path with a descriptor when one is needed. Safe to `sync` in a thread while the loop goes on writing."""

    __slots__ = ("_descriptor", "_files", "_writable", "path")

    def __init__(self, files: DiskFiles, path: str, writable: bool, descriptor: OpenFile) -> None:
        self._files = files
        self.path = path
        self._writable = writable
        self._descriptor: OpenFile | None = descriptor

    def pin(self) -> OpenFile:
        """The open descriptor itself: it stays readable after this file is evicted, renamed or removed."""
        descriptor = self._descriptor or self._reopen()
        descriptor.used = True
        return descriptor

    def pread(self, size: int, position: int) -> bytes:
        descriptor = self._descriptor or self._reopen()
        descriptor.used = True
        try:
            return _pread(descriptor.fd, size, position)
        except OSError as error:
            raise _named(error, self.path) from None

    def pwritev(self, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> int:
        descriptor = self._descriptor or self._reopen()
        descriptor.used = True
        try:
            if len(buffers) == 1:
                # Nearly every write is of one batch, and whole.
                written = os.pwrite(descriptor.fd, buffers[0], position)
                if written == len(buffers[0]):
                    return written
                return written + _pwritev(descriptor.fd, _after(buffers, written), position + written)
            return _pwritev(descriptor.fd, buffers, position)
        except OSError as error:
            raise _named(error, self.path) from None

    def truncate(self, size: int) -> None:
        descriptor = self._descriptor or self._reopen()
        descriptor.truncate(size)

    def sync(self) -> None:
        descriptor = self._descriptor or self._reopen()
        descriptor.sync()

    def size(self) -> int:
        descriptor = self._descriptor or self._reopen()
        return os.fstat(descriptor.fd).st_size

    def fileno(self) -> int:
        descriptor = self._descriptor or self._reopen()
        descriptor.used = True
        return descriptor.fd

    def close(self) -> None:
        """Lets the descriptor go. A later call opens the path again."""
        self._descriptor = None
        self._files.forget(self)

    def _reopen(self) -> OpenFile:
        self._descriptor = descriptor = self._files.descriptor(self.path, _flags(False, self._writable))
        self._files.admit(self)
        return descriptor


class DiskFiles:
    """The Files port on a real disk."""

    def __init__(self, max_open: int | None = None) -> None:
        self.max_open = max_open or descriptor_budget()
        # In order of opening; the sweep gives a file that was used since the last sweep a second chance.
        self._open: dict[DiskFile, None] = {}
        self._syncs = _Syncs()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> DiskFile:
        file = DiskFile(self, path, writable, self.descriptor(path, _flags(create, writable)))
        self.admit(file)
        return file

    def descriptor(self, path: str, flags: int) -> OpenFile:
        """Opens a path. When the process has run out of descriptors, idle files give theirs up first."""
        try:
            return OpenFile(os.open(path, flags, MODE), path, self._syncs)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        for file in list(self._open):
            file._descriptor = None
            self.forget(file)
        return OpenFile(os.open(path, flags, MODE), path, self._syncs)

    def admit(self, file: DiskFile) -> None:
        """Counts a newly opened file and closes idle ones when there are too many."""
        self._open[file] = None
        if len(self._open) > self.max_open:
            self._sweep(spare=file)

    def forget(self, file: DiskFile) -> None:
        self._open.pop(file, None)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def _sweep(self, spare: DiskFile) -> None:
        # A tenth at a time, so that a walk over more files than fit does not sweep at every step.
        surplus = len(self._open) - self.max_open + self.max_open // 10
        for file in list(self._open):
            if surplus <= 0:
                return
            if file is spare:
                continue
            descriptor = file._descriptor
            self._open.pop(file, None)
            if descriptor is not None and descriptor.used:
                descriptor.used = False
                self._open[file] = None
            else:
                file._descriptor = None
                surplus -= 1
        if len(self._open) > self.max_open:
            self._sweep(spare)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def isdir(self, path: str) -> bool:
        return os.path.isdir(path)

    def makedirs(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def mtime_ms(self, path: str) -> Millis:
        return Millis(os.stat(path).st_mtime_ns // 1_000_000)

    def set_mtime_ms(self, path: str, at: Millis) -> None:
        os.utime(path, ns=(at * 1_000_000, at * 1_000_000))

    def read(self, path: str) -> bytes:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _pread(fd, max(os.fstat(fd).st_size, 1), 0)
        except OSError as error:
            raise _named(error, path) from None
        finally:
            os.close(fd)

    def write_atomic(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, MODE)
        try:
            _pwritev(fd, (data,), 0)
            if not self._syncs.put_off:
                os.fsync(fd)
        finally:
            os.close(fd)
        if self._syncs.put_off:
            self._syncs.renames.append((temporary, path))
            return
        os.replace(temporary, path)
        self.sync_dir(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def rmtree(self, path: str) -> None:
        shutil.rmtree(path)

    def sync_dir(self, path: str) -> None:
        if self._syncs.put_off:
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    @contextmanager
    def one_sync(self, path: str) -> Iterator[None]:
        syncs = self._syncs
        assert not syncs.put_off, "syncs are put off once at a time"
        syncs.put_off = True
        try:
            yield
        finally:
            syncs.put_off = False
            renames, syncs.renames = syncs.renames, []
            _sync_volume(path)
            if renames:
                # A file takes its name only when its bytes are safe, exactly as `write_atomic` does it one by one.
                for source, target in renames:
                    os.replace(source, target)
                _sync_volume(path)

    def lock(self, path: str) -> File:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            # Java sees only the record lock; only the other one tells two nodes of one process apart.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        return OpenFile(fd, path, self._syncs)

    def usage(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize


def _sync_volume(path: str) -> None:
    """Everything on the volume that holds `path` is durable when this returns. Python has no name for this call."""
    import ctypes

    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(fd)


def _flags(create: bool, writable: bool) -> int:
    return (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0) | os.O_CLOEXEC


def _named(error: OSError, path: str) -> OSError:
    """A call with a descriptor does not know the name, and nobody can mend a file without it."""
    error.filename = path
    return error


def _pread(fd: int, size: int, position: int) -> bytes:
    data = os.pread(fd, size, position)
    if len(data) == size or not data:
        return data
    # Short: the end of the file, or the kernel's limit of 2 GB a call.
    parts = [data]
    got = len(data)
    while got < size:
        data = os.pread(fd, size - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def _pwritev(fd: int, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> int:
    wanted = sum(map(len, buffers))
    written = os.pwritev(fd, buffers[:_BUFFERS_PER_WRITE], position)
    while written < wanted:
        rest = _after(buffers, written)
        more = os.pwritev(fd, rest[:_BUFFERS_PER_WRITE], position + written)
        if more == 0:
            raise OSError(errno.EIO, "the disk accepted no bytes")
        written += more
    return written


def _after(buffers: Sequence[bytes | bytearray | memoryview], skip: int) -> list[memoryview]:
    """The buffers without their first `skip` bytes."""
    rest = []
    for buffer in buffers:
        view = memoryview(buffer)
        if skip >= len(view):
            skip -= len(view)
        else:
            rest.append(view[skip:])
            skip = 0
    return rest
