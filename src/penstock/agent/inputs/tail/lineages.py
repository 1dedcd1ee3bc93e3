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
from typing import Final

from penstock.agent.inputs.files.inflating import PLAIN
from penstock.agent.inputs.files.troubles import in_words
from penstock.agent.inputs.tail.finding import Finder, Finding, path_pattern
from penstock.agent.inputs.tail.followed import Disturbance, Followed
from penstock.agent.inputs.tail.identity import Place
from penstock.agent.inputs.tail.losses import Losses, recency
from penstock.agent.inputs.tail.siblings import Elder, Quest, Siblings, Survey, look_beside
from penstock.agent.inputs.tail.tracked import Tracked

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
        self._losses = Losses(followed)

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
            self._followed.doubt(file)

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
        if not followed.disturbed and not unknown:
            return []
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
            self._losses.tell_the_rest()

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
            dated = [file for file in members if file.horizon_ns and file.settled]
            disturbance.since = int(max(dated, key=recency).key) if dated else 0
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
        self._losses.tell(disturbance, self._surveys[disturbance.path], members, live, unread)
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
            heir = live or max(members, key=recency, default=None)
            if heir is not None:
                heir.horizon_ns, heir.settled = horizon_ns, True
                followed.mark_dirty(heir)
        del followed.disturbed[path]
        self._surveys.pop(path, None)


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


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"
