"""Rotations that nobody saw: where what was at a followed path is now, and what was there after it.

A followed path is disturbed when the file that was there is elsewhere, or was cut. Then, in every search:

    search    files beside it are candidates: those whose inode is known, whatever their name, and those with a name
              that rotation gives which were written to since all was known (the horizon)
    gather    when all candidates are decided: the oldest is read first and the live one last; what is missing is told
    settle    when all of that is read and acknowledged: the horizon moves, and the path is like any other again

Until it is settled the old horizon is what is saved, so a life that ends in between begins the search again. Files at
paths that were never followed before are not searched for at all: what is beside them is older than they are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Final

from penstock.agent.inputs.files.inflating import PLAIN
from penstock.agent.inputs.files.troubles import in_words
from penstock.agent.inputs.tail.finding import Finder, Finding, path_pattern
from penstock.agent.inputs.tail.followed import Disturbance, Followed
from penstock.agent.inputs.tail.identity import Place
from penstock.agent.inputs.tail.rotations import missing_numbers, rotations_of
from penstock.agent.inputs.tail.siblings import Elder, Quest, Siblings, Survey, look_beside
from penstock.agent.inputs.tail.tracked import Tracked

TOLD_AT_ONCE_MAX: Final = 10
"""Of many files that are missing at once, so many are told by name."""
NOTHING_IS_OURS_NS: Final = 1 << 63
"""The horizon of paths that are seen for the first time."""
REACHABLE: Final = (Place.HERE, Place.HELD)


class Lineages:
    """The files of each followed path, from the oldest that is still known to the live one."""

    def __init__(self, followed: Followed, finder: Finder) -> None:
        self._followed, self._finder = followed, finder
        self._surveys: dict[str, Survey] = {}
        self._undated: dict[str, Tracked] = {}
        """By path: known ones from a time when horizons were not written down."""
        self._told = 0

    def begin(self, file: Tracked) -> None:
        """A file was found at a followed path. Whether it waits for older ones depends on what is known of the path."""
        disturbance = self._followed.disturbed.get(file.path)
        if disturbance is None:
            self._first_seen(file, self._surveys.get(file.path))
            return
        disturbance.gathered = False
        self._wait_for_older(file, disturbance.horizon_ns)

    def arrived(self, file: Tracked, *, doubtful: bool) -> None:
        """A known file was found; in a doubtful case by its inode alone, because nothing else is known of it."""
        if file.path != file.origin_path or not file.settled:
            return
        disturbance = self._followed.disturbed.get(file.path)
        if not file.horizon_ns and disturbance is not None:
            self._wait_for_older(file, disturbance.horizon_ns)
        elif not file.horizon_ns:
            self._undated[file.path] = file
        elif doubtful:
            # It may have been written to, copied and truncated since.
            self._followed.disturb(file.path, file.horizon_ns)
            self._wait_for_older(file, file.horizon_ns)

    def _wait_for_older(self, file: Tracked, horizon_ns: int) -> None:
        file.horizon_ns, file.settled = horizon_ns, False
        self._followed.hold(file)
        self._followed.mark_dirty(file)

    def _first_seen(self, file: Tracked, survey: Survey | None) -> None:
        """What is beside it is older, and none of ours."""
        file.horizon_ns = max(1, file.modified_ns, survey.newest_ns + 1 if survey is not None else 0)
        self._followed.horizons[file.origin_path] = file.horizon_ns
        self._followed.mark_dirty(file)

    def stands(self, path: str) -> bool:
        """Whether a followed path shows the file that it has long shown: then nothing was rotated away from it."""
        live = self._followed.catalogue.at_path(path)
        return live is not None and live.settled

    async def search(self, finding: Finding, missing: Iterable[Tracked], new_paths: Iterable[str]) -> list[Elder]:
        """What lies beside disturbed paths and must be looked at. `missing` was not found by name; at `new_paths` there
        is something that nobody knows."""
        followed, self._surveys = self._followed, {}
        for file in missing:
            if file.place is Place.UNSEEN:
                followed.disturb(file.origin_path, file.horizon_ns)
        unknown = set(self._undated)
        for path in new_paths:
            if path in followed.horizons:
                followed.disturb(path, followed.horizons[path])
            else:
                unknown.add(path)
        members = self._members()
        quests = [
            self._quest(each, members[each.path])
            for each in followed.disturbed.values()
            if finding.fresh or not each.gathered
        ]
        quests += [Quest(path, NOTHING_IS_OURS_NS, {path}) for path in unknown if path not in followed.disturbed]
        if not quests:
            return []
        siblings = await self._look_beside(quests, {found.path for found in finding.found})
        self._surveys = siblings.surveys
        for folder, error in siblings.unsearched.items():
            followed.troubles.tell(folder, f"cannot be searched for rotated files: {in_words(error)}")
        for path, survey in self._surveys.items():
            disturbance = followed.disturbed.get(path)
            if disturbance is not None:
                disturbance.still = survey.siblings == disturbance.siblings
                disturbance.siblings = survey.siblings
                if not disturbance.still:
                    followed.news.set()
        undated, self._undated = self._undated, {}
        for path, file in undated.items():
            if file.settled:
                self._first_seen(file, self._surveys.get(path))
        return [elder for survey in self._surveys.values() for elder in survey.elders]

    def close(self, undecided: Collection[str]) -> None:
        """After everything that was found is judged. `undecided`: followed paths about which that is not so."""
        if self._followed.disturbed:
            members = self._members()
            for disturbance in list(self._followed.disturbed.values()):
                mine = members[disturbance.path]
                searched = disturbance.path in self._surveys and disturbance.still
                if searched and not disturbance.gathered and disturbance.path not in undecided:
                    self._gather(disturbance, mine)
                if disturbance.gathered:
                    self._settle(disturbance, mine)
                self._hurry(mine)
            self._tell_the_rest()

    # Searching.

    def _members(self) -> dict[str, list[Tracked]]:
        """By followed path: all files that are known to have been there."""
        members: dict[str, list[Tracked]] = {path: [] for path in self._followed.disturbed}
        for file in self._followed.catalogue:
            mine = members.get(file.origin_path)
            if mine is not None:
                mine.append(file)
        return members

    def _quest(self, disturbance: Disturbance, members: list[Tracked]) -> Quest:
        horizon_ns = max([disturbance.horizon_ns, *(file.horizon_ns for file in members)])
        disturbance.horizon_ns = horizon_ns
        if disturbance.since < 0:
            dated = [file for file in members if file.horizon_ns]
            disturbance.since = int(max(dated, key=_recency).key) if dated else 0
        quest = Quest(disturbance.path, horizon_ns, {disturbance.path})
        for file in members:
            if file.real_path:
                quest.bases.add(file.real_path)
            if file.place is Place.UNSEEN and file.inode:
                quest.lost[file.inode] = {_folder(path) for path in (file.path, file.real_path) if path}
            elif file.place is Place.HELD:
                quest.held.add(file.inode)
        return quest

    async def _look_beside(self, quests: list[Quest], matched: set[str]) -> Siblings:
        claimed = path_pattern(self._followed.env.claimed())

        def look() -> Siblings:
            for quest in quests:
                quest.bases.add(os.path.realpath(quest.path))
            return look_beside(quests, self._finder, matched, claimed)

        return await asyncio.to_thread(look)

    # Gathering.

    def _gather(self, disturbance: Disturbance, members: list[Tracked]) -> None:
        live = self._followed.catalogue.at_path(disturbance.path)
        others = [file for file in members if file is not live]
        if not all(_is_as_read(file) if file.ended else file.place is not Place.UNSEEN for file in others):
            return
        unread = [file for file in others if file.place in REACHABLE and not file.ended]
        unread.sort(key=lambda file: (file.modified_ns, file.path))
        self._tell_gap(disturbance, others, unread)
        self._tell_missing(disturbance, members, [*unread, *([live] if live is not None else [])])
        self._tell_unreadable(disturbance)
        previous: Tracked | None = None
        for file in [*unread, *([live] if live is not None and not live.settled else [])]:
            file.after, previous = previous, file
        for file in members:
            self._followed.let_go(file)
        disturbance.gathered = True
        disturbance.since = int(live.key) if live is not None else 1 + max([int(file.key) for file in members] or [-1])

    def _hurry(self, members: list[Tracked]) -> None:
        """What waited long enough for older ones waits no longer."""
        now_ms = self._followed.now_ms()
        for file in members:
            if file.held_until_ms and now_ms >= file.held_until_ms:
                self._followed.let_go(file)

    def _settle(self, disturbance: Disturbance, members: list[Tracked]) -> None:
        followed, path = self._followed, disturbance.path
        live = followed.catalogue.at_path(path)
        if live is None or not live.settled:
            others = [file for file in members if file is not live]
            if not all(_is_done(file) for file in others):
                return
            seen_ns = [file.modified_ns + 1 for file in others if file.place is Place.HERE]
            horizon_ns = max([disturbance.horizon_ns, disturbance.unreadable_ns, *seen_ns])
            followed.horizons[path] = horizon_ns
            heir = live or max(members, key=_recency, default=None)
            if heir is not None:
                heir.horizon_ns, heir.settled = horizon_ns, True
                followed.mark_dirty(heir)
        del followed.disturbed[path]
        self._surveys.pop(path, None)

    # Telling.

    def _tell_missing(self, disturbance: Disturbance, members: list[Tracked], left: list[Tracked]) -> None:
        """`left` are those that are still to be read, the oldest first."""
        for file in members:
            if file.place not in (Place.GONE, Place.CUT) or file.ended:
                continue
            if _is_told(file):
                until_ns = left[0].modified_ns if left else self._followed.env.now_ms() * 1_000_000
                self._tell(file.path, _gone_words(file, disturbance.horizon_ns, until_ns))
            file.ended = True
            self._followed.mark_dirty(file)

    def _tell_gap(self, disturbance: Disturbance, others: list[Tracked], unread: list[Tracked]) -> None:
        """What is missing between what was last seen at the path and what is found now. The oldest are deleted first:
        where one is still found, those that came after it are."""
        passed = [file for file in others if file.horizon_ns and int(file.key) >= disturbance.since]
        if not passed:
            return
        *before, last = sorted(passed, key=_recency)
        elders = [file for file in unread if not file.horizon_ns]
        torn = [file for file in before if file.place is not Place.HERE]
        torn += [last] if last.place is not Place.HERE and elders else []
        if torn and not any(_is_told(file) for file in torn):
            words = "was rotated more than once unread, and the first of that may be deleted"
            between = _between(disturbance.horizon_ns, (elders or [last])[0].modified_ns)
            self._tell(disturbance.path, f"{words}: at most all lines {between} are not read")
        elif last.place is Place.HERE:
            self._tell_missing_numbers(disturbance, last)

    def _tell_missing_numbers(self, disturbance: Disturbance, last: Tracked) -> None:
        survey = self._surveys[disturbance.path]
        number = next((each.number for each in rotations_of(_name(last.path)) if each.number is not None), None)
        if number is None or number not in survey.numbers:
            return
        between = _between(survey.numbers[number], survey.newest_ns)
        for missing in missing_numbers(number, survey.numbers):
            words = f"is missing among the rotated files: at most all lines {between} are not read"
            self._tell(f"{disturbance.path}.{missing}", words)

    def _tell_unreadable(self, disturbance: Disturbance) -> None:
        survey = self._surveys.get(disturbance.path)
        if survey is None or self.stands(disturbance.path):
            return
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

    def _tell_the_rest(self) -> None:
        more, self._told = self._told - TOLD_AT_ONCE_MAX, 0
        if more > 0:
            self._followed.troubles.tell("", f"{more:,} more files are gone before they were read to their end")


def _recency(file: Tracked) -> tuple[int, int]:
    """Of files that were at a followed path: which came last."""
    return file.horizon_ns, int(file.key)


def _is_done(file: Tracked) -> bool:
    """Nothing more of it will be read, and all that was read is safe."""
    if file.place in (Place.GONE, Place.CUT) or file.skipped or file.failed:
        return True
    return file.ended and not file.ledger.open_spans and _is_as_read(file)


def _is_as_read(file: Tracked) -> bool:
    """Whether a file that was read to its end is what it was then: the next one that is rotated may overwrite it."""
    if file.place is not Place.HERE:
        return file.place is not Place.UNSEEN
    try:
        found = os.stat(file.path)
    except OSError:
        return False
    if file.packing != PLAIN:
        return file.skipped or file.failed or file.finished == (found.st_size, found.st_mtime_ns)
    seen = file.inode, file.size, file.modified_ns
    return not file.suspicious and seen == (found.st_ino, found.st_size, found.st_mtime_ns)


def _is_missed(file: Tracked) -> bool:
    """Whether a file that is gone, or was cut, may have had more than was read of it."""
    if file.packing != PLAIN:
        return file.finished is None and not file.skipped and not file.failed
    if file.reach > file.ledger.safe:
        return True
    # It was live when it was last looked at. One that had been rotated away before had long been read.
    return file.path == file.origin_path and not rotations_of(_name(file.path))


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


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
