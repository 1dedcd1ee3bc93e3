"""One checkpoint and its copies in a store.

    driver begins      the newest copy is the checkpoint, unless this disk has what it was made of, or newer; then it
                       puts a copy of its own: from here on every other driver's next copy is refused
    before a commit    new bytes go into packs, then a manifest goes under the next number
    refused            somebody else has begun: `CheckpointTaken`, before anything of the batch is committed
    killed in between  packs that no manifest names, which the next driver sweeps; the copy before is whole

A driver that comes back after it was taken for lost does no harm: its copy is refused, and nobody names its packs.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from penstock.spark.checkpoints.local import LocalCheckpoint, Note, Stamp, place_in, stamp_of
from penstock.spark.checkpoints.manifest import (
    MANIFESTS,
    PACK_BYTES,
    PACKS,
    Manifest,
    Stored,
    garbage,
    in_packs,
    manifest_name,
    newest,
    pack_name,
    strays,
)
from penstock.spark.checkpoints.objects import Objects, StoreFailed
from penstock.spark.errors import SparkRoomError

BEGIN_TRIES: Final = 8
SEND_TRIES: Final = 3
OFFSETS: Final = "offsets/"
METADATA: Final = "metadata"

_log = logging.getLogger("penstock.spark.checkpoints")


class CheckpointTaken(SparkRoomError):
    """Another driver goes on with this checkpoint; says which."""


class PutsOverwrite(SparkRoomError):
    """The store lets a second put of the same object through: two drivers could not be told apart."""


class Mirror:
    """The checkpoint in `local` and its copies in `objects`."""

    def __init__(self, local: LocalCheckpoint, objects: Objects) -> None:
        self._local, self._objects = local, objects

    def begin(self) -> str:
        """Makes the local checkpoint the newest one there is, and its copies ours; who we are from now on."""
        holder = uuid.uuid4().hex
        self._check_refuses(holder)
        with self._local.locked():
            for _ in range(BEGIN_TRIES):
                number = newest(self._objects.names(MANIFESTS))
                note = self._same_or_restored(number)
                if note is None:
                    continue
                manifest = self._manifest(number + 1, holder, note.files)
                if not self._put(manifest):
                    continue
                recent = {**note.recent, manifest.number: sorted(manifest.packs)}
                self._local.write_note(replace(note, holder=holder, number=manifest.number, recent=recent))
                self._sweep(manifest)
                self._send(holder)
                return holder
        raise StoreFailed(f"{self._objects.place} is begun by other drivers again and again: stop all but one")

    def send(self, holder: str) -> None:
        """What is new goes to the store; returns when a driver elsewhere could go on from it."""
        with self._local.locked():
            self._send(holder)

    def last_number(self) -> int:
        return newest(self._objects.names(MANIFESTS))

    # Beginning.

    def _same_or_restored(self, number: int) -> Note | None:
        """What this machine then knows of the store; None when the copy went away while it was read."""
        note = self._local.note()
        ours = note is not None and note.place == self._objects.place
        if note is not None and not self._has(note):
            note = None
        if note is not None and ours and note.number == number:
            return note
        if number == 0:
            # The first copy, or the store was emptied: what is here is all there is.
            return Note(self._objects.place, "", 0)
        text = self._objects.get(manifest_name(number))
        if text is None:
            return None
        manifest = Manifest.of_json(text, f"{self._objects.place}/{manifest_name(number)}")
        if note is not None and ours and manifest.holder == note.holder:
            # Ours, and killed before it was noted. The disk has that, and perhaps more.
            return replace(note, number=number, sent={}, files=manifest.files, recent={number: sorted(manifest.packs)})
        return self._restored(manifest)

    def _has(self, note: Note) -> bool:
        """Whether the disk still has what the note speaks of. Spark tidies old batches away, never the newest one."""
        there = self._local.files()
        batches = [int(name.removeprefix(OFFSETS)) for name in note.sent if name.removeprefix(OFFSETS).isdigit()]
        wanted = {f"{OFFSETS}{max(batches)}"} if batches else set()
        return all(name in there for name in wanted | ({METADATA} & note.sent.keys()))

    def _restored(self, manifest: Manifest) -> Note | None:
        by_pack: dict[str, dict[str, Stored]] = defaultdict(dict)
        for name, stored in manifest.files.items():
            by_pack[stored.pack][name] = stored
        try:
            with self._local.replaced() as directory:
                for pack, files in sorted(by_pack.items()):
                    self._unpack(directory, pack, files)
        except FileNotFoundError:
            # It was tidied away while we read: there is a newer copy.
            return None
        _log.warning(
            "%s has %d files from %s, as a driver on %s left them",
            self._local.directory,
            len(manifest.files),
            self._objects.place,
            manifest.host,
        )
        return Note(
            place=self._objects.place,
            holder="",
            number=manifest.number,
            sent=self._local.files(),
            files=manifest.files,
            recent={manifest.number: sorted(manifest.packs)},
        )

    def _unpack(self, directory: Path, pack: str, files: Mapping[str, Stored]) -> None:
        if len(files) == 1:
            # It may be large: state of gigabytes is one file.
            [(name, stored)] = files.items()
            path = place_in(directory, name)
            with path.open("wb") as file:
                at = 0
                for part in self._objects.parts(pack):
                    file.write(part[max(0, stored.start - at) : max(0, stored.start + stored.size - at)])
                    at += len(part)
            self._check_whole(path, name, stored)
            return
        data = self._objects.get(pack)
        if data is None:
            raise FileNotFoundError(pack)
        for name, stored in files.items():
            path = place_in(directory, name)
            path.write_bytes(data[stored.start : stored.start + stored.size])
            self._check_whole(path, name, stored)

    def _check_whole(self, path: Path, name: str, stored: Stored) -> None:
        if path.stat().st_size != stored.size:
            raise StoreFailed(f"{self._objects.place}/{stored.pack} lacks bytes of {name}: the store has lost a part")

    def _check_refuses(self, holder: str) -> None:
        name = f"probes/{holder}"
        landed = [self._objects.put_new(name, b"") for _ in range(2)]
        self._objects.delete([name])
        if all(landed):
            raise PutsOverwrite(
                f"{self._objects.place} is in a store that overwrites where it was told not to (If-None-Match): two "
                "drivers could not be told apart there. Give checkpoints a directory, or another store"
            )

    def _sweep(self, manifest: Manifest) -> None:
        """What was left by drivers that died, ours among them. A sweep that fails is done by the next driver."""
        try:
            before = [name for name in self._objects.names(MANIFESTS) if name < manifest_name(manifest.number - 1)]
            self._objects.delete(before)
            self._objects.delete(strays(self._objects.names(PACKS), manifest.number, manifest.packs))
        except StoreFailed as failure:
            _log.warning("left-overs stay for now: %s", failure)

    # Sending.

    def _send(self, holder: str) -> None:
        for _ in range(SEND_TRIES):
            note = self._held(holder)
            found = self._local.files()
            changed = {name: stamp for name, stamp in found.items() if note.sent.get(name) != stamp}
            if not changed and found.keys() == note.files.keys():
                return
            stored, sent = self._packed(note.number + 1, changed)
            kept = {name: each for name, each in note.files.items() if name in found and name not in changed}
            manifest = self._manifest(note.number + 1, holder, {**kept, **stored})
            if self._put(manifest):
                stamps = {name: stamp for name, stamp in note.sent.items() if name in kept}
                self._noted(note, manifest, {**stamps, **sent})
                return
            self._adopted(note, holder)
        raise StoreFailed(f"{self._objects.place} could not be brought up to date in {SEND_TRIES} tries")

    def _held(self, holder: str) -> Note:
        note = self._local.note()
        if note is None or note.holder != holder:
            raise CheckpointTaken(
                f"the checkpoint {self._local.directory} was begun by another process of this machine: this one stops"
            )
        return note

    def _packed(self, number: int, changed: Mapping[str, Stamp]) -> tuple[dict[str, Stored], dict[str, Stamp]]:
        """New bytes in the store: where each file's are, and what the files were like."""
        stored: dict[str, Stored] = {}
        sent: dict[str, Stamp] = {}
        for names in in_packs({name: size for name, (size, _) in changed.items()}):
            pack = pack_name(number, uuid.uuid4().hex[:16])
            if len(names) == 1 and changed[names[0]][0] > PACK_BYTES:
                self._put_large(pack, names[0], stored, sent)
                continue
            data = bytearray()
            for name in names:
                try:
                    with (self._local.directory / name).open("rb") as file:
                        stamp, content = stamp_of(os.fstat(file.fileno())), file.read()
                except FileNotFoundError:
                    continue
                stored[name] = Stored(pack, len(data), len(content))
                sent[name] = stamp
                data += content
            if data or stored:
                self._objects.put(pack, bytes(data))
        return stored, sent

    def _put_large(self, pack: str, name: str, stored: dict[str, Stored], sent: dict[str, Stamp]) -> None:
        try:
            with (self._local.directory / name).open("rb") as file:
                stamp = stamp_of(os.fstat(file.fileno()))
                self._objects.put(pack, file)
        except FileNotFoundError:
            return
        stored[name], sent[name] = Stored(pack, 0, stamp[0]), stamp

    def _adopted(self, note: Note, holder: str) -> None:
        """The number was taken: by us, when a process of ours died before it noted it, or by somebody else."""
        number = note.number + 1
        where = f"{self._objects.place}/{manifest_name(number)}"
        text = self._objects.get(manifest_name(number))
        theirs = None if text is None else Manifest.of_json(text, where)
        if theirs is None or theirs.holder != holder:
            who = "another driver" if theirs is None else f"a driver on {theirs.host}, since {_time(theirs.time_ms)}"
            raise CheckpointTaken(
                f"the checkpoint {self._objects.place} belongs to {who}: this one stops, and has committed nothing "
                "since. Let one of them run"
            )
        recent = {**note.recent, number: sorted(theirs.packs)}
        self._local.write_note(replace(note, number=number, sent={}, files=theirs.files, recent=recent))

    def _noted(self, note: Note, manifest: Manifest, sent: Mapping[str, Stamp]) -> None:
        recent = {**note.recent, manifest.number: sorted(manifest.packs)}
        numbers, packs = garbage(recent, manifest.number)
        left = {number: each for number, each in recent.items() if number not in numbers}
        self._local.write_note(Note(note.place, note.holder, manifest.number, sent, manifest.files, left))
        try:
            self._objects.delete([*(manifest_name(number) for number in numbers), *packs])
        except StoreFailed as failure:
            _log.warning("left-overs stay for the next start: %s", failure)

    # Both.

    def _manifest(self, number: int, holder: str, files: Mapping[str, Stored]) -> Manifest:
        now_ms = time.time_ns() // 1_000_000
        return Manifest(number, holder, socket.gethostname(), now_ms, uuid.uuid4().hex, files)

    def _put(self, manifest: Manifest) -> bool:
        """Whether it is there by our doing, however its answer came."""
        name = manifest_name(manifest.number)
        if self._objects.put_new(name, manifest.to_json().encode()):
            return True
        text = self._objects.get(name)
        return text is not None and Manifest.of_json(text, f"{self._objects.place}/{name}").put == manifest.put


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
