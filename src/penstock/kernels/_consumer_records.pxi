# Payloads into records for applications. Included by _compiled_client.pyx.

@cython.final
@cython.no_gc  # it holds bytes and text, and cannot be changed: there is no way to tie a cycle
@cython.freelist(1024)
cdef class ConsumerRecord:
    """One record as an application gets it. `timestamp_type` is 0 for the producer's time, 1 for the broker's.

    Header names are UTF-8; bytes that are not become lone surrogates.
    """

    cdef readonly str topic
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef readonly int8_t timestamp_type
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers

    __match_args__ = (
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "leader_epoch",
    )

    def __init__(
        self,
        str topic not None,
        int32_t partition,
        int64_t offset,
        int64_t timestamp,
        int8_t timestamp_type=0,
        key=None,
        value=None,
        tuple headers not None=(),
        int32_t leader_epoch=-1,
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.leader_epoch = leader_epoch

    cdef tuple fields(self):
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
        )

    def __eq__(self, other):
        if type(other) is not ConsumerRecord:
            return NotImplemented
        return self.fields() == (<ConsumerRecord>other).fields()

    def __hash__(self):
        return hash(self.fields())

    def __repr__(self):
        named = zip(ConsumerRecord.__match_args__, self.fields())
        return f"ConsumerRecord({', '.join([f'{name}={field!r}' for name, field in named])})"

    def __reduce__(self):
        return restored_record, self.fields()


cdef inline object bytes_or_none(const uint8_t *at, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char *>at, size)


cdef tuple headers_of(Parts *parts):
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


def decode_consumer_records(
    payload,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    append_time,
    str topic not None,
    int32_t partition,
    int32_t leader_epoch,
    int64_t first_offset,
):
    """The records of an uncompressed payload from `first_offset` on; those before it are checked and left out.

    `append_time` replaces every timestamp (LogAppendTime batches).
    """
    cdef Py_buffer view
    cdef Parts parts
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef int reason
    cdef bint appended = append_time is not None
    cdef int64_t index, offset, stamped = append_time if appended else 0
    cdef ConsumerRecord made
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
            # Unsigned, because a hostile delta may overflow and signed overflow is undefined.
            offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>parts.offset_delta)
            if offset < first_offset:
                continue
            made = ConsumerRecord.__new__(ConsumerRecord)
            made.topic = topic
            made.partition = partition
            made.offset = offset
            if appended:
                made.timestamp = stamped
            else:
                made.timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>parts.timestamp_delta)
            made.timestamp_type = appended
            made.key = bytes_or_none(parts.key, parts.key_size)
            made.value = bytes_or_none(parts.value, parts.value_size)
            made.headers = headers_of(&parts) if parts.header_count else ()
            made.leader_epoch = leader_epoch
            found.append(made)
        if at != end:
            raise BadRecord(count, REASONS[LEFT_AFTER])
        return found
    finally:
        PyBuffer_Release(&view)
