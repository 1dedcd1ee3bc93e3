"""What must hold of nodes: of the last stable offset after every event, of everything when all is at rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.client.consumer.batches import open_fetched
from penstock.coordinators.transactions.transaction import PREPARED, STATUS_NAMES, Status
from penstock.kernels import read_header
from penstock.model.ids import OFFSETS_TOPIC, PartitionKey
from penstock.protocol.batch import read_records
from penstock.protocol.messages.fetch import FetchResponse
from penstock.storage.producers import CONTROL, TRANSACTIONAL
from penstock.testing.sim.replicas import batches, partitions_of, readable, shards_of, transactions_of
from penstock.testing.sim.topics import COPIES, KEYED, LEDGER
from penstock.testing.sim.transactions.readings import check_attempts, check_reading

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from penstock.coordinators.transactions.transaction import State
    from penstock.server.node import Node
    from penstock.server.partitions.hosted import Hosted
    from penstock.storage.log import Log
    from penstock.storage.producer_snapshot import ProducerRecord
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.transactions.books import Book, Books
    from penstock.testing.sim.transactions.clients import Crowd
    from penstock.testing.sim.transactions.ledger import Ledger
    from penstock.testing.sim.truth import Truth
    from penstock.testing.sim.world import World

EXAMPLES = 3
WHOLE = frozenset((LEDGER, COPIES, KEYED, OFFSETS_TOPIC))
"""Of these nothing goes that is part of an open transaction."""

READS = 6
"""So often each replica is read from somewhere at the end."""


class Oracles:
    """Holds books, ledger and nodes against each other."""

    def __init__(self, world: World, plan: Plan, truth: Truth, books: Books, crowd: Crowd) -> None:
        self._world, self._plan, self._truth, self._books, self._crowd = world, plan, truth, books, crowd
        self._stable: dict[tuple[SimLoop, PartitionKey, int], int] = {}
        self._keys: dict[Book, PartitionKey] = {}

    # -- after every event

    def after_instant(self, touched: list[SimLoop]) -> None:
        """T5: no replica lets anybody read past the first record of a transaction whose marker is not committed."""
        open_books = self._books.open_books
        if not open_books:
            return
        for machine in self._world.machines:
            node, loop = machine.node, machine.loop
            if node is None or loop is None or loop not in touched:
                continue
            partitions = partitions_of(node)
            if partitions is None:
                continue
            for book in open_books:
                hosted = partitions._hosted.get(self._key(book))
                if hosted is not None:
                    self._look_at_stable(machine, loop, hosted, book)

    def _key(self, book: Book) -> PartitionKey:
        key = self._keys.get(book)
        if key is None:
            key = self._keys[book] = next(key for key, each in self._truth.partitions.items() if each is book.truth)
        return key

    def _look_at_stable(self, machine: Machine, loop: SimLoop, hosted: Hosted, book: Book) -> None:
        log = readable(hosted)
        if log is None:
            return
        stable, start = log.last_stable, log.log_start
        # Of a transaction that began before the log's start only what is left can be shown.
        firsts = (next((each for each in opened.offsets if each >= start), stable) for opened in book.opened.values())
        first = min(firsts, default=stable)
        if stable > first:
            self._bad(machine, f"T5: {book.name} is shown up to {stable}, and a transaction is open since {first}")
        if not start <= stable <= max(start, log.committed):
            self._bad(machine, f"T5: {book.name}: {start} <= {stable} <= {log.committed} does not hold")
        if not hosted.state.leading:
            return
        place = loop, hosted.key, hosted.state.epoch
        if stable < self._stable.get(place, 0):
            self._bad(machine, f"T5: {book.name}: the last stable offset fell from {self._stable[place]} to {stable}")
        self._stable[place] = stable

    def _bad(self, machine: Machine, what: str) -> None:
        self._world.story.violated(f"{machine.host}: {what}")

    # -- when all should be at rest

    def disorders(self) -> list[str]:
        """T14: what is still open."""
        found = []
        for machine, node in self._nodes():
            for shard in transactions_of(node):
                for name, transaction in shard.table.transactions.items():
                    status = transaction.state.status
                    if status is Status.ONGOING or status in PREPARED:
                        found.append(f"{machine.host}: {name} is in {STATUS_NAMES[status]}")
            found += [
                f"{machine.host}: {len(shard.table.pending)} offsets are pending"
                for shard in shards_of(node)
                if shard.table.pending
            ]
            for hosted in partitions_of(node) or ():
                log = readable(hosted)
                if log is not None and hosted.state.leading and log.last_stable != log.committed:
                    found.append(f"{machine.host}: {hosted.name} is stable to {log.last_stable} of {log.committed}")
        return found or self._uncopied()

    def _uncopied(self) -> list[str]:
        """Partitions of the ledger of which not all was copied; of the end of each, for that is seen at once."""
        found, entries = [], self._crowd.ledger.entries
        copied = {
            entry.origin
            for book in self._books.newest(COPIES).values()
            for line in book.lines.values()
            if line.committed and (entry := entries.get(line.value or b"")) is not None
        }
        for number, book in self._books.newest(LEDGER).items():
            last = max((offset for offset, line in book.lines.items() if line.committed), default=None)
            if last is not None and (LEDGER, number, last) not in copied:
                found.append(f"{book.name}@{last} is not copied")
        return found

    def _nodes(self) -> Iterator[tuple[Machine, Node]]:
        return ((machine, machine.node) for machine in self._world.machines if machine.node is not None)

    # -- when all is at rest

    def judge(self, random: Random) -> list[str]:
        return [
            *self._readings(),
            *self._attempts(),
            *fenced_and_committed(self._books, self._crowd.ledger),
            *self._copies(),
            *self._group_offsets(),
            *self._replicas(random),
            *self._states(),
            *self._producers(),
        ]

    def _states(self) -> list[str]:
        """T2: what coordinators have, each after a replay of its log by now, is what the logs say."""
        known = {name: told[-1].state for name, told in self._books.states.items() if told}
        held = {
            name: transaction.state
            for _, node in self._nodes()
            for shard in transactions_of(node)
            for name, transaction in shard.table.transactions.items()
        }
        return [
            f"T2: {name} is {_told(held.get(name))}, and its log says {_told(known.get(name))}"
            for name in sorted({*known, *held})
            if held.get(name) != known.get(name)
        ][:EXAMPLES]

    def _producers(self) -> list[str]:
        """T13: all replicas know the same of the producers of a partition of which nothing ever goes."""
        found: list[str] = []
        for book in self._books.books.values():
            if self._plan.producers_expire or book.name.topic not in (LEDGER, COPIES):
                continue
            known: tuple[Machine, list[ProducerRecord]] | None = None
            for machine, node in self._nodes():
                partitions = partitions_of(node)
                hosted = None if partitions is None else partitions._hosted.get(self._key(book))
                log = None if hosted is None else readable(hosted)
                if log is None:
                    continue
                told = sorted(state.record() for state in log.producers.states())
                if known is None:
                    known = machine, told
                elif told != known[1]:
                    other = [each for each in told if each not in known[1]]
                    found.append(
                        f"T13: {machine.host} knows of the producers of {book.name} {other[:2]}, and "
                        f"{known[0].host} {[each for each in known[1] if each not in told][:2]}"
                    )
        return found[:EXAMPLES]

    # -- T13, when a log is opened or was cut

    def opened(self, machine: Machine, log: Log) -> None:
        """T13: what a log knows to be open is what its batches say, if nothing of it has gone."""
        if log.name.topic not in WHOLE:
            return
        wanted: dict[int, tuple[int, int]] = {}
        for _, batch in batches(log, log.log_start, log.written):
            header = read_header(batch)
            if header.attributes & CONTROL:
                wanted.pop(header.producer_id, None)
            elif header.attributes & TRANSACTIONAL:
                wanted.setdefault(header.producer_id, (header.producer_epoch, header.base_offset))
        states = log.producers.states()
        known = {
            each.producer_id: (each.epoch, each.transaction_first) for each in states if each.transaction_first >= 0
        }
        if known != wanted:
            self._bad(machine, f"T13: {log.name} was opened, and of what is open it knows {known}, but it has {wanted}")

    def _readings(self) -> list[str]:
        """T6."""
        found = []
        newest = {topic: self._books.newest(topic) for topic in {topic for topic, _, _ in self._crowd.readings}}
        for topic, number, reading in self._crowd.readings:
            book = newest[topic].get(number)
            if book is not None:
                if reading.shown and not reading.complete:
                    reading.start = reading.shown[0].offset
                found += [f"T6: {words}" for words in check_reading(reading, book.lines)]
        return found[:EXAMPLES]

    def _attempts(self) -> list[str]:
        """T1 and T8."""
        fates: dict[bytes, list[bool | None]] = {}
        entries = self._crowd.ledger.entries
        for book in self._books.books.values():
            for line in book.lines.values():
                if line.value is not None and line.value in entries:
                    fates.setdefault(line.value, []).append(line.committed)
        return [
            f"T8: {words}" for words in check_attempts(self._crowd.ledger.attempts, fates, lasting=self._crowd.lasting)
        ]

    def _copies(self) -> list[str]:
        """T11: what was copied is what was committed, once and in order."""
        found = []
        ledger, copies = self._books.newest(LEDGER), self._books.newest(COPIES)
        for number, book in ledger.items():
            wanted = [offset for offset, line in sorted(book.lines.items()) if line.committed]
            copied = []
            for _, line in sorted(copies[number].lines.items() if number in copies else ()):
                entry = self._crowd.ledger.entries.get(line.value or b"") if line.committed else None
                if entry is not None and entry.origin is not None:
                    copied.append(entry.origin.offset)
            if copied != wanted:
                twice = [offset for offset, times in Counter(copied).items() if times > 1]
                lost = sorted(set(wanted) - set(copied))
                other = sorted(set(copied) - set(wanted))
                found.append(
                    f"T11: {book.name} was copied otherwise than it is: twice {twice[:3]}, never {lost[:3]}, though "
                    f"not committed {other[:3]}, in order: {copied == sorted(copied)}"
                )
        return found[:EXAMPLES]

    def _group_offsets(self) -> list[str]:
        """T10: the offsets of groups are those of the log, by the order of records."""
        known = {place: offset for place, offset in self._books.offsets().items() if offset is not None}
        served: dict[tuple[str, str, int], int] = {}
        for _, node in self._nodes():
            for shard in shards_of(node):
                for group, offsets in shard.table.offsets.items():
                    served |= {(group, topic, number): it.offset for (topic, number), it in offsets.items()}
        # A group that nobody was asked about since its coordinator came up may not be loaded.
        return [
            f"T10: {group} has read {topic}-{number} to {served.get((group, topic, number))}, and the log says "
            f"{known.get((group, topic, number))}"
            for group, topic, number in sorted({*known, *served})
            if known.get((group, topic, number)) != served.get((group, topic, number))
        ][:EXAMPLES]

    # -- T6 and T7 on every replica, T13

    def _replicas(self, random: Random) -> list[str]:
        found: list[str] = []
        for machine, node in self._nodes():
            partitions = partitions_of(node)
            for book in self._books.books.values():
                hosted = None if partitions is None else partitions._hosted.get(self._key(book))
                log = None if hosted is None else readable(hosted)
                if log is None or book.name.topic.startswith("__") or self._truth.forgiven(book.name.topic):
                    continue
                with machine.disk.looked_at():
                    for _ in range(READS):
                        found += [f"{machine.host}: {words}" for words in self._read(log, book, random)]
                    if book.name.topic in (LEDGER, COPIES):
                        found += [f"{machine.host}: {words}" for words in self._aborted(log, book)]
        return found[:EXAMPLES]

    def _read(self, log: Log, book: Book, random: Random) -> Iterator[str]:
        """Reads some of a replica as a reader of committed records does."""
        end = log.last_stable
        start = random.randint(log.log_start, max(log.log_start, end))
        read = log.read(start, max_bytes=random.choice((300, 3_000, 1 << 20)), limit=end, at_least_one=True)
        data = b"".join(span.read() for span in read.spans)
        aborted = [
            FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first)
            for producer_id, first in log.aborted(start, read.end)
        ]
        shown = {
            record.offset: record.value
            for batch in open_fetched(data, start, aborted=aborted)
            if batch._view is not None
            for record in read_records(batch._view)
            if start <= record.offset
        }
        complete = book.name.topic in (LEDGER, COPIES)
        for offset, line in book.lines.items():
            if not start <= offset < read.end:
                continue
            if offset in shown and not line.committed:
                yield f"T7: {book.name}@{offset} ({line}) is aborted, and shown to who reads from {start}"
            elif complete and line.committed and offset not in shown:
                yield f"T7: {book.name}@{offset} ({line}) is committed, and not shown to who reads from {start}"

    def _aborted(self, log: Log, book: Book) -> Iterator[str]:
        """The aborted lists name every aborted transaction, and no other."""
        listed = sorted(log.aborted(log.log_start, log.last_stable))
        wanted = sorted((each.producer_id, each.first) for each in book.ended if not each.committed)
        if listed != wanted:
            missing, other = Counter(wanted) - Counter(listed), Counter(listed) - Counter(wanted)
            yield f"T7: {book.name}: its aborted lists lack {sorted(missing)[:3]} and have {sorted(other)[:3]} besides"


def _told(state: State | None) -> str:
    return "unknown" if state is None else f"in {state.status.name}, {state}"


def fenced_and_committed(books: Books, ledger: Ledger) -> list[str]:
    """T9: what an older epoch wrote after a newer one was given out is aborted."""
    found = []
    for name, began in ledger.began.items():
        ids = {pid for pid, stated in books.by_producer.items() if stated[0].transactional_id == name}
        for book in books.books.values():
            for ended in book.ended:
                if ended.producer_id not in ids or not ended.committed:
                    continue
                later = [
                    each
                    for each in began
                    if each.at_s < ended.last_seen_s
                    and each.producer_id == ended.producer_id
                    and each.epoch > ended.epoch
                ]
                if later:
                    found.append(
                        f"T9: {book.name}@{ended.first} of producer {ended.producer_id}, epoch {ended.epoch} is "
                        f"committed, and was written after {name} was given epoch {later[0].epoch}"
                    )
    return found[:EXAMPLES]
