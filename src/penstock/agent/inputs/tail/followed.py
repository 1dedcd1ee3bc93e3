"""What the tasks of one tail share: the files, their descriptors, whose turn it is; and the changes to all that."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.files.inflating import MAGIC_BYTES, PLAIN, packing_of
from penstock.agent.inputs.files.lines import Look
from penstock.agent.inputs.files.troubles import Troubles
from penstock.agent.inputs.tail.catalogue import GONE_MAX, Catalogue
from penstock.agent.inputs.tail.descriptors import Descriptors
from penstock.agent.inputs.tail.identity import PREFIX_BYTES, Known, Place, print_of
from penstock.agent.inputs.tail.schedule import Looks, Turns
from penstock.agent.inputs.tail.settings import TailSettings
from penstock.agent.inputs.tail.tracked import Tracked

HELD_BACK: Final = 2
"""So many times as long as a rotated file is held, one waits at most for those that are older."""
GONE_FOR_MS: Final = 24 * 3600 * 1000
"""A file that is gone for so long is forgotten."""


def look_through(descriptor: int) -> Look:
    return lambda position, length: os.pread(descriptor, length, position)


@dataclass(slots=True)
class Disturbance:
    """Of a followed path: what was there has to be found, or told."""

    path: str
    horizon_ns: int = 0
    """See `Tracked.horizon_ns`: that of whatever was last at the path."""
    gathered: bool = False
    """All that there is was found. It is over when that is read, too."""
    siblings: frozenset[tuple[str, int]] | None = None
    """Paths and inodes of what was beside it at the last search."""
    still: bool = False
    """The last two searches found the same: nothing is just being renamed."""
    since: int = -1
    """The key, a number, of the last file at the path up to which nothing is missing, or it was told."""
    unreadable_ns: int = 0
    """Rotated files that nobody can inflate are told, those that were last written to before this."""


class Followed:
    """One event loop touches this; nothing in here waits."""

    def __init__(self, settings: TailSettings, env: Environment) -> None:
        self.settings, self.env = settings, env
        self.troubles = Troubles(env.input)
        self.catalogue = Catalogue()
        self.descriptors = Descriptors(settings.open_files_max)
        self.looks = Looks[Tracked](settings.poll_min_ms, settings.poll_max_ms)
        self.turns = Turns[Tracked]()
        self.packed_turns = Turns[Tracked]()
        self.dirty: dict[str, Tracked] = {}
        self.forgotten: set[str] = set()
        self._rotating: dict[str, Tracked] = {}
        """By the path where it was: what was rotated away and is not read to its end."""
        self._queueing: dict[str, dict[str, Tracked]] = {}
        """By the key of a file: those whose turn comes after it is read to its end."""
        self.disturbed: dict[str, Disturbance] = {}
        """By followed path: something that was there is elsewhere now, or was cut."""
        self.horizons: dict[str, int] = {}
        """By followed path: the horizon when it was last settled; see `Tracked.horizon_ns`."""
        self.missed = 0
        """Files that went away before all of them was read."""
        self.work = asyncio.Event()
        """Set when somebody's turn has come."""
        self.packed_work = asyncio.Event()
        self.news = asyncio.Event()
        """Set when the folders should be searched soon: something is not where it was."""

    def now_ms(self) -> float:
        return self.env.monotonic_ms()

    def known(self, file: Tracked) -> Known:
        look = look_through(file.descriptor) if file.descriptor >= 0 and file.packing == PLAIN else None
        return file.known(look, self.settings.ignored_header_bytes)

    def new(self, path: str, device: int, inode: int) -> Tracked:
        """A file that was not known, to be read from its beginning. It is on the schedule already."""
        file = Tracked(self.catalogue.next_key(), path, device, inode, self.mark_dirty)
        if self.settings.multiline is not None:
            file.gatherer = self.settings.multiline.gatherer()
        file.changed_ms = self.now_ms()
        self.catalogue.add(file)
        self.looks.add(file, self.now_ms())
        return file

    def restore(self, file: Tracked) -> None:
        """One from the checkpoints, not seen yet."""
        if self.settings.multiline is not None:
            file.gatherer = self.settings.multiline.gatherer()
        if file.place is not Place.UNSEEN:
            file.gone_since_ms = self.now_ms()
        self.catalogue.add(file)
        if file.horizon_ns:
            path = file.origin_path
            self.horizons[path] = max(file.horizon_ns, self.horizons.get(path, 0))
        if not file.settled and file.path == file.origin_path:
            self.disturb(file.origin_path, file.horizon_ns)
            self.hold(file)

    def want(self, file: Tracked, *, first: bool = False) -> None:
        if file.packing == PLAIN:
            self.turns.want(file, first=first)
            self.work.set()
        elif not file.skipped and file.finished != (file.size, file.modified_ns):
            self.packed_turns.want(file)
            self.packed_work.set()

    def mark_dirty(self, file: Tracked) -> None:
        if file.key in self.catalogue.files:
            self.dirty[file.key] = file

    def arrive(self, file: Tracked, path: str, identity: tuple[int, int], descriptor: int) -> None:
        """It is at this path, where it was before or where it was moved to."""
        moved = path != file.path
        if moved or identity != file.identity or file.gone_before_ms:
            self.mark_dirty(file)
        self.catalogue.put(file, Place.HERE, path=path, identity=identity)
        self.descriptors.give(file, descriptor)
        file.gone_since_ms, file.gone_before_ms, file.absent = None, 0.0, 0
        if file.size > file.read and file.packing == PLAIN:
            file.ended = False
        if moved or (path != file.origin_path and not file.ended):
            self._rotate(file)
            disturbance = self.disturbed.get(file.origin_path)
            if disturbance is not None and not disturbance.gathered and not file.ended:
                self.hold(file)
        file.suspicious, file.failed, file.cut_off = True, False, None
        file.changed_ms = self.now_ms()
        if not file.ticket:
            self.looks.add(file, self.now_ms())
        self.want(file)

    def leave(self, file: Tracked) -> None:
        """Its path shows it no longer."""
        if file.place is not Place.HERE:
            return
        held = file.descriptor >= 0
        self.catalogue.put(file, Place.HELD if held else Place.UNSEEN)
        file.changed_ms = self.now_ms()
        self._rotate(file)
        self.disturb(file.origin_path, file.horizon_ns)
        if held:
            self._learn_head(file)
            self.want(file)
        else:
            # It was looked at a moment ago: what it had then is all that can be missed.
            file.ended = file.reach <= file.read
            file.ticket = 0
            self._let_queue_go(file)
        self.news.set()

    def _learn_head(self, file: Tracked) -> None:
        """Of one that was rotated away before any of it was read: a compressed copy must be known for what it is."""
        if file.packing == PLAIN and not file.prefix.length:
            with contextlib.suppress(OSError):
                head = os.pread(file.descriptor, PREFIX_BYTES, self.settings.ignored_header_bytes)
                self.catalogue.grow(file, print_of(head))

    def disturb(self, path: str, horizon_ns: int) -> None:
        """What was at a path must be looked for, and what may have been there after it."""
        disturbance = self.disturbed.get(path)
        if disturbance is None:
            disturbance = self.disturbed[path] = Disturbance(path)
        disturbance.horizon_ns = max(disturbance.horizon_ns, horizon_ns)
        disturbance.gathered = disturbance.still = False

    def inherit(self, file: Tracked, path: str) -> None:
        """It is one that was at a followed path once, and is found beside it."""
        file.origin_path, file.rotated = path, True
        self.hold(file)
        self.mark_dirty(file)

    def doubt(self, file: Tracked) -> None:
        """It may not be the first at its path since that was last looked at: older ones are read before it."""
        if file.horizon_ns and file.settled:
            file.settled = False
            self.disturb(file.origin_path, file.horizon_ns)
            self.hold(file)
            self.mark_dirty(file)
            self.news.set()

    def hold(self, file: Tracked) -> None:
        """Not read until what is older is found; but not for ever."""
        file.held_until_ms = self.now_ms() + self.settings.rotate_wait_ms * HELD_BACK

    def let_go(self, file: Tracked) -> None:
        if file.held_until_ms:
            file.held_until_ms = 0.0
            self.want(file)

    def queue_behind(self, file: Tracked, before: Tracked) -> None:
        """Its turn comes when the other is read to its end."""
        self._queueing.setdefault(before.key, {})[file.key] = file
        self.want(before, first=True)

    def _let_queue_go(self, before: Tracked) -> None:
        for file in self._queueing.pop(before.key, {}).values():
            self.want(file)

    def drain(self, file: Tracked) -> None:
        """Its end is reached, or cannot be."""
        file.drained = True
        if self._rotating.get(file.origin_path) is file:
            del self._rotating[file.origin_path]
        self._let_queue_go(file)

    def not_yet_read(self, path: str) -> Tracked | None:
        """What was rotated away from a path and is not read to its end."""
        return self._rotating.get(path)

    def finish(self, file: Tracked) -> None:
        """It was read to its end, or cannot be, and no path is known that leads to it."""
        if file.place is Place.UNSEEN:
            self.catalogue.put(file, Place.GONE)
            self._gone(file)
            return
        file.ended = True
        if os.fstat(file.descriptor).st_nlink:
            # It has a name somewhere. If that is one that is followed, the next search finds it.
            self.catalogue.put(file, Place.UNSEEN)
            self.news.set()
        else:
            # The inode of a deleted file belongs to nobody, and soon to another file.
            self.catalogue.put(file, Place.GONE, identity=(0, 0))
        self._gone(file)

    def cut(self, file: Tracked, *, in_place: bool) -> None:
        """Its inode holds something else now. What was not read may be in a copy."""
        if file.place in (Place.HERE, Place.HELD):
            # It was looked at a moment ago: what it had then is all that can be missed.
            file.ended = file.reach <= file.read
        self.disturb(file.origin_path, file.horizon_ns)
        self.catalogue.put(file, Place.CUT if in_place else Place.GONE)
        self._gone(file)
        if file.gatherer is not None:
            file.gatherer.drop()

    def overwrite(self, file: Tracked) -> None:
        """It is no more, and neither is its inode: what is where it was is judged as if nobody had ever seen it."""
        self.cut(file, in_place=False)
        self.catalogue.put(file, Place.GONE, identity=(0, 0))
        self.news.set()

    def begin_anew(self, file: Tracked) -> Tracked:
        """Its file was truncated or overwritten where it is: what is there now is another file."""
        path, identity, place = file.path, file.identity, file.place
        descriptor = os.dup(file.descriptor) if file.descriptor >= 0 else -1
        entry = file.entry
        self.cut(file, in_place=True)
        heir = self.new(path, *identity)
        heir.generation = file.generation
        heir.origin_path, heir.real_path, heir.entry = file.origin_path, file.real_path, entry
        if place is Place.HERE and heir.path == heir.origin_path:
            heir.horizon_ns, heir.settled = file.horizon_ns, False
            self.hold(heir)
        if descriptor >= 0:
            self.descriptors.give(heir, descriptor)
            heir.packing = packing_of(os.pread(descriptor, MAGIC_BYTES, 0))
        if place is not Place.HERE:
            self.catalogue.put(heir, place)
            heir.rotated = True
        self.mark_dirty(heir)
        self.want(heir)
        self.news.set()
        return heir

    def forget(self, file: Tracked) -> None:
        self.descriptors.close(file)
        file.ticket = 0
        self.catalogue.remove(file)
        self.dirty.pop(file.key, None)
        self.forgotten.add(file.key)
        if self.catalogue.at_path(file.origin_path) is None:
            self.horizons.pop(file.origin_path, None)

    def forget_the_long_gone(self) -> None:
        """Once in a while: what is gone for a day, and the oldest of too many."""
        now_ms = self.now_ms()
        gone = self.catalogue.gone()
        for number, file in enumerate(gone):
            too_many = len(gone) - number > GONE_MAX
            if too_many or file.gone_ms(now_ms) >= GONE_FOR_MS:
                self.forget(file)
            else:
                # The time that it has been gone is part of its row: the next life goes on counting.
                self.mark_dirty(file)

    def grow_prefix(self, file: Tracked, head: bytes) -> None:
        """The prefix covers what was read, up to 1 KB. `head` is the beginning as it was when that was read."""
        length = min(PREFIX_BYTES, file.read - self.settings.ignored_header_bytes, len(head))
        if length > file.prefix.length:
            self.catalogue.grow(file, print_of(head[:length]))

    def _rotate(self, file: Tracked) -> None:
        file.rotated = True
        if file.packing != PLAIN and (file.skipped or file.finished == (file.size, file.modified_ns)):
            # Nobody will read it again, so whoever waits for it would wait for ever.
            return
        file.drained = False
        self._rotating[file.origin_path] = file

    def _gone(self, file: Tracked) -> None:
        self.descriptors.close(file)
        self.drain(file)
        file.ticket = 0
        file.gone_since_ms = self.now_ms()
        self.mark_dirty(file)
