"""A search of the folders, and what becomes of what it finds."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import Final

from penstock.agent.inputs.files.inflating import PLAIN, Broken, CutOff
from penstock.agent.inputs.files.troubles import in_words
from penstock.agent.inputs.tail.descriptors import NotAFile
from penstock.agent.inputs.tail.finding import Finder, Finding, Found
from penstock.agent.inputs.tail.followed import Followed
from penstock.agent.inputs.tail.identity import (
    Alias,
    CopyOf,
    New,
    Place,
    Renamed,
    Replaced,
    Same,
    Sighting,
    Verdict,
    Wait,
    anchor_at,
    judge,
    judge_own,
    print_of,
)
from penstock.agent.inputs.tail.lineages import Lineages
from penstock.agent.inputs.tail.siblings import Elder
from penstock.agent.inputs.tail.sighting import Candidate, Opened, open_path, sight
from penstock.agent.inputs.tail.tracked import Tracked

SLICE: Final = 100
"""So many files are judged before others have their turn on the loop."""
RETRY_MAX_MS: Final = 30_000.0
LAST_LINE_WITHIN_BYTES: Final = 64 << 10
SEARCHES: Final = 2
"""A file that so many searches in a row did not find is gone."""


@dataclass(slots=True)
class _Sorted:
    """Candidates, by what is known of the inode that is at their path."""

    at_their_own: list[Candidate] = field(default_factory=list)
    elsewhere: list[Candidate] = field(default_factory=list)
    strangers: list[Candidate] = field(default_factory=list)


class Discovery:
    """Finds files, knows them again, and hands them to the schedule."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._settings = followed.settings
        self._finder = Finder(followed.settings.paths, followed.settings.exclude)
        self._lineages = Lineages(followed, self._finder)
        self._candidates: dict[str, Candidate] = {}
        self._finding = Finding()
        self._from_end = False
        self.took_ms = 0.0
        """How long the last search took, without what became of it."""
        self.waiting = 0
        """Candidates that are still undecided."""

    async def round(self, *, news: bool = True, first_ever: bool = False) -> None:
        """One search. `news`: something is not where it was. `first_ever`: files may be read from their end."""
        self._from_end = first_ever and self._settings.from_end
        missing = self._followed.catalogue.unseen()
        begun_ms = self._followed.now_ms()
        finding = await asyncio.to_thread(self._finder.find)
        self.took_ms = self._followed.now_ms() - begun_ms
        self._tell_folders(finding)
        self._finding = finding
        if finding.fresh or news:
            await self._compare(finding)
        await self._decide(missing)

    def _tell_folders(self, finding: Finding) -> None:
        troubles = self._followed.troubles
        for folder in self._finding.troubles.keys() - finding.troubles.keys():
            troubles.well(folder)
        for folder, error in finding.troubles.items():
            troubles.tell(folder, f"cannot be searched: {in_words(error)}")

    async def _compare(self, finding: Finding) -> None:
        """Candidates are the paths that do not show what they are known to show."""
        catalogue, now_ms = self._followed.catalogue, self._followed.now_ms()
        paths = set()
        for number, found in enumerate(finding.found):
            paths.add(found.path)
            file = catalogue.at_path(found.path)
            if file is None or (found.entry and file.entry and found.entry != file.entry):
                self._nominate(found, now_ms)
            if number % 1000 == 999:
                await asyncio.sleep(0)
        for gone in self._candidates.keys() - paths:
            if self._candidates[gone].elder is None:
                del self._candidates[gone]
        for path, file in catalogue.paths():
            if path not in paths and not _shows(path, file):
                self._followed.leave(file)

    def _nominate(self, found: Found, now_ms: float) -> None:
        known = self._candidates.get(found.path)
        if known is None:
            self._candidates[found.path] = Candidate(found.path, found.entry, found.named, now_ms)
        elif known.entry != found.entry:
            known.entry, known.next_ms = found.entry, 0.0

    async def _decide(self, missing: list[Tracked]) -> None:
        """First what is known by its inode, so that it is clear what is still there; then copies and new ones."""
        now_ms = self._followed.now_ms()
        by_name = await self._sort([each for each in self._candidates.values() if each.elder is None], now_ms)
        await self._settle_all(by_name.at_their_own, now_ms)
        elders = await self._lineages.search(
            self._finding, missing, [each.path for each in [*by_name.strangers, *by_name.elsewhere]]
        )
        beside = await self._sort(self._nominate_elders(elders, now_ms), now_ms)
        await self._settle_all([*by_name.elsewhere, *beside.at_their_own, *beside.elsewhere], now_ms)
        for file in missing:
            if file.place is Place.UNSEEN:
                self._not_found(file)
        # The oldest first: what was rotated away is read before what took its place.
        strangers = sorted([*by_name.strangers, *beside.strangers], key=lambda each: (each.modified_ns, each.path))
        await self._settle_all(strangers, now_ms)
        self._lineages.close(self._undecided())
        self.waiting = sum(1 for candidate in self._candidates.values() if candidate.tries)

    async def _sort(self, candidates: list[Candidate], now_ms: float) -> _Sorted:
        """What is at each path, by what is known of its inode. Only those that are due."""
        found = _Sorted()
        for number, candidate in enumerate([each for each in candidates if each.next_ms <= now_ms]):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            if self._stat(candidate, now_ms) is None:
                continue
            self._leave_if_replaced(candidate)
            file = self._followed.catalogue.with_identity(*candidate.identity)
            if file is None:
                found.strangers.append(candidate)
            elif file.path == candidate.path:
                found.at_their_own.append(candidate)
            elif file.place is not Place.HERE or not _shows(file.path, file):
                self._followed.leave(file)
                found.elsewhere.append(candidate)
            # Else it is another name of a file that is at its own; what a link means may change later.
        return found

    def _nominate_elders(self, elders: list[Elder], now_ms: float) -> list[Candidate]:
        """What lies beside followed paths is a candidate as long as it is found there and not followed itself."""
        before = {path: each for path, each in self._candidates.items() if each.elder is not None}
        for path in before:
            del self._candidates[path]
        nominated = []
        for elder in elders:
            file = self._followed.catalogue.at_path(elder.path)
            if file is not None and file.inode == elder.entry:
                continue
            candidate = before.get(elder.path)
            if candidate is None or candidate.entry != elder.entry:
                candidate = Candidate(elder.path, elder.entry, named=False, first_ms=now_ms)
            candidate.elder = elder
            self._candidates[elder.path] = candidate
            nominated.append(candidate)
        return nominated

    def _undecided(self) -> set[str]:
        """Followed paths of which something is not decided yet."""
        undecided = set[str]()
        for candidate in self._candidates.values():
            if candidate.elder is not None:
                undecided.add(candidate.elder.lineage)
            if candidate.tries:
                # A copy that is found by its own name is not known to belong to the path of its original.
                undecided |= {candidate.path, *candidate.kin}
        return undecided

    def _not_found(self, file: Tracked) -> None:
        """A name that is just being changed may be missed by a search, so one search is not enough."""
        file.absent += 1
        if file.absent >= SEARCHES or file.ended:
            self._followed.finish(file)

    async def _settle_all(self, candidates: list[Candidate], now_ms: float) -> None:
        for number, candidate in enumerate(candidates):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            await self._settle(candidate, now_ms)

    def _stat(self, candidate: Candidate, now_ms: float) -> os.stat_result | None:
        try:
            found = os.stat(candidate.path)
        except FileNotFoundError:
            # What a link or a name that was asked for means may come to be; other names are found again by a search.
            candidate.next_ms = now_ms
            if candidate.entry:
                self._candidates.pop(candidate.path, None)
            return None
        except OSError as error:
            self._trouble(candidate, in_words(error), now_ms)
            return None
        candidate.see(found, now_ms)
        return found

    def _leave_if_replaced(self, candidate: Candidate) -> None:
        """The file that was at this path before is not there any more."""
        before = self._followed.catalogue.at_path(candidate.path)
        if before is not None and before.identity != candidate.identity:
            self._followed.leave(before)

    async def _settle(self, candidate: Candidate, now_ms: float) -> None:
        try:
            opened = open_path(candidate.path)
        except FileNotFoundError:
            return
        except NotAFile as error:
            if candidate.named:
                self._trouble(candidate, in_words(error), now_ms)
            else:
                candidate.next_ms = now_ms + RETRY_MAX_MS
            return
        except OSError as error:
            self._trouble(candidate, in_words(error), now_ms)
            return
        kept = False
        try:
            candidate.see(opened.found, now_ms)
            kept = await self._judge(candidate, opened, now_ms)
        except CutOff:
            self._trouble(candidate, "is compressed and not complete; waiting for the rest", now_ms)
        except Broken as error:
            self._trouble(candidate, f"is broken and left out: {error}", now_ms)
        except OSError as error:
            self._trouble(candidate, in_words(error), now_ms)
        finally:
            if not kept:
                os.close(opened.descriptor)

    async def _judge(self, candidate: Candidate, opened: Opened, now_ms: float) -> bool:
        """Whether the descriptor was taken over."""
        followed, header_bytes = self._followed, self._settings.ignored_header_bytes
        packed = opened.packing != PLAIN
        if packed:
            seen = await asyncio.to_thread(sight, opened, candidate, header_bytes, now_ms)
        else:
            seen = sight(opened, candidate, header_bytes, now_ms)
        own = followed.catalogue.with_identity(*opened.identity)
        if own is not None and self._is_used_again(own, candidate, opened, seen):
            followed.overwrite(own)
            own = None
        alike = [] if own is not None else followed.catalogue.alike(seen.head)
        candidate.kin = frozenset(file.origin_path for file in alike)
        if own is None and not alike:
            # The usual case, and at the first start the only one.
            return self._apply(New(), candidate, opened, seen)
        known_own = followed.known(own) if own is not None else None
        known_alike = [followed.known(file) for file in alike]
        settle_ms = self._settings.rotate_wait_ms
        if packed:
            verdict = await asyncio.to_thread(judge, seen, known_own, known_alike, settle_ms)
            if any(followed.catalogue.files[known.key].place is not known.place for known in known_alike):
                # Reading went on meanwhile, and the facts are others now.
                return self._again(candidate)
        else:
            verdict = judge(seen, known_own, known_alike, settle_ms)
        return self._apply(verdict, candidate, opened, seen)

    def _is_used_again(self, own: Tracked, candidate: Candidate, opened: Opened, seen: Sighting) -> bool:
        """Whether another file has the inode of a known one, or its place among the rotated. It may be the copy of a
        third."""
        if own.generation and opened.generation not in (0, own.generation):
            return True
        if candidate.path == own.path == own.origin_path:
            return False
        if own.path != own.origin_path and not own.prefix.length and not own.reach and opened.found.st_size:
            # It was rotated away empty.
            return True
        if candidate.path == own.origin_path and own.place is Place.UNSEEN and not own.prefix.length:
            # Nothing but its inode is known of it, and what was rotated away does not come back.
            return True
        return judge_own(seen, self._followed.known(own)) == Replaced(own.key)

    def _apply(self, verdict: Verdict, candidate: Candidate, opened: Opened, seen: Sighting) -> bool:
        followed, files, elder = self._followed, self._followed.catalogue.files, candidate.elder
        match verdict:
            case Same(key) | Renamed(key):
                if elder is not None and elder.stray and seen.size == files[key].read:
                    # It was read to its end, and its name says that it is to be left alone now.
                    files[key].ended = True
                    followed.finish(files[key])
                    return self._pass(candidate)
                self._arrived(files[key], candidate, opened, seen)
            case Replaced(key):
                followed.cut(files[key], in_place=files[key].path == candidate.path)
                followed.news.set()
                self._begin(candidate, opened, seen)
            case CopyOf(key, position, True):
                self._take_over(files[key], position, candidate, opened, seen)
            case CopyOf(key, _, False) if elder is not None and files[key].place in (Place.HERE, Place.HELD):
                return self._pass(candidate)
            case CopyOf(key, position, False):
                if files[key].ledger.safe < position:
                    # What comes before the position is not acknowledged yet: the copy cannot claim that it is.
                    return self._again(candidate)
                files[key].ended = True
                self._begin(candidate, opened, seen, position)
            case Alias() | Wait():
                return self._again(candidate)
            case New():
                if elder is not None and not self._is_ours(elder):
                    return self._pass(candidate)
                self._begin(candidate, opened, seen)
        self._candidates.pop(candidate.path, None)
        followed.troubles.well(candidate.path)
        return True

    def _is_ours(self, elder: Elder) -> bool:
        """Whether what nobody has ever seen is younger than what was last seen at the followed path."""
        return elder.fresh and not elder.stray and not self._lineages.stands(elder.lineage)

    def _pass(self, candidate: Candidate) -> bool:
        self._candidates.pop(candidate.path, None)
        return False

    def _arrived(self, file: Tracked, candidate: Candidate, opened: Opened, seen: Sighting) -> None:
        doubtful = not file.prefix.length and not file.changed_ms
        self._note(file, candidate, opened)
        self._followed.arrive(file, candidate.path, opened.identity, opened.descriptor)
        self._lineages.arrived(file, doubtful=doubtful)
        if not file.tail and file.packing == PLAIN:
            self._fill_tail(file, seen)

    def _take_over(self, file: Tracked, position: int, candidate: Candidate, opened: Opened, seen: Sighting) -> None:
        file.packing, file.rotated = opened.packing, True
        file.rewind(position, None)
        self._note(file, candidate, opened)
        self._followed.arrive(file, candidate.path, opened.identity, opened.descriptor)
        if file.packing == PLAIN:
            self._fill_tail(file, seen)

    def _begin(self, candidate: Candidate, opened: Opened, seen: Sighting, position: int = 0) -> None:
        followed = self._followed
        before = followed.not_yet_read(candidate.path)
        file = followed.new(candidate.path, *opened.identity)
        file.packing = opened.packing
        followed.descriptors.give(file, opened.descriptor)
        self._note(file, candidate, opened)
        file.after = before
        if candidate.elder is None:
            self._lineages.begin(file)
        else:
            followed.inherit(file, candidate.elder.lineage)
        if self._from_end and not position:
            position = self._end_of_lines(file, opened, seen)
        if position and file.packing == PLAIN:
            bytes_before = seen.look(max(0, position - 256), min(256, position))
            file.begin_at(position, bytes_before, anchor_at(position, bytes_before))
        elif position:
            file.begin_at(position, None, None)
        file.head = print_of(seen.head)
        if file.packing != PLAIN or file.held_until_ms:
            # What waits may be rotated and compressed before any of it is read.
            followed.catalogue.grow(file, print_of(seen.head))
        else:
            followed.grow_prefix(file, seen.head)
        if position or file.skipped:
            followed.mark_dirty(file)
        followed.want(file)

    def _end_of_lines(self, file: Tracked, opened: Opened, seen: Sighting) -> int:
        """Where the last complete line ends; a compressed file is complete and has nothing to add."""
        if seen.size is None:
            file.skipped = True
            return 0
        begin = max(0, seen.size - LAST_LINE_WITHIN_BYTES)
        last = seen.look(begin, seen.size - begin).rfind(b"\n")
        return begin + last + 1 if last >= 0 else seen.size

    def _fill_tail(self, file: Tracked, seen: Sighting) -> None:
        """The anchor was found to stand: these are the bytes it is of."""
        length = min(256, file.read)
        file.tail = seen.look(file.read - length, length)

    def _note(self, file: Tracked, candidate: Candidate, opened: Opened) -> None:
        file.entry = candidate.entry
        file.size, file.modified_ns = opened.found.st_size, opened.found.st_mtime_ns
        file.generation = opened.generation
        file.reach = max(file.reach, file.size)
        if not candidate.entry:
            real_path = os.path.realpath(candidate.path)
            file.real_path = real_path if real_path != candidate.path else ""

    def _again(self, candidate: Candidate) -> bool:
        candidate.tries += 1
        wait_ms = min(self._settings.discover_ms * candidate.tries, self._settings.rotate_wait_ms / 2, RETRY_MAX_MS)
        candidate.next_ms = self._followed.now_ms() + wait_ms
        return False

    def _trouble(self, candidate: Candidate, words: str, now_ms: float) -> None:
        self._followed.troubles.tell(candidate.path, words)
        candidate.tries += 1
        candidate.next_ms = now_ms + min(self._settings.discover_ms * 2 ** min(candidate.tries, 16), RETRY_MAX_MS)


def _shows(path: str, file: Tracked) -> bool:
    """Whether a path that a search did not find shows the file all the same, as when its folder cannot be read."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return (found.st_dev, found.st_ino) == file.identity
