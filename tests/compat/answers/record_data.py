"""Draws record data: batches that every broker takes, and some that none does."""

from __future__ import annotations

from tests.compat.answers.chance import Chance
from tests.compat.answers.world import BASE_MS, World
from tests.compat.batches import Record, encode_batch
from tests.compat.wire import CODECS

PRODUCERS = (4_000, 4_001)
LARGE_BYTES = 3_000
"""More than `gamma` takes."""


class RecordData:
    def __init__(self, random: Chance, world: World) -> None:
        self._random, self._world = random, world
        self._count = 0

    def draw(self, topic: str, partition: int, *, plain: bool) -> bytes:
        """Data for a partition; `plain` when the request is wrong in another way already, and once is enough."""
        kind = self._random.random()
        if plain:
            return encode_batch([self._record(keyless=False)], base_timestamp_ms=self._time())
        if kind < 0.5:
            return self._batch()
        if kind < 0.75:
            return self._idempotent(topic, partition)
        if kind < 0.80:
            return self._batch() + self._batch()
        if kind < 0.85:
            return self._batch(keyless=True)
        if kind < 0.88:
            return encode_batch([Record(b"x" * LARGE_BYTES, b"k")], base_timestamp_ms=BASE_MS)
        if kind < 0.90:
            return b""
        return self._damaged()

    def _batch(self, *, keyless: bool = False) -> bytes:
        records = [self._record(keyless=keyless) for _ in range(self._random.choice((1, 1, 2, 5)))]
        codec = self._random.choice(("none", "none", *CODECS))
        return encode_batch(records, codec=codec, base_timestamp_ms=self._time())

    def _record(self, *, keyless: bool) -> Record:
        self._count += 1
        value = self._random.choice((b"value %d" % self._count, b"", None, b"v" * 300))
        key = None if keyless else b"key %d" % (self._count % 7)
        headers = self._random.choice(((), (), (("h", b"1"), ("h", None))))
        return Record(value, key, headers, timestamp_delta_ms=self._random.choice((0, 1, 3)))

    def _time(self) -> int:
        return BASE_MS + self._random.randrange(10)

    def _idempotent(self, topic: str, partition: int) -> bytes:
        """The next batch of a producer; or one again, or too far, or of an epoch that was."""
        producer = self._random.choice(PRODUCERS)
        place = (producer, topic, partition)
        sequence = self._world.sequences.get(place, 0)
        said = sequence + self._random.choice((0, 0, 0, 0, -1, 5))
        epoch = self._random.choice((0, 0, 0, 0, 0, 0, -1, 1))
        if said == sequence and epoch == 0:
            self._world.sequences[place] = sequence + 1
        return encode_batch(
            [self._record(keyless=False)],
            base_timestamp_ms=self._time(),
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=max(said, 0),
        )

    def _damaged(self) -> bytes:
        batch = bytearray(self._batch())
        match self._random.randrange(4):
            case 0:
                batch[-1] ^= 0xFF  # the checksum does not fit
            case 1:
                batch[16] = 1  # a magic that nobody takes any more
            case 2:
                del batch[-3:]
            case 3:
                batch[60] ^= 0x0F  # a count of records that does not fit, and so a checksum that does not
        return bytes(batch)
