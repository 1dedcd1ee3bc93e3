# A Produce request read, checked and answered without messages: one call for all that it holds.
# Included by _compiled.pyx. What is the least unusual is left to the codec and to `replication.admission`, which know
# every error code; so nothing here refuses anything, it only says "not plain".

cdef enum:
    PRODUCE_ZSTD_SINCE = 7
    PRODUCE_START_SINCE = 5
    PRODUCE_ERRORS_SINCE = 8
    PRODUCE_FLEXIBLE_SINCE = 9
    PRODUCE_IDS_SINCE = 13
    PRODUCE_NEWEST = 13
    ZSTD_CODEC = 4
    # Control, transactional, and a timestamp type that producers may not set.
    UNUSUAL_ATTRIBUTES = 0x38
    STRING_BYTES_MAX = 0x7FFF


cdef inline const uint8_t *get_uvarint(const uint8_t *at, const uint8_t *end, int64_t *found) noexcept nogil:
    """Where an unsigned varint of 32 bits ends, or NULL when it is cut short or too large."""
    cdef uint64_t raw = 0
    cdef uint32_t shift = 0
    cdef uint8_t byte
    if at == NULL:
        return NULL
    while at < end and shift < 35:
        byte = at[0]
        at += 1
        if byte < 0x80:
            if shift == 28 and byte > 0x0F:
                return NULL
            found[0] = <int64_t>(raw | <uint64_t>byte << shift)
            return at
        raw |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    return NULL


cdef inline const uint8_t *get_length(const uint8_t *at, const uint8_t *end, int compact, int64_t *found) noexcept nogil:
    """Where the length of an array or of records ends; NULL when it is null or cut short."""
    if at == NULL:
        return NULL
    if compact:
        at = get_uvarint(at, end, found)
        found[0] -= 1
    elif end - at < 4:
        return NULL
    else:
        found[0] = <int32_t>get32(at)
        at += 4
    if found[0] < 0:
        return NULL
    return at


cdef inline const uint8_t *get_topic(
    const uint8_t *at, const uint8_t *end, int version, const uint8_t **name, int64_t *size
) noexcept nogil:
    """Where the name or id of a topic ends; NULL when it is null, too long or cut short."""
    if at == NULL:
        return NULL
    if version >= PRODUCE_IDS_SINCE:
        size[0] = 16
    elif version >= PRODUCE_FLEXIBLE_SINCE:
        at = get_length(at, end, 1, size)
    elif end - at < 2:
        return NULL
    else:
        size[0] = get16(at)
        at += 2
    if at == NULL or size[0] < 0 or size[0] > STRING_BYTES_MAX or size[0] > end - at:
        return NULL
    name[0] = at
    return at + size[0]


cdef inline const uint8_t *past_tags(const uint8_t *at, const uint8_t *end, int flexible) noexcept nogil:
    """Past an empty section of tags; NULL when it holds any."""
    if not flexible or at == NULL:
        return at
    return at + 1 if at < end and at[0] == 0 else NULL


cdef const uint8_t *past_produce_head(
    const uint8_t *at, const uint8_t *end, int version, int64_t *acks, int64_t *timeout_ms, int64_t *topics
) noexcept nogil:
    """Past everything before the first topic; NULL when there is a transactional id or a null."""
    if version >= PRODUCE_FLEXIBLE_SINCE:
        if end - at < 7 or at[0] != 0:
            return NULL
        at += 1
    else:
        if end - at < 8 or get16(at) >= 0:
            return NULL
        at += 2
    acks[0] = get16(at)
    timeout_ms[0] = <int32_t>get32(at + 2)
    return get_length(at + 6, end, version >= PRODUCE_FLEXIBLE_SINCE, topics)


cdef bint is_plain(const uint8_t *at, int64_t size, int version, Walk *seen):
    """Whether one batch fills `size` bytes and has nothing that anybody would have to look at twice."""
    cdef int codec
    cdef int64_t base, latest
    if size < HEADER_BYTES or at[16] != 2 or <int64_t><int32_t>get32(at + 8) + 12 != size or get64(at) != 0:
        return False
    codec = at[22] & 0x07
    if codec > ZSTD_CODEC or (codec == ZSTD_CODEC and version < PRODUCE_ZSTD_SINCE) or at[22] & UNUSUAL_ATTRIBUTES:
        return False
    if <int32_t>get32(at + 57) <= 0 or <int64_t><int32_t>get32(at + 23) + 1 != <int32_t>get32(at + 57):
        return False
    if <int64_t>get64(at + 43) >= 0 and <int32_t>get32(at + 53) < 0:
        return False
    if checksum(at + BODY_AT, size - BODY_AT) != get32(at + CRC_AT):
        return False
    if codec:
        return True
    if walk(at + HEADER_BYTES, at + size, <int32_t>get32(at + 57), seen) != FINE or not seen.dense:
        return False
    base = <int64_t>get64(at + 27)
    latest = <int64_t>get64(at + 35)
    # The header's largest timestamp is that of its records, and their sums do not overflow.
    return (
        -1 <= base <= <int64_t>1 << 61 and -1 <= latest and seen.smallest > -(<int64_t>1 << 61)
        and seen.largest < <int64_t>1 << 61 and base + seen.largest == latest
    )


def read_plain_produce(bytearray frame not None, Py_ssize_t position, int version):
    """The Produce request at `position` of a frame, when all of it is plain; None when the long way must be taken.

    Plain: no transactional id, no tags, and for each partition one whole batch that any topic without wishes of its
    own takes as it is.
    """
    cdef const uint8_t *start = <const uint8_t *>PyByteArray_AS_STRING(frame)
    cdef const uint8_t *end = start + PyByteArray_GET_SIZE(frame)
    cdef const uint8_t *at = start + position
    cdef const uint8_t *name = NULL
    cdef int flexible = version >= PRODUCE_FLEXIBLE_SINCE
    cdef int64_t acks = 0, timeout_ms = 0, topics = 0, partitions = 0, size = 0, index
    cdef Py_ssize_t count = 0, names_bytes = 0
    cdef Walk seen
    cdef PlainProduce made
    cdef list found, batches
    cdef object topic
    if position < 0 or at > end or not 3 <= version <= PRODUCE_NEWEST:
        return None
    at = past_produce_head(at, end, version, &acks, &timeout_ms, &topics)
    if at == NULL or not -1 <= acks <= 1:
        return None
    found = []
    while topics > 0:
        topics -= 1
        at = get_topic(at, end, version, &name, &size)
        at = get_length(at, end, flexible, &partitions)
        if at == NULL or partitions == 0:
            return None
        if version >= PRODUCE_IDS_SINCE:
            topic = PyBytes_FromStringAndSize(<const char *>name, size)
        else:
            try:
                topic = PyUnicode_DecodeUTF8(<char *>name, size, NULL)
            except UnicodeDecodeError:
                return None
        batches = []
        count += partitions
        names_bytes += size + 16
        while partitions > 0:
            partitions -= 1
            if end - at < 4:
                return None
            index = <int32_t>get32(at)
            at = get_length(at + 4, end, flexible, &size)
            if at == NULL or size > end - at or not is_plain(at, size, version, &seen):
                return None
            if at[22] & 0x07:
                batches.append((index, at - start, header_at(at), 0, -1))
            else:
                batches.append(
                    (index, at - start, header_at(at), <int64_t>get64(at + 27) + seen.smallest, seen.null_keys)
                )
            at = past_tags(at + size, end, flexible)
            if at == NULL:
                return None
        at = past_tags(at, end, flexible)
        if at == NULL:
            return None
        found.append((topic, batches))
    if past_tags(at, end, flexible) == NULL or not found:
        return None
    made = PlainProduce.__new__(PlainProduce)
    made.frame = frame
    made.position = position
    made.version = version
    made.count = count
    made.names_bytes = names_bytes
    made.acks = acks
    made.timeout_ms = timeout_ms
    made.topics = found
    return made


cdef inline uint8_t *put_length(uint8_t *out, int64_t count, int compact) noexcept nogil:
    cdef uint64_t raw
    if not compact:
        put32(out, <uint32_t>count)
        return out + 4
    raw = <uint64_t>count + 1
    while raw > 0x7F:
        out[0] = <uint8_t>(raw | 0x80)
        out += 1
        raw >>= 7
    out[0] = <uint8_t>raw
    return out + 1


cdef class PlainProduce:
    """A plain request. `topics` has (name or id, batches) in their order, and a batch is

    (partition, position in the frame, header, smallest timestamp, records without a key or -1 when it is compressed).
    """

    cdef bytearray frame
    cdef Py_ssize_t position
    cdef Py_ssize_t names_bytes
    cdef int version
    cdef readonly Py_ssize_t count
    cdef readonly int acks
    cdef readonly int timeout_ms
    cdef readonly list topics

    def reply(self, int32_t correlation_id, list numbers not None):
        """The whole frame of a reply without errors; `numbers` has base offset and log start of each batch.

        Topics and partitions are copied from the request, which must not have been changed but for what was stamped.
        """
        cdef const uint8_t *at = <const uint8_t *>PyByteArray_AS_STRING(self.frame)
        cdef const uint8_t *end = at + PyByteArray_GET_SIZE(self.frame)
        cdef const uint8_t *name = NULL
        cdef int version = self.version, flexible = self.version >= PRODUCE_FLEXIBLE_SINCE
        cdef int64_t ignored = 0, topics = 0, partitions = 0, size = 0, base
        cdef Py_ssize_t room, slot = 0
        cdef uint8_t *start
        cdef uint8_t *out
        if len(numbers) != 2 * self.count:
            raise ValueError("a base offset and a log start for each batch")
        at = past_produce_head(at + self.position, end, version, &ignored, &ignored, &topics)
        room = 32 + 48 * self.count + self.names_bytes  # a little more than any version needs
        start = out = <uint8_t *>PyMem_Malloc(room)
        if out == NULL:
            raise MemoryError
        try:
            put32(out + 4, <uint32_t>correlation_id)
            out += 8
            if flexible:
                out[0] = 0
                out += 1
            out = put_length(out, topics, flexible)
            while topics > 0:
                topics -= 1
                at = get_topic(at, end, version, &name, &size)
                if version < PRODUCE_IDS_SINCE:
                    if flexible:
                        out = put_length(out, size, 1)
                    else:
                        out[0] = <uint8_t>(size >> 8)
                        out[1] = <uint8_t>size
                        out += 2
                memcpy(out, name, size)
                out += size
                at = get_length(at, end, flexible, &partitions)
                out = put_length(out, partitions, flexible)
                while partitions > 0:
                    partitions -= 1
                    memcpy(out, at, 4)
                    out[4] = out[5] = 0
                    base = numbers[slot]
                    put64(out + 6, <uint64_t>base)
                    put64(out + 14, <uint64_t>-1)
                    out += 22
                    if version >= PRODUCE_START_SINCE:
                        base = numbers[slot + 1]
                        put64(out, <uint64_t>base)
                        out += 8
                    slot += 2
                    if flexible:
                        out[0] = 1
                        out[1] = out[2] = 0
                        out += 3
                    elif version >= PRODUCE_ERRORS_SINCE:
                        put32(out, 0)
                        out[4] = out[5] = 0xFF
                        out += 6
                    at = get_length(at + 4, end, flexible, &size)
                    at = past_tags(at + size, end, flexible)
                at = past_tags(at, end, flexible)
                if flexible:
                    out[0] = 0
                    out += 1
            put32(out, 0)
            out += 4
            if flexible:
                out[0] = 0
                out += 1
            put32(start, <uint32_t>(out - start - 4))
            return PyBytes_FromStringAndSize(<const char *>start, out - start)
        finally:
            PyMem_Free(start)
