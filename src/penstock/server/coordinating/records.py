"""Records of an internal topic: versionless messages to a batch that a log takes, and back.

A key begins with its type, a value with its version, each as an int16. All internal topics have that in common; which
classes stand behind a type is for each coordinator to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import StateRecord
from penstock.kernels import Record
from penstock.protocol.batch import build_batch
from penstock.protocol.codec import decode, encode_into
from penstock.protocol.wire import Malformed, schema_of

if TYPE_CHECKING:
    from penstock.coordinators.decision import ProducerEpoch
    from penstock.model.ids import Millis

Classes = tuple[type[object], type[object]]
"""Of the key and of the value of one type of records."""

_INT16: Final = Struct(">h")
_KEY_VERSION: Final = 0


def encode_batch(
    records: Sequence[StateRecord], now: Millis, codec: int, producer: ProducerEpoch | None = None
) -> bytearray:
    """One batch, not yet stamped with its place in the log; of a transaction of `producer`, if one is given."""
    encoded = [_encoded(offset, record, now) for offset, record in enumerate(records)]
    if producer is None:
        return bytearray(build_batch(encoded, codec=codec))
    return bytearray(
        build_batch(
            encoded,
            codec=codec,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
    )


def _encoded(offset: int, record: StateRecord, now: Millis) -> Record:
    key = bytearray(_INT16.pack(schema_of(record.key.__class__).key))
    encode_into(record.key, _KEY_VERSION, key)
    if record.value is None:
        return Record(offset, now, bytes(key), None)
    value = bytearray(_INT16.pack(record.value_version))
    encode_into(record.value, record.value_version, value)
    return Record(offset, now, bytes(key), bytes(value))


class RecordReader:
    """Reads the records of one internal topic. `classes_of` is asked once for each type; None is a type unknown."""

    __slots__ = ("_classes", "_classes_of", "_skips_unknown_versions")

    def __init__(self, classes_of: Callable[[int], Classes | None], *, skips_unknown_versions: bool = False) -> None:
        """With `skips_unknown_versions` a value of a version that is not known counts as a type that is not."""
        self._classes_of, self._skips_unknown_versions = classes_of, skips_unknown_versions
        self._classes: dict[int, Classes] = {}

    def read(self, key: bytes | None, value: bytes | None) -> StateRecord | None:
        """The record, or None when its type is unknown: it may come from a release that is newer than this one.

        Malformed when the bytes are not what its type and version say.
        """
        if key is None or len(key) < _INT16.size:
            raise Malformed("a record of an internal topic without a key")
        (kind,) = _INT16.unpack_from(key)
        classes = self._classes.get(kind)
        if classes is None:
            classes = self._classes_of(kind)
            if classes is None:
                return None
            self._classes[kind] = classes
        key_class, value_class = classes
        read_key, _ = decode(key_class, _KEY_VERSION, key, _INT16.size)
        if value is None:
            return StateRecord(read_key, None)
        if len(value) < _INT16.size:
            raise Malformed(f"a value of {len(value)} bytes has no version")
        (version,) = _INT16.unpack_from(value)
        if self._skips_unknown_versions and not schema_of(value_class).versions.has(version):
            return None
        read_value, _ = decode(value_class, version, value, _INT16.size)
        return StateRecord(read_key, read_value, version)
