"""Files in memory that forget what was not synced: the disk of the simulator and of tests.

Durability is modelled as POSIX promises it and no better. Bytes are durable after `File.sync`, a name (a create, rename
or removal) after `sync_dir` of its directory. `crash` brings back the durable state; `keep` lets a part of the unsynced
bytes survive, as a real power cut may. Everything is deterministic. Faults: `fail` makes writes (or reads too) under a
path raise an errno, `capacity_bytes` is the size of the disk, and `before` sees every change before it happens,
so that a test can stop the world at each step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import NamedTuple

from penstock.model.ids import Millis
from penstock.model.ports import File


class _Inode:
    """The bytes of one file, with what is needed to undo everything since the last sync."""

    __slots__ = ("data", "durable_size", "mtime", "undo")

    def __init__(self, mtime: Millis) -> None:
        self.data = bytearray()
        self.mtime = mtime
        self.durable_size = 0
        self.undo: list[tuple[int, bytes]] = []

    def write(self, position: int, buffer: bytes | bytearray | memoryview) -> None:
        end = position + len(buffer)
        if position < self.durable_size:
            self.undo.append((position, bytes(self.data[position : min(end, self.durable_size)])))
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position:end] = buffer

    def truncate(self, size: int) -> None:
        if size < self.durable_size:
            self.undo.append((size, bytes(self.data[size : self.durable_size])))
        if size > len(self.data):
            self.data.extend(bytes(size - len(self.data)))
        else:
            del self.data[size:]

    def sync(self) -> None:
        self.durable_size = len(self.data)
        self.undo.clear()

    def revert(self, keep_tail: int) -> None:
        """Back to the durable bytes, plus `keep_tail` of those appended since when nothing older was overwritten."""
        tail = b"" if self.undo else bytes(self.data[self.durable_size : self.durable_size + keep_tail])
        for position, old in reversed(self.undo):
            self.data[position : position + len(old)] = old
        del self.data[self.durable_size :]
        self.data.extend(tail)
        self.sync()


class _Directory:
    __slots__ = ("children", "durable")

    def __init__(self) -> None:
        self.children: dict[str, _Inode | _Directory] = {}
        self.durable: dict[str, _Inode | _Directory] = {}

    def revert(self, path: str, keep: Callable[[str, int], int] | None, keep_names: bool) -> None:
        if not keep_names:
            self.children = dict(self.durable)
        for name, child in sorted(self.children.items()):
            inner = f"{path}/{name}"
            if isinstance(child, _Directory):
                child.revert(inner, keep, keep_names)
            else:
                unsynced = max(0, len(child.data) - child.durable_size)
                child.revert(keep(inner, unsynced) if keep and unsynced else 0)
        self.durable = dict(self.children)


class FrozenFiles(NamedTuple):
    """A copy of a whole disk."""

    root: _Directory


class MemoryFile:
    """One open file. Dead after a crash, as a descriptor of a dead process is."""

    __slots__ = ("_files", "_inode", "_life", "_writable", "path")

    def __init__(self, files: MemoryFiles, path: str, inode: _Inode, writable: bool) -> None:
        self._files = files
        self.path = path
        self._inode = inode
        self._writable = writable
        self._life = files.lives

    def pread(self, size: int, position: int) -> bytes:
        self._files.check(self.path, self._life, reading=True)
        if min(size, position) < 0:
            raise OSError(errno.EINVAL, "Invalid argument", self.path)  # as a disk does
        return bytes(self._inode.data[position : position + size])

    def pwritev(self, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> int:
        self._change("write")
        for buffer in buffers:
            growth = position + len(buffer) - len(self._inode.data)
            room = self._files.room()
            if growth > room:
                # A real disk takes what fits before it says that it is full.
                self._inode.write(position, memoryview(buffer)[: len(buffer) - growth + room])
                self._files.grew(room)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            self._inode.write(position, buffer)
            self._files.grew(growth)
            position += len(buffer)
        self._inode.mtime = self._files.time()
        return sum(map(len, buffers))

    def truncate(self, size: int) -> None:
        self._change("truncate")
        self._files.grew(size - len(self._inode.data), shrinks=True)
        self._inode.truncate(size)

    def sync(self) -> None:
        self._change("sync")
        self._files.syncs += 1
        self._inode.sync()

    def size(self) -> int:
        self._files.check(self.path, self._life, reading=True)
        return len(self._inode.data)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self._files.unlock(self)

    def _change(self, what: str) -> None:
        if not self._writable:
            raise OSError(errno.EBADF, "opened for reading only", self.path)
        self._files.check(self.path, self._life)
        self._files.changing(what, self.path)


class MemoryFiles:
    """The Files port in memory. Paths are absolute; writes leave the time of `now`, or of `clock` if there is one."""

    def __init__(self, *, capacity_bytes: int = 1 << 60) -> None:
        self.capacity_bytes = capacity_bytes
        self.now = Millis(0)
        self.clock: Callable[[], Millis] | None = None
        self.lives = 0
        self.syncs = 0
        self.before: Callable[[str, str], None] | None = None
        self._used_bytes = 0
        self._root = _Directory()
        self._locks: dict[str, MemoryFile] = {}
        self._faults: dict[str, tuple[int, bool]] = {}

    def time(self) -> Millis:
        return self.now if self.clock is None else self.clock()

    # -- faults

    def fail(self, path_prefix: str, error: int, *, reads: bool = False) -> None:
        """From now on every change under the prefix raises `error`; with `reads` every read too."""
        self._faults[path_prefix] = (error, reads)

    def heal(self, path_prefix: str) -> None:
        self._faults.pop(path_prefix, None)

    def crash(self, keep: Callable[[str, int], int] | None = None, *, keep_names: bool = False) -> None:
        """A power cut: unsynced bytes and names are gone, locks are free, open files are dead.

        `keep(path, unsynced_bytes)` says how many of a file's appended bytes survive; with `keep_names` every create,
        rename and removal does too.
        """
        self.lives += 1
        self._locks.clear()
        self._root.revert("", keep, keep_names)
        self._used_bytes = _bytes_in(self._root)

    def wipe(self) -> None:
        """The disk is replaced by an empty one."""
        self.lives += 1
        self._locks.clear()
        self._root = _Directory()
        self._used_bytes = 0

    def copy(self) -> FrozenFiles:
        """Everything as it is now, synced or not."""
        return FrozenFiles(_copied(self._root))

    def restore(self, frozen: FrozenFiles) -> None:
        """The disk is replaced by a copy; the copy can be used again."""
        self.wipe()
        self._root = _copied(frozen.root)
        self._used_bytes = _bytes_in(self._root)

    def kill(self) -> None:
        """The process dies and the machine goes on: everything written stays, locks are free."""
        self.lives += 1
        self._locks.clear()

    def check(self, path: str, life: int | None = None, *, reading: bool = False) -> None:
        if life is not None and life != self.lives:
            raise OSError(errno.EBADF, "opened before the crash", path)
        for prefix, (error, reads) in self._faults.items():
            if path.startswith(prefix) and (reads or not reading):
                raise OSError(error, os.strerror(error), path)

    def changing(self, what: str, path: str) -> None:
        if self.before is not None:
            self.before(what, path)

    def room(self) -> int:
        return max(0, self.capacity_bytes - self._used_bytes)

    def grew(self, count: int, *, shrinks: bool = False) -> None:
        if count > 0 or shrinks:
            self._used_bytes += count

    def unlock(self, file: MemoryFile) -> None:
        if self._locks.get(file.path) is file:
            del self._locks[file.path]

    # -- the port

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> MemoryFile:
        parent, name = self._parent(path)
        node = parent.children.get(name)
        if isinstance(node, _Directory):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self.check(path, reading=not writable)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self.changing("create", path)
            node = parent.children[name] = _Inode(self.time())
        return MemoryFile(self, path, node, writable)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def listdir(self, path: str) -> list[str]:
        self.check(path, reading=True)
        return sorted(self._directory(path).children)

    def isdir(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def makedirs(self, path: str) -> None:
        node = self._root
        walked = ""
        for name in _parts(path):
            walked = f"{walked}/{name}"
            child = node.children.get(name)
            if child is None:
                self.check(walked)
                self.changing("mkdir", walked)
                child = node.children[name] = _Directory()
            if not isinstance(child, _Directory):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            node = child

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def mtime_ms(self, path: str) -> Millis:
        return self._inode(path).mtime

    def set_mtime_ms(self, path: str, at: Millis) -> None:
        self.check(path)
        self._inode(path).mtime = at

    def read(self, path: str) -> bytes:
        self.check(path, reading=True)
        return bytes(self._inode(path).data)

    def one_sync(self, path: str) -> AbstractContextManager[None]:
        """Syncing one by one costs nothing here, so nothing is put off."""
        return nullcontext()

    def write_atomic(self, path: str, data: bytes) -> None:
        file = self.open(path + ".tmp", create=True)
        file.truncate(0)
        file.pwritev((data,), 0)
        file.sync()
        self.rename(path + ".tmp", path)
        self.sync_dir(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        self.check(source)
        self.check(target)
        old_parent, old_name = self._parent(source)
        if old_name not in old_parent.children:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        new_parent, new_name = self._parent(target)
        existing = new_parent.children.get(new_name)
        if isinstance(existing, _Directory) and existing.children:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        self.changing("rename", source)
        if isinstance(existing, _Inode):
            self._used_bytes -= len(existing.data)
        new_parent.children[new_name] = old_parent.children.pop(old_name)

    def remove(self, path: str) -> None:
        self.check(path)
        inode = self._inode(path)
        self.changing("remove", path)
        parent, name = self._parent(path)
        del parent.children[name]
        self._used_bytes -= len(inode.data)

    def rmtree(self, path: str) -> None:
        self.check(path)
        directory = self._directory(path)
        self.changing("rmtree", path)
        parent, name = self._parent(path)
        del parent.children[name]
        self._used_bytes -= _bytes_in(directory)

    def sync_dir(self, path: str) -> None:
        self.check(path)
        directory = self._directory(path)
        self.changing("sync_dir", path)
        self.syncs += 1
        directory.durable = dict(directory.children)

    def lock(self, path: str) -> File:
        if path in self._locks:
            raise OSError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        self._locks[path] = file = self.open(path, create=True)
        return file

    def usage(self, path: str) -> tuple[int, int]:
        self._directory(path)
        return self.capacity_bytes, self.room()

    def _find(self, path: str) -> _Inode | _Directory | None:
        node: _Inode | _Directory | None = self._root
        for name in _parts(path):
            if not isinstance(node, _Directory):
                return None
            node = node.children.get(name)
        return node

    def _inode(self, path: str) -> _Inode:
        node = self._find(path)
        if not isinstance(node, _Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        head, _, name = path.rstrip("/").rpartition("/")
        return self._directory(head), name


@lru_cache(maxsize=4_096)  # the same few paths are walked ten thousand times in a run of the simulator
def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _bytes_in(directory: _Directory) -> int:
    return sum(
        _bytes_in(child) if isinstance(child, _Directory) else len(child.data) for child in directory.children.values()
    )


def _copied(directory: _Directory) -> _Directory:
    """All of it is durable: a copy was synced before anybody relied on it."""
    made = _Directory()
    for name, child in directory.children.items():
        made.children[name] = _copied(child) if isinstance(child, _Directory) else _copied_file(child)
    made.durable = dict(made.children)
    return made


def _copied_file(inode: _Inode) -> _Inode:
    made = _Inode(inode.mtime)
    made.data = bytearray(inode.data)
    made.sync()
    return made
