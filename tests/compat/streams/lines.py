"""Lines that are fed without a pause, what their words count up to, and what the application has told of them."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from itertools import takewhile

from penstock import TransactionAbortable
from penstock.blocking import Consumer, Producer
from penstock.model.ids import TopicPartition

BATCH = 5
AHEAD_MAX = 2_000
"""So many words may be uncounted; then the feeder waits, and whatever is killed is killed in the middle."""


def line_of(number: int) -> str:
    """Words of all frequencies: one that comes once, some that come often, and one twice in a line."""
    return f"line-{number} of-7-{number % 7} of-50-{number % 50} again again"


class Feeder:
    """Writes lines in transactions, every fourth of which is aborted, until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._stopping, self._room = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder")
        self._room.set()
        self.wanted: Counter[str] = Counter()
        """What a plain recomputation from the committed lines comes to."""
        self.failure: Exception | None = None
        self.aborted = self.begun_again = 0

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._room.set()
        if self._thread.ident is not None:
            self._thread.join()

    def counted(self, words: int) -> None:
        """So many are counted: the feeder may go on, or has to wait."""
        if self.wanted.total() - words > AHEAD_MAX:
            self._room.clear()
        else:
            self._room.set()

    def _run(self) -> None:
        try:
            with Producer(self._bootstrap, transactional_id=f"{self._topic}-feeder") as producer:
                number = 0
                while not self._stopping.is_set():
                    self._room.wait()
                    self._feed(producer, range(number, number + BATCH))
                    number += BATCH
        except Exception as failure:
            self.failure = failure

    def _feed(self, producer: Producer, numbers: range) -> None:
        if numbers.start // BATCH % 4 == 3:
            producer.begin()
            producer.send(self._topic, b"aborted", key=b"aborted")
            producer.abort()
            self.aborted += 1
        while True:
            try:
                with producer.transaction():
                    for number in numbers:
                        producer.send(self._topic, line_of(number).encode(), key=b"%d" % number)
                break
            except TransactionAbortable:
                self.begun_again += 1
        for number in numbers:
            self.wanted.update(line_of(number).split())


class Told:
    """The counts that read_committed shows, word by word, in their order."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._tps = [TopicPartition(topic, index) for index in range(partitions)]
        self._consumer = Consumer(
            bootstrap_servers=bootstrap, offset_reset="earliest", isolation_level="read_committed"
        )
        self._consumer.assign(self._tps)
        self.words = 0
        self.counts: defaultdict[str, list[int]] = defaultdict(list)

    def read(self) -> int:
        """Reads what there is; answers how many counts have been told by now."""
        for record in self._consumer.poll(max_records=5_000, timeout_ms=50):
            assert record.key is not None
            assert record.value is not None
            self.counts[record.key.decode()].append(int(record.value))
            self.words += 1
        return self.words

    def at_the_end(self) -> bool:
        self.read()
        ends = self._consumer.end_offsets(*self._tps)
        return all(self._consumer.position(tp) == ends[tp] for tp in self._tps)

    def close(self) -> None:
        self._consumer.close()


def mistakes(told: dict[str, list[int]], wanted: Counter[str]) -> list[str]:
    """What is wrong with counts that should be 1, 2, 3, ... for each word, up to how often it was fed."""
    found = []
    for word in sorted(told.keys() | wanted.keys()):
        counts, right = told.get(word, []), list(range(1, wanted[word] + 1))
        if counts != right:
            at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(counts, right, strict=False)))
            found.append(
                f"{word} came {len(right)} times; {len(counts)} counts, from place {at} on {counts[at : at + 5]}"
            )
    return found
