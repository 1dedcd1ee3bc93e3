"""What lies beside followed files: found by inode, whatever the name, and by the names that rotation gives. Blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from penstock.agent.inputs.tail.finding import Finder
from penstock.agent.inputs.tail.rotations import Rotation, rotations_of


@dataclass(frozen=True, slots=True)
class Elder:
    """A file at a path that is not followed, and may hold what was at one that is."""

    path: str
    entry: int
    lineage: str
    """The followed path."""
    fresh: bool
    """Written to since all was known: read, even if nobody has ever seen it."""
    stray: bool = False
    """Its name is not one that rotation gives; only its inode is known."""


@dataclass(slots=True)
class Quest:
    """What is to be found of one followed path."""

    path: str
    horizon_ns: int
    """See `Tracked.horizon_ns`. 0 when it is unknown: then only what is younger than a known file is fresh."""
    bases: set[str] = field(default_factory=set)
    """Real paths whose rotations count."""
    lost: dict[int, set[str]] = field(default_factory=dict)
    """Inodes of files whose name is unknown, and the folders in which they may be."""
    held: set[int] = field(default_factory=set)
    """Inodes of files that were rotated away and are still open."""


@dataclass(slots=True)
class Survey:
    """What there is of one followed path."""

    elders: list[Elder] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    """Rotations that are counted, and when each was last written to."""
    newest_ns: int = 0
    """When any of its rotations was last written to."""
    siblings: frozenset[tuple[str, int]] = frozenset()
    """Paths and inodes of all of its rotations."""
    unreadable: dict[str, os.stat_result] = field(default_factory=dict)
    """Fresh ones, compressed in a form that is not understood."""


@dataclass(slots=True)
class _Sibling:
    path: str
    entry: int
    rotation: Rotation
    found: os.stat_result


@dataclass(slots=True)
class Siblings:
    """What all folders had."""

    surveys: dict[str, Survey]
    unsearched: dict[str, OSError] = field(default_factory=dict)
    """Folders that could not be read."""


def look_beside(
    quests: Iterable[Quest], finder: Finder, matched: Collection[str], claimed: re.Pattern[str] | None
) -> Siblings:
    """`matched` paths are found without this; `claimed` ones are another input's to read."""
    by_path = {quest.path: quest for quest in quests}
    siblings = Siblings({path: Survey() for path in by_path})
    bases: dict[str, dict[str, Quest]] = {}
    lost: dict[str, dict[int, Quest]] = {}
    for quest in by_path.values():
        for base in quest.bases:
            folder, _, name = base.rpartition("/")
            bases.setdefault(folder or "/", {})[name] = quest
        for inode, folders in quest.lost.items():
            for folder in folders:
                lost.setdefault(folder, {})[inode] = quest
    of_quests: dict[str, list[_Sibling]] = {}
    for folder in bases.keys() | lost.keys():
        try:
            files = finder.files_in(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            siblings.unsearched[folder] = error
            continue
        names, inodes = bases.get(folder, {}), lost.get(folder, {})
        for name, entry in files:
            path = os.path.join(folder, name)
            rotation = next((each for each in rotations_of(name) if each.base in names), None)
            if rotation is not None:
                sibling = _stat(path, entry, rotation)
                if sibling is not None:
                    of_quests.setdefault(names[rotation.base].path, []).append(sibling)
            elif entry in inodes and path not in matched:
                quest = inodes[entry]
                siblings.surveys[quest.path].elders.append(Elder(path, entry, quest.path, fresh=False, stray=True))
    for path, found in of_quests.items():
        _survey(by_path[path], found, siblings.surveys[path], finder, matched, claimed)
    return siblings


def _stat(path: str, entry: int, rotation: Rotation) -> _Sibling | None:
    try:
        return _Sibling(path, entry, rotation, os.stat(path))
    except OSError:
        return None


def _survey(
    quest: Quest,
    found: list[_Sibling],
    survey: Survey,
    finder: Finder,
    matched: Collection[str],
    claimed: re.Pattern[str] | None,
) -> None:
    known = quest.lost.keys() | quest.held
    survey.siblings = frozenset((sibling.path, sibling.found.st_ino) for sibling in found)
    survey.newest_ns = max(sibling.found.st_mtime_ns for sibling in found)
    horizon_ns = quest.horizon_ns
    if not horizon_ns:
        known_ns = [each.found.st_mtime_ns for each in found if each.entry in known]
        horizon_ns = max(known_ns or [survey.newest_ns + 1])
    for sibling in found:
        modified_ns, number = sibling.found.st_mtime_ns, sibling.rotation.number
        if number is not None:
            survey.numbers[number] = modified_ns
        if sibling.path in matched:
            continue
        fresh = modified_ns >= horizon_ns
        if fresh and (finder.excludes(sibling.path) or (claimed is not None and claimed.match(sibling.path))):
            fresh = False
        if sibling.entry in known:
            survey.elders.append(Elder(sibling.path, sibling.entry, quest.path, fresh))
        elif not sibling.rotation.readable:
            if fresh:
                survey.unreadable[sibling.path] = sibling.found
        elif fresh or not quest.horizon_ns:
            survey.elders.append(Elder(sibling.path, sibling.entry, quest.path, fresh))
