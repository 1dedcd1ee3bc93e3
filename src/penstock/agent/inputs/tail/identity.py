"""Which known file is it that was seen? Decisions from facts, nothing else. Pure.

A file is known by device and inode, by its beginning (`prefix`, which grows with what was read, up to 1 KB), and by
what stands right before the position up to which it was read (`Anchor`). The same inode with another beginning, another
anchor or fewer bytes than were read is another file. Another inode with the same beginning is a copy only when the
anchor stands in it too, and then only if that is enough to be sure:

- the known file is gone or was truncated, and the beginning is a whole KB: the copy goes on in its place;
- the beginning is shorter, but the copy has the name of a rotation, and the original was truncated in place or the copy
  is compressed: the same;
- the known file is still there: a copy that has been quiet for a while, with evidence beyond the first KB, goes on
  where the original was; until then one waits, because copytruncate copies first and truncates afterwards.

Everything else is read from its beginning: that may send lines twice, and loses none.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import xxhash

from penstock.agent.inputs.files.inflating import PLAIN, CutOff
from penstock.agent.inputs.files.lines import Look
from penstock.agent.inputs.tail.rotations import is_rotation

PREFIX_BYTES: Final = 1024
ANCHOR_BYTES: Final = 256
ANCHORS_MAX: Final = 4
EVIDENCE_BYTES: Final = PREFIX_BYTES + ANCHOR_BYTES
"""Of two files side by side: equal at their beginning and again after so many bytes, they are one and its copy."""
PATIENCE: Final = 12
"""A copy that never comes to rest is waited for so many times as long as one that does."""


@dataclass(frozen=True, slots=True)
class Print:
    """The digest of some bytes."""

    length: int
    digest: str

    def matches(self, content: bytes) -> bool:
        """Whether the content begins with these bytes."""
        if not self.length:
            return True
        return len(content) >= self.length and digest_of(content[: self.length]) == self.digest


@dataclass(frozen=True, slots=True)
class Anchor:
    """What stands right before a position."""

    position: int
    print: Print

    def stands(self, look: Look) -> bool:
        length = self.print.length
        return self.print.matches(look(self.position - length, length))


class Place(enum.Enum):
    """Where the content of a known file is."""

    HERE = "here"
    """At its path."""
    HELD = "held"
    """At no path that is followed, but a descriptor still reaches it."""
    CUT = "cut"
    """Its file was truncated or overwritten; a copy may have been made before."""
    UNSEEN = "unseen"
    """Not where it was, and the folders were not searched since."""
    GONE = "gone"
    """At no path that is followed."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file that was read before."""

    key: str
    path: str
    origin: str
    """The path at which it was first found."""
    device: int
    inode: int
    packing: str
    prefix: Print
    position: int
    anchors: tuple[Anchor, ...]
    """The last few, by position; the last of them at `position`, unless that is 0."""
    place: Place
    look: Look | None = None
    """Reads it as it is now, when it is here or held, and not compressed."""
    header_bytes: int = 0
    """So many bytes before the prefix prove nothing."""

    def proves(self, position: int) -> bool:
        """Whether an anchor at this position says more than the prefix does."""
        return position >= self.header_bytes + EVIDENCE_BYTES


@dataclass(frozen=True, slots=True)
class Sighting:
    """A file at a path, as it is now."""

    path: str
    device: int
    inode: int
    packing: str
    size: int | None
    """None of a compressed file: nobody knows before it is inflated."""
    head: bytes
    """The beginning, up to `PREFIX_BYTES`, after the header that does not count."""
    look: Look
    """By position in inflated bytes; raises `CutOff` when a compressed file ends too early."""
    quiet_ms: float
    """Since it was last seen to change."""
    age_ms: float
    """Since it was first seen."""


@dataclass(frozen=True, slots=True)
class Same:
    key: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """The known file, at this path now."""

    key: str


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a known file that is still at its own: a link."""

    key: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The inode of a known file with other content: truncated, overwritten, or used again. It is read from 0."""

    key: str


@dataclass(frozen=True, slots=True)
class CopyOf:
    """The content of a known file. It goes on at the position."""

    key: str
    position: int
    takes_over: bool
    """Whether it is the known file from now on; else there are two."""


@dataclass(frozen=True, slots=True)
class New:
    """Read from 0."""


@dataclass(frozen=True, slots=True)
class Wait:
    """It may be a copy in the making."""


Verdict: TypeAlias = Same | Renamed | Alias | Replaced | CopyOf | New | Wait


def digest_of(content: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def print_of(content: bytes) -> Print:
    return Print(len(content), digest_of(content))


def anchor_at(position: int, before: bytes) -> Anchor:
    """From bytes that end at the position."""
    return Anchor(position, print_of(before[-ANCHOR_BYTES:]))


def judge(seen: Sighting, own: Known | None, alike: Iterable[Known], settle_ms: float) -> Verdict:
    """`own`: the known file with this device and inode. `alike`: those whose beginning this file has."""
    if own is not None:
        return judge_own(seen, own)
    verdicts = [judge_copy(seen, known, settle_ms) for known in _farthest_first(alike)]
    for verdict in verdicts:
        if isinstance(verdict, CopyOf) and verdict.takes_over:
            return verdict
    for kind in (Wait, CopyOf):
        for verdict in verdicts:
            if isinstance(verdict, kind):
                return verdict
    return New()


def judge_own(seen: Sighting, known: Known) -> Verdict:
    """The inode is known: is the content?"""
    if not is_intact(seen, known):
        return Replaced(known.key)
    if known.place is Place.GONE and known.prefix.length < PREFIX_BYTES:
        # It was deleted, and inodes are used again at once: few bytes that are equal prove nothing.
        return Replaced(known.key)
    if seen.path == known.path:
        return Same(known.key)
    return Alias(known.key) if known.place is Place.HERE else Renamed(known.key)


def is_intact(seen: Sighting, known: Known) -> bool:
    if seen.packing != known.packing or not known.prefix.matches(seen.head):
        return False
    if seen.packing != PLAIN:
        # What stands before the position is looked at when it is inflated up to there.
        return True
    assert seen.size is not None, "what is not compressed has a size"
    return seen.size >= known.position and (not known.anchors or known.anchors[-1].stands(seen.look))


def judge_copy(seen: Sighting, known: Known, settle_ms: float) -> Verdict:
    """Another inode with the same beginning."""
    if not known.position:
        return _judge_unread(seen, known, settle_ms)
    if not known.anchors:
        return New()
    if known.place in (Place.HERE, Place.HELD) and seen.path == known.origin:
        # Rotation by renaming: what is made anew at the old name begins with the same words, and is no copy.
        return New()
    try:
        if known.prefix.length < PREFIX_BYTES:
            return _judge_small_copy(seen, known, settle_ms)
        if known.place in (Place.CUT, Place.GONE):
            return _judge_heir(seen, known)
        return _judge_twin(seen, known, settle_ms)
    except CutOff:
        # Compressed and not complete.
        return Wait() if seen.quiet_ms < settle_ms * PATIENCE else New()


def _judge_unread(seen: Sighting, known: Known, settle_ms: float) -> Verdict:
    """Nothing was read of the original yet: its copy is no other file, and takes its place when it is no more."""
    if known.prefix.length < PREFIX_BYTES and not akin(seen.path, known.path):
        return New()
    if known.place in (Place.CUT, Place.GONE):
        return CopyOf(known.key, 0, takes_over=True)
    if known.place is Place.HERE and seen.age_ms >= settle_ms * PATIENCE:
        return New()
    return Wait()


def _judge_small_copy(seen: Sighting, known: Known, settle_ms: float) -> Verdict:
    """Few bytes prove little: two jobs that both begin with `started` are two files. Names have to agree as well."""
    if not akin(seen.path, known.path):
        return New()
    packed = seen.packing != PLAIN
    if known.place is Place.CUT or (known.place is Place.GONE and packed):
        return _judge_heir(seen, known)
    if packed and known.place is Place.HELD:
        return Wait()
    if known.place in (Place.HERE, Place.UNSEEN):
        return Wait() if seen.age_ms < settle_ms else New()
    return New()


def _judge_heir(seen: Sighting, known: Known) -> Verdict:
    """The original is no more; what its copy holds is all there is."""
    last = known.anchors[-1]
    if _reaches(seen, last.position) and last.stands(seen.look):
        return CopyOf(known.key, last.position, takes_over=True)
    # A copy that was made before the last lines came has a position at which it agrees.
    for anchor in reversed(known.anchors[:-1]):
        if known.proves(anchor.position) and _reaches(seen, anchor.position) and anchor.stands(seen.look):
            return CopyOf(known.key, anchor.position, takes_over=False)
    return New()


def _judge_twin(seen: Sighting, known: Known, settle_ms: float) -> Verdict:
    """The original is still there, or still being read."""
    at = known.position if seen.size is None else min(known.position, seen.size)
    if not _agree(seen, known, at):
        return New()
    if known.place in (Place.HELD, Place.UNSEEN):
        # When it is read to its end it is gone, and this may be its heir.
        return Wait()
    if seen.quiet_ms < settle_ms and seen.age_ms < settle_ms * PATIENCE:
        return Wait()
    return CopyOf(known.key, at, takes_over=False) if known.proves(at) else New()


def _agree(seen: Sighting, known: Known, at: int) -> bool:
    """Whether both have the same bytes right before a position."""
    if at == known.position:
        return known.anchors[-1].stands(seen.look)
    length = min(at, ANCHOR_BYTES)
    if known.look is None:
        return any(anchor.position <= at and anchor.stands(seen.look) for anchor in known.anchors)
    return known.look(at - length, length) == seen.look(at - length, length)


def _reaches(seen: Sighting, position: int) -> bool:
    return seen.size is None or seen.size >= position


def _farthest_first(alike: Iterable[Known]) -> Sequence[Known]:
    return sorted(alike, key=lambda known: (-known.position, known.key))


_PACKED = re.compile(r"\.(?:gz|zst)$")
_ROTATED = re.compile(r"(?:[.\-_]\d[\d\-_.T:]*|\.(?:old|bak|orig))+$")


def akin(one: str, other: str) -> bool:
    """Whether names differ only as rotation makes them differ: `app.log`, `app.log.1`, `app.log-20260131.gz`."""
    return _stem(one) == _stem(other) or is_rotation(one, other) or is_rotation(other, one)


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return _ROTATED.sub("", _PACKED.sub("", name))
