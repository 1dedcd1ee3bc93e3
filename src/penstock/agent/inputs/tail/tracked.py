"""One file that is followed: what is known of it, and how it is written down."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.agent.checkpoints import Row
from penstock.agent.inputs.files.inflating import PLAIN
from penstock.agent.inputs.files.ledger import Ledger
from penstock.agent.inputs.files.lines import Look
from penstock.agent.inputs.tail.identity import ANCHORS_MAX, Anchor, Known, Place, Print
from penstock.agent.multiline import Gatherer
from penstock.agent.portion import Origin

NOTHING = Print(0, "")


class Tracked:
    """State of one file. Ten thousand of these must be cheap: no buffers, no task, a descriptor only for some."""

    __slots__ = (
        "absent", "after", "anchors", "changed_ms", "cut_off", "descriptor", "device", "drained", "ended", "entry",
        "failed", "finished", "gatherer", "generation", "gone_before_ms", "gone_since_ms", "head", "held_until_ms",
        "horizon_ns", "inode", "interval_ms", "key", "ledger", "modified_ns", "origin", "origin_path", "packing",
        "path", "place", "prefix", "queued", "reach", "read", "real_path", "rotated", "scanned", "settled", "size",
        "skipped", "suspicious", "tail", "ticket", "zeros",
    )  # fmt: skip

    def __init__(self, key: str, path: str, device: int, inode: int, moved: Callable[[Tracked], None]) -> None:
        self.key, self.path, self.origin_path = key, path, path
        self.device, self.inode = device, inode
        self.generation = 0
        """Of the inode, which is used again; 0 when it is not known."""
        self.entry = 0
        self.packing = PLAIN
        self.prefix = NOTHING
        self.head = NOTHING
        """Its beginning as it was found. It is known by this until some of it is read."""
        self.anchors: deque[Anchor] = deque(maxlen=ANCHORS_MAX)
        self.ledger: Ledger[Anchor | None] = Ledger(0, None, lambda: moved(self) if self.ledger.untold else None)
        self.place = Place.HERE
        self.read = 0
        """Where the next line begins; what comes before is put, or kept by the gatherer."""
        self.scanned, self.zeros = 0, True
        """So many bytes after `read` hold no line break, and whether they hold anything."""
        self.tail = b""
        """The last bytes before `read`."""
        self.size, self.modified_ns = 0, 0
        """As last seen; of a compressed file these are of the file, while positions are inflated."""
        self.reach = 0
        """The largest size that it was ever seen with."""
        self.changed_ms = 0.0
        self.rotated = False
        """It was rotated away: when it is read to its end and quiet, its last line is complete."""
        self.suspicious = True
        """It changed since it was last compared with its prefix."""
        self.drained = False
        """Its end was reached, for now."""
        self.cut_off: tuple[int, int] | None = None
        """Size and time of a compressed file when it ended too early."""
        self.failed = False
        """It cannot be read as it is; only a change makes another try worth it."""
        self.finished: tuple[int, int] | None = None
        """Size and time of a compressed file when all of it was read."""
        self.skipped = False
        """Compressed, and there when the input was started for the first time, from the end: of no interest."""
        self.after: Tracked | None = None
        """What was at this path before, and is read first."""
        self.real_path = ""
        """Where the file itself is, when its path is a link to it."""
        self.ended = False
        """Rotated away and read to its end: nothing of it is missed when it goes."""
        self.absent = 0
        """In so many searches in a row it was not found."""
        self.horizon_ns = 0
        """Of a file at a followed path, in times of the file system: whatever was last written to before then is known,
        or older than all that is followed. A rotated file that nobody knows and whose time is not before it is read.
        0: not known yet."""
        self.settled = True
        """False while those that were at this path before it are not all found and read; see `lineages.py`."""
        self.held_until_ms = 0.0
        """Not read before this, because older ones may be found that come first."""
        self.gatherer: Gatherer | None = None
        self.origin: Origin | None = None
        self.descriptor = -1
        self.gone_since_ms: float | None = None
        self.gone_before_ms = 0.0
        """For how long it was gone in earlier lives of the agent."""
        self.interval_ms = 0.0
        self.ticket = 0
        self.queued = False

    @property
    def identity(self) -> tuple[int, int]:
        return self.device, self.inode

    def begin_at(self, position: int, before: bytes | None, anchor: Anchor | None) -> None:
        """Starts, or starts again, at a position; `before` are the bytes that end there, if they are at hand."""
        assert not self.ledger.open_spans, "a position that moves while portions are under way would be a lie"
        self.ledger.safe, self.ledger.mark = position, anchor
        self.rewind(position, before)
        self.anchors.clear()
        if anchor is not None:
            self.anchors.append(anchor)

    def rewind(self, position: int, before: bytes | None) -> None:
        self.read, self.scanned, self.zeros, self.tail = position, 0, True, before or b""
        self.suspicious, self.drained = True, False
        if self.gatherer is not None:
            self.gatherer.drop()

    def known(self, look: Look | None, header_bytes: int) -> Known:
        return Known(
            self.key, self.path, self.origin_path, self.device, self.inode, self.packing, self.prefix, self.ledger.end,
            tuple(self.anchors), self.place, look, header_bytes,
        )  # fmt: skip

    def gone_ms(self, now_ms: float) -> float:
        since = self.gone_since_ms
        return self.gone_before_ms + (now_ms - since if since is not None else 0.0)

    def row(self, now_ms: float) -> Row:
        """What is safe, or goes into the transaction of this moment; never what is only read."""
        safe, mark, under_way = self.ledger.outlook
        prefix = self.prefix if self.prefix.length else self.head
        anchors = [anchor for anchor in self.anchors if anchor.position < safe]
        if mark is not None:
            anchors.append(mark)
        facts: dict[str, Any] = {
            "origin": self.origin_path,
            "device": self.device,
            "inode": self.inode,
            "generation": self.generation,
            "packing": self.packing,
            "prefix": [prefix.length, prefix.digest],
            "anchors": [[each.position, each.print.length, each.print.digest] for each in anchors],
            "cut": self.place is Place.CUT,
            "rotated": self.rotated,
            "skipped": self.skipped,
            "finished": None if under_way else self.finished,
            "gone_ms": 0 if self.place is Place.UNSEEN else round(self.gone_ms(now_ms)),
            "size": max(self.reach, safe),
            "real": self.real_path,
            "ended": self.ended and not under_way,
            "horizon": self.horizon_ns,
            "settled": self.settled,
        }
        return Row(self.key, self.path, safe, facts)

    @classmethod
    def from_row(cls, row: Row, moved: Callable[[Tracked], None]) -> Tracked:
        """Not seen yet in this life. Raises `KeyError`, `ValueError` or `TypeError` for what is no row of ours."""
        facts = row.facts
        file = cls(row.key, row.path, facts["device"], facts["inode"], moved)
        file.origin_path, file.packing = facts["origin"], facts["packing"]
        file.prefix = Print(*facts["prefix"])
        anchors = [Anchor(position, Print(length, digest)) for position, length, digest in facts["anchors"]]
        file.begin_at(row.position, None, anchors[-1] if anchors else None)
        file.anchors.clear()
        file.anchors.extend(anchors)
        file.place = Place.CUT if facts["cut"] else Place.GONE if facts["gone_ms"] else Place.UNSEEN
        file.rotated, file.skipped = facts["rotated"], facts["skipped"]
        file.finished = tuple(facts["finished"]) if facts["finished"] else None
        file.gone_before_ms = facts["gone_ms"]
        # Rows of the first agents do not have these. What was gone in their time is not missed now.
        file.generation = facts.get("generation", 0)
        file.reach, file.real_path = facts.get("size", row.position), facts.get("real", "")
        file.ended = facts.get("ended", file.place is not Place.UNSEEN)
        file.horizon_ns, file.settled = facts.get("horizon", 0), facts.get("settled", True)
        return file
