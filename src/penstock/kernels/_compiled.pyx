# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True
"""The kernels, compiled. `_pure.py` says what each function promises; the same tests run both.

Every read goes through a pointer that was compared with the end of its buffer first. Nothing is believed: lengths and
counts of a batch come from the network.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from penstock.kernels.shapes import (
    REASONS,
    BadBatch as _BadBatch,
    BadCrc as _BadCrc,
    BadRecord as _BadRecord,
    BatchHeader as _BatchHeader,
    Record as _Record,
    RecordFacts as _RecordFacts,
    RecordSpan as _RecordSpan,
)

cdef extern from "crc32c.h" nogil:
    const char *crc32c_prepare(int fastest_allowed)
    uint32_t crc32c_continue(uint32_t crc, const uint8_t *at, size_t size)

cdef extern from "siphash.h" nogil:
    void siphash128(const uint8_t *at, size_t size, uint64_t secret_low, uint64_t secret_high, uint64_t *out)

cdef extern from *:
    """
    /* A named tuple is a tuple with another type: made directly, it costs a fifth of a call of its class. */
    static PyObject *penstock_new_named(PyObject *type, Py_ssize_t size) {
        return ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, size);
    }
    """
    object penstock_new_named(object type, Py_ssize_t size)


IMPLEMENTATION = "compiled"
CRC_METHOD = crc32c_prepare(2).decode()

cdef object BadBatch = _BadBatch
cdef object BadCrc = _BadCrc
cdef object BadRecord = _BadRecord
cdef object BatchHeader = _BatchHeader
cdef object Record = _Record
cdef object RecordFacts = _RecordFacts
cdef object RecordSpan = _RecordSpan

cdef enum:
    HEADER_BYTES = 61
    CRC_AT = 17
    BODY_AT = 21
    # From here on a checksum takes long enough for another thread to gain from the lock.
    UNLOCKED_BYTES = 65536

include "_walk.pxi"
include "_produce.pxi"


# --- tuples ---

cdef inline int set_item(object made, Py_ssize_t index, object item) except -1:
    Py_INCREF(item)  # SET_ITEM steals one
    PyTuple_SET_ITEM(made, index, item)
    return 0


cdef object facts_of(Walk *seen):
    cdef object made = penstock_new_named(RecordFacts, 5)
    set_item(made, 0, seen.smallest)
    set_item(made, 1, seen.largest)
    set_item(made, 2, seen.largest_at)
    set_item(made, 3, seen.null_keys)
    set_item(made, 4, True if seen.dense else False)
    return made


cdef object header_at(const uint8_t *at):
    cdef object made = penstock_new_named(BatchHeader, 13)
    set_item(made, 0, <int64_t>get64(at))
    set_item(made, 1, <int64_t><int32_t>get32(at + 8) + 12)
    set_item(made, 2, <int32_t>get32(at + 12))
    set_item(made, 3, <signed char>at[16])
    set_item(made, 4, get32(at + CRC_AT))
    set_item(made, 5, get16(at + BODY_AT))
    set_item(made, 6, <int32_t>get32(at + 23))
    set_item(made, 7, <int64_t>get64(at + 27))
    set_item(made, 8, <int64_t>get64(at + 35))
    set_item(made, 9, <int64_t>get64(at + 43))
    set_item(made, 10, get16(at + 51))
    set_item(made, 11, <int32_t>get32(at + 53))
    set_item(made, 12, <int32_t>get32(at + 57))
    return made


# --- batches ---

cdef uint32_t checksum(const uint8_t *at, Py_ssize_t size) noexcept:
    cdef uint32_t crc
    if size < UNLOCKED_BYTES:
        return crc32c_continue(0, at, size)
    with nogil:
        crc = crc32c_continue(0, at, size)
    return crc


cdef object too_short():
    return BadBatch(f"a batch header needs {HEADER_BYTES} bytes")


cdef object no_fit(int64_t size):
    return BadBatch(f"a batch of {size} bytes does not fit here")


def unfilled(Py_ssize_t size):
    """A buffer whose bytes are anything until they are written."""
    if size < 0:
        raise ValueError("negative count")
    return PyByteArray_FromStringAndSize(NULL, size)


def crc32c(data, value=0):
    """CRC-32C of `data`, continuing from `value`."""
    cdef Py_buffer view
    cdef uint32_t crc = value
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len < UNLOCKED_BYTES:
            return crc32c_continue(crc, <const uint8_t *>view.buf, view.len)
        with nogil:
            crc = crc32c_continue(crc, <const uint8_t *>view.buf, view.len)
        return crc
    finally:
        PyBuffer_Release(&view)


def use_crc_method(int fastest_allowed):
    """For tests and benchmarks: 0 tables, 1 at most the crc32 instruction, 2 the best there is. Gives what is used."""
    return crc32c_prepare(fastest_allowed).decode()


def read_header(buf, Py_ssize_t position=0):
    """The header at `position`, believed as it stands; BadBatch when fewer than 61 bytes are there."""
    cdef Py_buffer view
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or view.len - position < HEADER_BYTES:
            raise too_short()
        return header_at(<const uint8_t *>view.buf + position)
    finally:
        PyBuffer_Release(&view)


def crc_holds(buf, Py_ssize_t position, Py_ssize_t size):
    """Whether the batch of `size` bytes at `position` has the checksum that it claims."""
    cdef Py_buffer view
    cdef const uint8_t *at
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or size < HEADER_BYTES or view.len - position < size:
            raise no_fit(size)
        at = <const uint8_t *>view.buf + position
        return get32(at + CRC_AT) == checksum(at + BODY_AT, size - BODY_AT)
    finally:
        PyBuffer_Release(&view)


def check_batch(buf, Py_ssize_t position=0):
    """Header, size, checksum and, when they are not compressed, the records of one batch, in one call.

    BadBatch, BadCrc or BadRecord says which of them is wrong. The facts are None for a compressed batch.
    """
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int64_t size
    cdef uint32_t crc
    cdef int reason
    cdef Walk seen
    cdef object facts = None
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or view.len - position < HEADER_BYTES:
            raise too_short()
        at = <const uint8_t *>view.buf + position
        if at[16] != 2:
            raise BadBatch(f"batch format {<signed char>at[16]} is not 2")
        size = <int64_t><int32_t>get32(at + 8) + 12
        if size < HEADER_BYTES or view.len - position < size:
            raise no_fit(size)
        crc = checksum(at + BODY_AT, size - BODY_AT)
        if crc != get32(at + CRC_AT):
            raise BadCrc(get32(at + CRC_AT), crc)
        if not at[22] & 0x07:
            reason = walk(at + HEADER_BYTES, at + size, <int32_t>get32(at + 57), &seen)
            if reason != FINE:
                raise BadRecord(seen.index, REASONS[reason])
            facts = facts_of(&seen)
        return header_at(at), facts
    finally:
        PyBuffer_Release(&view)


def walk_records(payload, int64_t count):
    """Checks `count` uncompressed records that must fill `payload` exactly; BadRecord says what is wrong."""
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int reason
    cdef Walk seen
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        at = <const uint8_t *>view.buf
        reason = walk(at, at + view.len, count, &seen)
        if reason != FINE:
            raise BadRecord(seen.index, REASONS[reason])
        return facts_of(&seen)
    finally:
        PyBuffer_Release(&view)


cdef object bytes_or_none(const uint8_t *at, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char *>at, size)


cdef object headers_of(Parts *parts):
    cdef const uint8_t *at = parts.headers
    cdef int32_t size = 0
    cdef list found = []
    cdef object name
    for _ in range(parts.header_count):
        at = get_varint(at, parts.end, &size)
        name = PyUnicode_DecodeUTF8(<char *>at, size, "surrogateescape")
        at = get_varint(at + size, parts.end, &size)
        found.append((name, bytes_or_none(at, size)))
        if size > 0:
            at += size
    return tuple(found)


def decode_records(payload, int64_t count, int64_t base_offset, int64_t base_timestamp, append_time=None):
    """The records of an uncompressed payload. `append_time` replaces every timestamp (LogAppendTime batches)."""
    cdef Py_buffer view
    cdef Parts parts
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef int reason = FINE
    cdef int64_t index
    cdef object made
    cdef list found = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        at = <const uint8_t *>view.buf
        end = at + view.len
        if count < 0:
            raise BadRecord(0, REASONS[COUNT])
        for index in range(count):
            reason = read_record(at, end, &parts)
            if reason != FINE:
                raise BadRecord(index, REASONS[reason])
            at = parts.end
            made = penstock_new_named(Record, 5)
            # Unsigned, because a hostile delta may overflow and signed overflow is undefined.
            set_item(made, 0, <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>parts.offset_delta))
            if append_time is None:
                set_item(made, 1, <int64_t>(<uint64_t>base_timestamp + <uint64_t>parts.timestamp_delta))
            else:
                set_item(made, 1, append_time)
            set_item(made, 2, bytes_or_none(parts.key, parts.key_size))
            set_item(made, 3, bytes_or_none(parts.value, parts.value_size))
            set_item(made, 4, headers_of(&parts) if parts.header_count else ())
            found.append(made)
        if at != end:
            raise BadRecord(count, REASONS[LEFT_AFTER])
        return found
    finally:
        PyBuffer_Release(&view)


def index_records(payload, int64_t count):
    """Where each record lies, with its key: enough to drop, keep or renumber records without decoding them."""
    cdef Py_buffer view
    cdef Parts parts
    cdef const uint8_t *at
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int reason
    cdef int64_t index
    cdef object made
    cdef list found = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        start = at = <const uint8_t *>view.buf
        end = at + view.len
        if count < 0:
            raise BadRecord(0, REASONS[COUNT])
        for index in range(count):
            reason = read_record(at, end, &parts)
            if reason != FINE:
                raise BadRecord(index, REASONS[reason])
            at = parts.end
            made = penstock_new_named(RecordSpan, 6)
            set_item(made, 0, <Py_ssize_t>(parts.rest - start))
            set_item(made, 1, <Py_ssize_t>(parts.end - start))
            set_item(made, 2, parts.offset_delta)
            set_item(made, 3, parts.timestamp_delta)
            set_item(made, 4, bytes_or_none(parts.key, parts.key_size))
            set_item(made, 5, parts.value_size >= 0)
            found.append(made)
        if at != end:
            raise BadRecord(count, REASONS[LEFT_AFTER])
        return found
    finally:
        PyBuffer_Release(&view)


# --- writing ---

cdef class Output:
    """A buffer that grows; its memory goes with it, whatever is raised."""

    cdef uint8_t *start
    cdef Py_ssize_t size
    cdef Py_ssize_t room

    def __dealloc__(self):
        PyMem_Free(self.start)

    cdef uint8_t *more(self, Py_ssize_t wanted) except NULL:
        """Where to write, with at least `wanted` bytes of room."""
        cdef Py_ssize_t room
        cdef uint8_t *moved
        if self.room - self.size < wanted:
            room = max(self.room * 2, self.size + wanted, 512)
            moved = <uint8_t *>PyMem_Realloc(self.start, room)
            if moved == NULL:
                raise MemoryError
            self.start = moved
            self.room = room
        return self.start + self.size

    cdef object taken(self):
        return PyByteArray_FromStringAndSize(<char *>self.start, self.size)


cdef int64_t timestamp_delta_of(object timestamp, object base) except? -1:
    try:
        return timestamp - base
    except OverflowError:
        raise ValueError("a timestamp delta needs more than 64 bits") from None


cdef int64_t offset_delta_of(object delta) except? -1:
    if not -2147483648 <= delta <= 2147483647:
        raise ValueError("an offset delta needs more than 32 bits")
    return delta


cdef inline bytes as_bytes(object data):
    return <bytes>data if PyBytes_CheckExact(data) else bytes(data)


cdef inline uint8_t *put_bytes(uint8_t *at, bytes data) noexcept:
    cdef Py_ssize_t size
    if data is None:
        at[0] = 1
        return at + 1
    size = PyBytes_GET_SIZE(data)
    at = put_varint(at, size)
    memcpy(at, PyBytes_AS_STRING(data), size)
    return at + size


cdef inline Py_ssize_t bytes_size(bytes data) noexcept:
    if data is None:
        return 1
    return varint_size(PyBytes_GET_SIZE(data)) + PyBytes_GET_SIZE(data)


def encode_records(records, int64_t base_offset, int64_t base_timestamp):
    """The payload of `records`; ValueError when a delta does not fit the format."""
    cdef Output out = Output()
    cdef uint8_t *at
    cdef int64_t timestamp_delta, offset_delta
    cdef Py_ssize_t body
    cdef bytes key, value, name, header_value
    cdef list packed
    for offset, timestamp, raw_key, raw_value, headers in records:
        timestamp_delta = timestamp_delta_of(timestamp, base_timestamp)
        offset_delta = offset_delta_of(offset - base_offset)
        key = None if raw_key is None else as_bytes(raw_key)
        value = None if raw_value is None else as_bytes(raw_value)
        packed = []
        body = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + bytes_size(key) + bytes_size(value)
        body += varint_size(len(headers))
        for raw_name, raw_header in headers:
            name = raw_name.encode("utf-8", "surrogateescape")
            header_value = None if raw_header is None else as_bytes(raw_header)
            packed.append((name, header_value))
            body += bytes_size(name) + bytes_size(header_value)
        at = put_varint(out.more(body + 10), body)
        at[0] = 0
        at = put_varint(put_varint(at + 1, timestamp_delta), offset_delta)
        at = put_varint(put_bytes(put_bytes(at, key), value), len(packed))
        for name, header_value in packed:
            at = put_bytes(put_bytes(at, name), header_value)
        out.size = at - out.start
    return out.taken()


def splice_records(payload, pieces):
    """A new payload from pieces (rest, end, offset delta, timestamp delta) that `index_records` found in an old one."""
    cdef Output out = Output()
    cdef Py_buffer view
    cdef uint8_t *at
    cdef Py_ssize_t rest, end
    cdef int64_t timestamp_delta, offset_delta, body
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        for raw_rest, raw_end, raw_offset_delta, raw_timestamp_delta in pieces:
            rest = raw_rest
            end = raw_end
            if rest < 0 or end < rest or end > view.len:
                raise ValueError("a piece lies outside the payload")
            timestamp_delta = timestamp_delta_of(raw_timestamp_delta, 0)
            offset_delta = offset_delta_of(raw_offset_delta)
            body = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + end - rest
            at = put_varint(out.more(body + 10), body)
            at[0] = 0
            at = put_varint(put_varint(at + 1, timestamp_delta), offset_delta)
            memcpy(at, <const uint8_t *>view.buf + rest, end - rest)
            out.size = at + (end - rest) - out.start
        return out.taken()
    finally:
        PyBuffer_Release(&view)


def scan_batches(buf, Py_ssize_t position=0):
    """(position, header) of every whole batch from `position` on, up to the first incomplete one.

    Checksums are not looked at. BadBatch on another format or a size below a header's.
    """
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int64_t size
    cdef list found = []
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    try:
        if position < 0:
            raise BadBatch("a batch cannot begin before its buffer")
        while view.len - position >= HEADER_BYTES:
            at = <const uint8_t *>view.buf + position
            if at[16] != 2:
                raise BadBatch(f"batch format {<signed char>at[16]} is not 2")
            size = <int64_t><int32_t>get32(at + 8) + 12
            if size < HEADER_BYTES:
                raise no_fit(size)
            if size > view.len - position:
                break
            found.append((position, header_at(at)))
            position += size
        return found
    finally:
        PyBuffer_Release(&view)


def stamp(buf, Py_ssize_t position, int64_t base_offset, int32_t leader_epoch):
    """Writes base offset and leader epoch into the header at `position`; both lie outside the checksum."""
    cdef Py_buffer view
    cdef uint8_t *at
    PyObject_GetBuffer(buf, &view, PyBUF_WRITABLE)
    try:
        if position < 0 or view.len - position < HEADER_BYTES:
            raise too_short()
        at = <uint8_t *>view.buf + position
        put64(at, <uint64_t>base_offset)
        put32(at + 12, <uint32_t>leader_epoch)
    finally:
        PyBuffer_Release(&view)


def retime(buf, Py_ssize_t position, Py_ssize_t size, int16_t attributes, int64_t max_timestamp):
    """Writes attributes, largest timestamp and the new checksum into the batch at `position`; returns the checksum."""
    cdef Py_buffer view
    cdef uint8_t *at
    cdef uint32_t crc
    PyObject_GetBuffer(buf, &view, PyBUF_WRITABLE)
    try:
        if position < 0 or size < HEADER_BYTES or view.len - position < size:
            raise no_fit(size)
        at = <uint8_t *>view.buf + position
        at[BODY_AT] = <uint8_t>(<uint32_t>attributes >> 8)
        at[BODY_AT + 1] = <uint8_t>attributes
        put64(at + 35, <uint64_t>max_timestamp)
        crc = checksum(at + BODY_AT, size - BODY_AT)
        put32(at + CRC_AT, crc)
        return crc
    finally:
        PyBuffer_Release(&view)


# --- the map of compaction ---

cdef struct Slot:
    uint64_t first
    uint64_t second
    int64_t offset  # one more than the offset that was put in, so that zeroed memory is an empty slot


cdef class OffsetTable:
    """From keys to offsets, at most `slots` of them, in 24 bytes each: a key is known by 128 bits of its hash.

    Grows by doubling up to its limit.
    """

    cdef Slot *table
    cdef Py_ssize_t room
    cdef Py_ssize_t used
    cdef Py_ssize_t limit

    def __cinit__(self, Py_ssize_t slots):
        self.limit = slots
        self.room = min(max(slots, 1), 1024)
        self.table = <Slot *>PyMem_Calloc(self.room, sizeof(Slot))
        if self.table == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.table)

    def __len__(self):
        return self.used

    cdef Slot *find(self, uint64_t first, uint64_t second) noexcept nogil:
        """The slot of a hash, or the empty one where it belongs; NULL when neither is there."""
        cdef Py_ssize_t at, left
        at = <Py_ssize_t>(first % <uint64_t>self.room)
        for left in range(self.room):
            if self.table[at].offset == 0 or (self.table[at].first == first and self.table[at].second == second):
                return &self.table[at]
            at += 1
            if at == self.room:
                at = 0
        return NULL

    cdef int grow(self) except -1:
        cdef Slot *old = self.table
        cdef Py_ssize_t old_room = self.room, index
        cdef Slot *slot
        cdef Slot *table
        cdef Py_ssize_t room = min(2 * old_room, self.limit)
        table = <Slot *>PyMem_Calloc(room, sizeof(Slot))
        if table == NULL:
            raise MemoryError
        self.table = table
        self.room = room
        for index in range(old_room):
            if old[index].offset != 0:
                slot = self.find(old[index].first, old[index].second)
                slot[0] = old[index]
        PyMem_Free(old)
        return 0

    def put(self, bytes key not None, int64_t offset):
        """OverflowError when there is no room for a new key."""
        cdef Slot *slot
        cdef uint64_t hashed[2]
        siphash128(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0, 0, hashed)
        if 4 * self.used >= 3 * self.room and self.room < self.limit:
            self.grow()
        slot = self.find(hashed[0], hashed[1])
        if slot == NULL or (slot.offset == 0 and self.used >= self.limit):
            raise OverflowError("the table is full")
        if slot.offset == 0:
            slot.first = hashed[0]
            slot.second = hashed[1]
            self.used += 1
        slot.offset = offset + 1

    def get(self, bytes key not None):
        """-1 when it was never put in."""
        cdef Slot *slot
        cdef uint64_t hashed[2]
        siphash128(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0, 0, hashed)
        slot = self.find(hashed[0], hashed[1])
        return -1 if slot == NULL or slot.offset == 0 else slot.offset - 1


def siphash(bytes data not None, uint64_t secret_low, uint64_t secret_high):
    """For tests: the hash of the map, as the 16 bytes that its paper writes."""
    cdef uint64_t hashed[2]
    siphash128(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), secret_low, secret_high, hashed)
    return int(hashed[0]).to_bytes(8, "little") + int(hashed[1]).to_bytes(8, "little")
