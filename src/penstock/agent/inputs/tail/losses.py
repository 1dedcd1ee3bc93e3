"""What went away before all of it was read: counted, and told with how much that is at most."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from penstock.agent.inputs.files.inflating import PLAIN
from penstock.agent.inputs.tail.followed import Disturbance, Followed
from penstock.agent.inputs.tail.identity import Place
from penstock.agent.inputs.tail.rotations import missing_numbers, rotations_of
from penstock.agent.inputs.tail.siblings import Survey
from penstock.agent.inputs.tail.tracked import Tracked

TOLD_AT_ONCE_MAX: Final = 10
"""Of many files that are missing at once, so many are told by name."""


class Losses:
    """Of one tail. Asked when all that there is of a followed path was found."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._told = 0

    def tell(
        self,
        disturbance: Disturbance,
        survey: Survey,
        members: list[Tracked],
        live: Tracked | None,
        unread: list[Tracked],
    ) -> None:
        """`unread` are those before the live one that are found and still to be read, the oldest first."""
        others = [file for file in members if file is not live]
        self._tell_gap(disturbance, survey, others, unread)
        self._tell_gone(disturbance, members, [*unread, *([live] if live is not None else [])])
        if live is None or not live.settled:
            self._tell_unreadable(disturbance, survey)

    def tell_the_rest(self) -> None:
        more, self._told = self._told - TOLD_AT_ONCE_MAX, 0
        if more > 0:
            self._followed.troubles.tell("", f"{more:,} more files are gone before they were read to their end")

    def _tell_gone(self, disturbance: Disturbance, members: list[Tracked], left: list[Tracked]) -> None:
        """`left` are those that are still to be read, the oldest first."""
        for file in members:
            if file.place not in (Place.GONE, Place.CUT) or file.ended:
                continue
            if _is_told(file) and (_is_known(file) or not _outlives(file, members)):
                until_ns = left[0].modified_ns if left else self._followed.env.now_ms() * 1_000_000
                self._tell(file.path, _gone_words(file, disturbance.horizon_ns, until_ns))
            file.ended = True
            self._followed.mark_dirty(file)

    def _tell_gap(self, disturbance: Disturbance, survey: Survey, others: list[Tracked], unread: list[Tracked]) -> None:
        """What is missing between what was last seen at the path and what is found now."""
        passed = [file for file in others if file.horizon_ns and int(file.key) >= disturbance.since]
        if not passed:
            return
        *before, last = sorted(passed, key=recency)
        elders = [file for file in unread if not file.horizon_ns]
        torn = [file for file in before if file.place is not Place.HERE]
        torn += [last] if last.place is not Place.HERE and elders else []
        torn = [file for file in torn if not _outlives(file, others)]
        if torn and not any(_is_told(file) for file in torn):
            words = "was rotated more than once unread, and the first of that may be deleted"
            between = _between(disturbance.horizon_ns, (elders or [last])[0].modified_ns)
            self._tell(disturbance.path, f"{words}: at most all lines {between} are not read")
        elif last.place is Place.HERE:
            self._tell_missing_numbers(disturbance, survey, last)

    def _tell_missing_numbers(self, disturbance: Disturbance, survey: Survey, last: Tracked) -> None:
        number = next((each.number for each in rotations_of(_name(last.path)) if each.number is not None), None)
        if number is None or number not in survey.numbers:
            return
        between = _between(survey.numbers[number], survey.newest_ns)
        for missing in missing_numbers(number, survey.numbers):
            words = f"is missing among the rotated files: at most all lines {between} are not read"
            self._tell(f"{disturbance.path}.{missing}", words)

    def _tell_unreadable(self, disturbance: Disturbance, survey: Survey) -> None:
        for path, found in survey.unreadable.items():
            if found.st_mtime_ns >= disturbance.unreadable_ns:
                size = f"its {found.st_size:,} bytes are not read"
                self._tell(path, f"was rotated unread, and is compressed in a form that is not understood: {size}")
        times = [found.st_mtime_ns + 1 for found in survey.unreadable.values()]
        disturbance.unreadable_ns = max([disturbance.unreadable_ns, *times])

    def _tell(self, path: str, words: str) -> None:
        self._followed.missed += 1
        self._told += 1
        if self._told <= TOLD_AT_ONCE_MAX:
            self._followed.troubles.tell(path, words)


def recency(file: Tracked) -> tuple[int, int]:
    """Of files that were at a followed path: which came last."""
    return file.horizon_ns, int(file.key)


def _is_missed(file: Tracked) -> bool:
    """Whether a file that is gone, or was cut, may have had more than was read of it."""
    if file.packing != PLAIN:
        return file.finished is None and not file.skipped and not file.failed
    if file.reach > file.ledger.safe:
        return True
    # It was live when it was last looked at. One that had been rotated away before had long been read.
    return file.path == file.origin_path and not rotations_of(_name(file.path))


def _is_known(file: Tracked) -> bool:
    """Whether its copy would be known: something was seen in it."""
    return file.reach > 0 or file.prefix.length > 0


def _outlives(file: Tracked, members: list[Tracked]) -> bool:
    """Whether one that was at the path before it is still found. Rotation deletes the oldest first, so this is too."""
    return any(
        other.place is Place.HERE and other.horizon_ns and other.path != other.origin_path
        for other in members
        if recency(other) < recency(file)
    )


def _is_told(file: Tracked) -> bool:
    """Whether it is one of those that are told as gone."""
    return file.place in (Place.GONE, Place.CUT) and not file.ended and _is_missed(file)


def _gone_words(file: Tracked, since_ns: int, until_ns: int) -> str:
    if file.place is Place.CUT:
        what = "was truncated before it was read to its end, and no copy of it was found"
    else:
        what = "is gone before it was read to its end"
    words = f"{what}: not read is at most what came after its first {file.ledger.safe:,} bytes"
    if file.reach > file.ledger.safe and file.packing == PLAIN:
        words += f" ({file.reach - file.ledger.safe:,} of them were seen)"
    return f"{words}, {_between(since_ns, until_ns)}"


def _between(since_ns: int, until_ns: int) -> str:
    begin = f"from {_time(since_ns)} " if since_ns > 1 else ""
    return f"{begin}to {_time(max(since_ns, until_ns))}"


def _time(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(path: str) -> str:
    return path.rpartition("/")[2]
