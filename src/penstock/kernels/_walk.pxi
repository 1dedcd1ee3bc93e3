# The part of the compiled kernels that needs no interpreter: numbers in bytes, and the walk over records.
# Included by _compiled.pyx. Every function that reads takes the end of what it may read.

cdef enum:
    FINE = 0
    LENGTH = 1
    TOO_LONG = 2
    TIMESTAMP = 3
    OFFSET = 4
    KEY_LENGTH = 5
    KEY = 6
    VALUE_LENGTH = 7
    VALUE = 8
    HEADER_COUNT = 9
    HEADER_KEY = 10
    HEADER_VALUE = 11
    LEFT_INSIDE = 12
    LEFT_AFTER = 13
    COUNT = 14


# --- numbers in bytes ---

cdef inline uint32_t get32(const uint8_t *at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline uint64_t get64(const uint8_t *at) noexcept nogil:
    return (<uint64_t>get32(at) << 32) | get32(at + 4)


cdef inline int16_t get16(const uint8_t *at) noexcept nogil:
    return <int16_t>((<uint32_t>at[0] << 8) | at[1])


cdef inline void put32(uint8_t *at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef inline void put64(uint8_t *at, uint64_t value) noexcept nogil:
    put32(at, <uint32_t>(value >> 32))
    put32(at + 4, <uint32_t>value)


cdef inline const uint8_t *get_varint(const uint8_t *at, const uint8_t *end, int32_t *found) noexcept nogil:
    """Where a zigzag int32 ends, or NULL when it is cut short or too large."""
    cdef uint32_t raw, shift
    cdef uint8_t byte
    if at >= end:
        return NULL
    raw = at[0]
    if raw < 0x80:
        found[0] = <int32_t>((raw >> 1) ^ (0 - (raw & 1)))
        return at + 1
    raw &= 0x7F
    at += 1
    shift = 7
    while at < end and shift < 35:
        byte = at[0]
        at += 1
        if byte < 0x80:
            if shift == 28 and byte > 0x0F:
                return NULL
            raw |= <uint32_t>byte << shift
            found[0] = <int32_t>((raw >> 1) ^ (0 - (raw & 1)))
            return at
        raw |= <uint32_t>(byte & 0x7F) << shift
        shift += 7
    return NULL


cdef inline const uint8_t *get_varlong(const uint8_t *at, const uint8_t *end, int64_t *found) noexcept nogil:
    cdef uint64_t raw = 0
    cdef uint32_t shift = 0
    cdef uint8_t byte
    while at < end and shift < 70:
        byte = at[0]
        at += 1
        if byte < 0x80:
            if shift == 63 and byte > 0x01:
                return NULL
            raw |= <uint64_t>byte << shift
            found[0] = <int64_t>((raw >> 1) ^ (0 - (raw & 1)))
            return at
        raw |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    return NULL


cdef inline uint8_t *put_varint(uint8_t *at, int64_t value) noexcept nogil:
    """Up to ten bytes; the caller has made room."""
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while raw > 0x7F:
        at[0] = <uint8_t>(raw | 0x80)
        at += 1
        raw >>= 7
    at[0] = <uint8_t>raw
    return at + 1


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while raw > 0x7F:
        size += 1
        raw >>= 7
    return size


# --- records ---

cdef struct Parts:
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_size
    int32_t value_size
    int32_t header_count
    const uint8_t *rest
    const uint8_t *key
    const uint8_t *value
    const uint8_t *headers
    const uint8_t *end


cdef inline int read_record(const uint8_t *at, const uint8_t *end, Parts *parts) noexcept nogil:
    """Finds the parts of the record at `at`; gives a reason, FINE when there is none to refuse it."""
    cdef int32_t size, left
    at = get_varint(at, end, &size)
    if at == NULL or size < 0:
        return LENGTH
    if size > end - at:
        return TOO_LONG
    end = at + size
    if at == end:
        return TIMESTAMP
    at = get_varlong(at + 1, end, &parts.timestamp_delta)  # past the attributes, which mean nothing yet
    if at == NULL:
        return TIMESTAMP
    at = get_varint(at, end, &parts.offset_delta)
    if at == NULL:
        return OFFSET
    parts.rest = at
    at = get_varint(at, end, &size)
    if at == NULL or size < -1:
        return KEY_LENGTH
    parts.key_size = size
    parts.key = at
    if size > 0:
        if size > end - at:
            return KEY
        at += size
    at = get_varint(at, end, &size)
    if at == NULL or size < -1:
        return VALUE_LENGTH
    parts.value_size = size
    parts.value = at
    if size > 0:
        if size > end - at:
            return VALUE
        at += size
    at = get_varint(at, end, &left)
    if at == NULL or left < 0:
        return HEADER_COUNT
    parts.header_count = left
    parts.headers = at
    while left:
        at = get_varint(at, end, &size)
        if at == NULL or size < 0 or size > end - at:
            return HEADER_KEY
        at = get_varint(at + size, end, &size)
        if at == NULL or size < -1:
            return HEADER_VALUE
        if size > 0:
            if size > end - at:
                return HEADER_VALUE
            at += size
        left -= 1
    if at != end:
        return LEFT_INSIDE
    parts.end = end
    return FINE


cdef struct Walk:
    int64_t smallest
    int64_t largest
    int64_t largest_at
    int64_t null_keys
    int64_t index
    bint dense


cdef int walk(const uint8_t *at, const uint8_t *end, int64_t count, Walk *seen) noexcept nogil:
    cdef Parts parts
    cdef int reason
    cdef int64_t index
    seen.smallest = seen.largest = seen.null_keys = seen.index = 0
    seen.largest_at = -1
    seen.dense = True
    if count < 0:
        return COUNT
    for index in range(count):
        reason = read_record(at, end, &parts)
        if reason != FINE:
            seen.index = index
            return reason
        at = parts.end
        if index == 0:
            seen.smallest = seen.largest = parts.timestamp_delta
            seen.largest_at = 0
        elif parts.timestamp_delta < seen.smallest:
            seen.smallest = parts.timestamp_delta
        elif parts.timestamp_delta > seen.largest:
            seen.largest = parts.timestamp_delta
            seen.largest_at = index
        if parts.key_size < 0:
            seen.null_keys += 1
        if parts.offset_delta != index:
            seen.dense = False
    if at != end:
        seen.index = count
        return LEFT_AFTER
    return FINE
