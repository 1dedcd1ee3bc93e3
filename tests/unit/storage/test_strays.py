"""Directories that were set aside: since when they are, whose they were, and how they go."""

from __future__ import annotations

import copy
import errno

import pytest

from penstock.model.ids import Millis, TopicPartition, Uuid
from penstock.storage.store import LogStore
from penstock.storage.strays import STRAY_METADATA, StrayFacts, look_into
from penstock.testing.memory_files import MemoryFiles

from .test_store import NOW, SETTINGS, create, fill, key, opened

LATER = Millis(NOW + 50_000)


def set_aside(files: MemoryFiles, number: int = 1, *, records: int = 0) -> tuple[LogStore, str]:
    """A store with one stray, and its path."""
    store = opened(files)
    fill(create(store, number), records)
    store.set_aside(key(number), now=NOW)
    store.settle()
    (path,) = store.strays
    return store, path


def again(files: MemoryFiles) -> LogStore:
    files.kill()
    return opened(files)


def test_a_stray_says_since_when_it_is_one_for_ever() -> None:
    files = MemoryFiles()
    store, path = set_aside(files, records=3)
    stray = store.strays[path]
    facts = StrayFacts(NOW, key(1).topic_id, has_records=True)
    assert (stray.name, stray.since, stray.facts) == (TopicPartition("topic1", 0), NOW, None)
    assert look_into(files, path, stray.since, LATER) == facts
    found = again(files).strays[path]
    assert (found.name, found.since) == (TopicPartition("topic1", 0), None)
    assert look_into(files, path, found.since, LATER) == facts


def test_a_note_that_was_written_survives_a_power_cut() -> None:
    files = MemoryFiles()
    store, path = set_aside(files)
    store.close(1)
    for directory in ("/", "/disk1", "/disk1/logs"):
        files.sync_dir(directory)
    look_into(files, path, NOW, NOW)
    files.crash()
    assert look_into(files, path, None, LATER).since == NOW


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"",
        b"version: 1\ndirectory: %s\nset_aside_ms: 5\n",
        b"version: 0\ndirectory: another-0.aa-stray\nset_aside_ms: 5\n",
        b"version: 0\ndirectory: %s\nset_aside_ms: -5\n",
        b"version: 0\ndirectory: %s\nset_aside_ms: 99999999999\n",
        b"version: 0\ndirectory: %s\n",
        b"\xff\xfe\x00",
    ],
    ids=["none", "empty", "version", "another directory", "negative", "a time to come", "cut off", "no text"],
)
def test_where_no_time_can_be_believed_it_begins_now(text: bytes | None) -> None:
    files = MemoryFiles()
    _, path = set_aside(files)
    if text is not None:
        name = path.rpartition("/")[2].encode()
        files.write_atomic(f"{path}/{STRAY_METADATA}", text.replace(b"%s", name))
    assert look_into(files, path, None, LATER).since == LATER
    assert look_into(files, path, None, Millis(LATER + 1)).since == LATER, "and is written down"


def test_a_directory_that_got_its_name_back_and_is_set_aside_again_begins_anew() -> None:
    files = MemoryFiles()
    store, path = set_aside(files)
    look_into(files, path, NOW, NOW)
    store.close(1)
    files.rename(path, "/disk1/logs/topic1-0")
    files.kill()
    store = opened(files)
    store.set_aside(key(1), now=LATER)
    store._new_uuid = lambda: Uuid(b"u" * 16)
    store.settle()
    (renamed,) = store.strays
    files.kill()
    assert look_into(files, renamed, None, LATER).since == LATER


def test_a_stray_without_an_owner_says_whether_it_has_records() -> None:
    files = MemoryFiles()
    for number, records in ((1, 0), (2, 4)):
        log = create(store := opened(files, ("/disk1/logs",)), number)
        fill(log, records)
        files.write_atomic(f"{log.directory}/partition.metadata", b"")
        store.close(1)
        files.kill()
    strays = sorted(opened(files, ("/disk1/logs",)).strays)
    assert [look_into(files, path, NOW, NOW)[1:] for path in strays] == [(None, False), (None, True)]


def test_a_doomed_stray_is_purged() -> None:
    files = MemoryFiles()
    store, path = set_aside(files, records=3)
    store.doom(store.strays[path])
    assert store.strays == {}
    store.purge(0)
    assert [name for name in files.listdir("/disk1/logs") if "topic1" in name] == []


def test_a_node_may_stop_anywhere_while_a_stray_goes() -> None:
    files = MemoryFiles()
    store, path = set_aside(files, records=3)
    moments: list[tuple[str, MemoryFiles]] = []

    def before(what: str, path: str) -> None:
        files.before = None
        moments.append((f"{what} {path}", copy.deepcopy(files)))
        files.before = before

    files.before = before
    look_into(files, path, NOW, NOW)
    store.doom(store.strays[path])
    store.purge(0)
    files.before = None
    assert len(moments) > 5, "a test of nothing proves nothing"
    for change, stopped in moments:
        stopped.kill()
        found = opened(stopped)
        assert found.logs == {}, change
        for stray in list(found.strays.values()):
            assert look_into(stopped, stray.path, None, LATER).since in (NOW, LATER), change
            found.doom(stray)
        found.purge(0)
        assert [name for name in stopped.listdir("/disk1/logs") if "topic1" in name] == [], change


def test_the_longest_name_can_be_doomed() -> None:
    files = MemoryFiles()
    store = opened(files)
    name = TopicPartition("t" * 249, 0)
    store.create(name, key(1).topic_id, SETTINGS, now=NOW)
    store.set_aside(key(1), now=NOW)
    store.settle()
    (stray,) = store.strays.values()
    store.doom(stray)
    (doomed,) = [entry for entry in files.listdir("/disk1/logs") if entry.startswith("tt")]
    assert doomed.endswith("-delete")
    assert len(doomed) <= 255


def test_a_stray_that_somebody_took_away_is_forgotten() -> None:
    files = MemoryFiles()
    store, path = set_aside(files)
    files.rmtree(path)
    with pytest.raises(FileNotFoundError):
        look_into(files, path, NOW, NOW)
    store.doom(store.strays[path])
    assert store.strays == {}
    assert store.directories[0].online


def test_strays_go_offline_with_their_directory_and_come_back_with_it() -> None:
    files = MemoryFiles()
    store, path = set_aside(files)
    files.fail("/disk1", errno.EIO)
    store.doom(store.strays[path])
    assert not store.directories[0].online
    assert store.strays == {}
    files.heal("/disk1")
    store.revive("/disk1/logs", NOW)
    assert list(store.strays) == [path]
