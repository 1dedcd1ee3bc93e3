"""Which paths match. A folder whose time did not change has the same names as before and is not read again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Final, TypeAlias

_WILD: Final = re.compile(r"[*?\[]")
_ANY_DEPTH: Final = "**"

_Part: TypeAlias = "str | re.Pattern[str]"


@dataclass(frozen=True, slots=True)
class Found:
    """A path that matches. What is there is not looked at."""

    path: str
    entry: int
    """The number of its entry in the folder, which changes when something else takes its name; 0 when unknown."""
    named: bool
    """Whether it was asked for by name, not by pattern."""


@dataclass(slots=True)
class _Entry:
    name: str
    number: int
    is_folder: bool
    is_link: bool


@dataclass(slots=True)
class _Folder:
    changed_ns: int
    entries: list[_Entry]
    settled: bool = False
    """Read again after it was last seen to change: two changes within one tick of the clock have the same time."""


@dataclass(slots=True)
class Finding:
    """What one search gave."""

    found: list[Found] = field(default_factory=list)
    troubles: dict[str, OSError] = field(default_factory=dict)
    """Folders that could not be read. What is in them may still be there."""
    fresh: bool = True
    """False when no folder changed since the last search."""


class Finder:
    """Searches for globs again and again. Blocks: call it in a thread; never in two at once."""

    def __init__(self, globs: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._globs = [_parts(glob) for glob in globs]
        self._names = [re.compile(translate(glob)) for glob in exclude if "/" not in glob]
        self._paths = [_whole(glob) for glob in exclude if "/" in glob]
        self._folders: dict[str, _Folder] = {}
        self._visited: set[str] = set()

    def find(self) -> Finding:
        finding = Finding(fresh=False)
        self._visited = set()
        found: dict[str, Found] = {}
        for parts in self._globs:
            for each in self._walk("/", parts, finding, by_name=True):
                found.setdefault(each.path, each)
        for gone in self._folders.keys() - self._visited:
            del self._folders[gone]
            finding.fresh = True
        finding.found = [each for _, each in sorted(found.items()) if not self.excludes(each.path)]
        return finding

    def excludes(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return any(glob.match(name) for glob in self._names) or any(glob.match(path) for glob in self._paths)

    def files_in(self, folder: str) -> list[tuple[str, int]]:
        """Names of a folder and the numbers of their entries, without folders and links. As the last search found them
        if it came there; else the folder is read. Raises `OSError`."""
        known = self._folders.get(folder)
        entries = known.entries if known is not None else _read_folder(folder)
        return [(entry.name, entry.number) for entry in entries if not entry.is_folder and not entry.is_link]

    def _walk(self, folder: str, parts: list[_Part], finding: Finding, *, by_name: bool = False) -> Iterator[Found]:
        """`by_name`: no wildcard has come so far."""
        part, rest = parts[0], parts[1:]
        if isinstance(part, str) and part != _ANY_DEPTH:
            path = os.path.join(folder, part)
            if rest:
                yield from self._walk(path, rest, finding, by_name=by_name)
            elif by_name:
                # Looked at by whoever asked; folders above it need not be readable.
                yield Found(path, 0, named=True)
            else:
                yield from self._matching(folder, re.compile(re.escape(part) + r"\Z"), [], finding)
            return
        if part == _ANY_DEPTH:
            yield from self._walk(folder, rest, finding)
            for entry in self._entries(folder, finding):
                if entry.is_folder and not entry.is_link and not entry.name.startswith("."):
                    yield from self._walk(os.path.join(folder, entry.name), parts, finding)
            return
        assert isinstance(part, re.Pattern), "the other kinds are done with"
        yield from self._matching(folder, part, rest, finding)

    def _matching(self, folder: str, part: re.Pattern[str], rest: list[_Part], finding: Finding) -> Iterator[Found]:
        for entry in self._entries(folder, finding):
            if not part.match(entry.name):
                continue
            path = os.path.join(folder, entry.name)
            if rest and entry.is_folder:
                yield from self._walk(path, rest, finding)
            elif not rest and not entry.is_folder:
                yield Found(path, 0 if entry.is_link else entry.number, named=False)

    def _entries(self, path: str, finding: Finding) -> list[_Entry]:
        known = self._folders.get(path)
        if path in self._visited:
            return known.entries if known is not None else []
        self._visited.add(path)
        try:
            changed_ns = os.stat(path).st_mtime_ns
            if known is not None and known.settled and known.changed_ns == changed_ns:
                return known.entries
            entries = _read_folder(path)
        except (FileNotFoundError, NotADirectoryError):
            finding.fresh |= self._folders.pop(path, None) is not None
            return []
        except OSError as error:
            finding.troubles[path] = error
            self._folders.pop(path, None)
            finding.fresh = True
            return []
        settled = known is not None and known.changed_ns == changed_ns
        self._folders[path] = _Folder(changed_ns, entries, settled)
        finding.fresh = True
        return entries


def path_pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    """Matches whole paths that one of these globs finds; None for no globs."""
    patterns = [_whole(glob).pattern for glob in globs]
    return re.compile("|".join(patterns)) if patterns else None


def _read_folder(path: str) -> list[_Entry]:
    with os.scandir(path) as listing:
        return [_Entry(entry.name, entry.inode(), entry.is_dir(), entry.is_symlink()) for entry in listing]


def _parts(glob: str) -> list[_Part]:
    names = [name for name in os.path.abspath(glob).split("/") if name]
    if names and names[-1] == _ANY_DEPTH:
        names.append("*")
    return [_pattern(name) if _WILD.search(name) and name != _ANY_DEPTH else name for name in names]


def _pattern(name: str) -> re.Pattern[str]:
    # As in a shell, a name that begins with a dot has to be asked for.
    hidden = "" if name.startswith(".") else r"(?!\.)"
    return re.compile(hidden + translate(name))


def _whole(glob: str) -> re.Pattern[str]:
    """A pattern for whole paths: `*` stays within a folder, `**` does not."""
    names = [name for name in os.path.abspath(glob).split("/") if name]
    text = ""
    for index, name in enumerate(names):
        if name == _ANY_DEPTH:
            text += "(?:/[^/]+)*" if index + 1 < len(names) else "/.+"
        else:
            text += "/" + translate(name).removeprefix("(?s:").removesuffix(r")\Z").replace(".*", "[^/]*")
    return re.compile(f"(?s:{text})\\Z")
