# Records into one growing batch, and the header in front of it. Included by _compiled_client.pyx.

cdef enum:
    PAYLOAD_TOP = INT32_TOP - HEADER_BYTES  # the length field of a batch has 31 bits
    FIRST_ROOM = 1024


cdef inline uint8_t *put_piece(uint8_t *at, const uint8_t *data, int64_t size) noexcept:
    if size < 0:
        at[0] = 1
        return at + 1
    at = put_varint(at, size)
    if size:  # an empty buffer may have no address
        memcpy(at, data, size)
    return at + size


cdef inline int64_t piece_size(int64_t size) noexcept:
    return 1 if size < 0 else varint_size(size) + size


def write_header(
    batch,
    int64_t base_offset,
    int32_t leader_epoch,
    int16_t attributes,
    int32_t last_offset_delta,
    int64_t base_timestamp,
    int64_t max_timestamp,
    int64_t producer_id,
    int16_t producer_epoch,
    int32_t base_sequence,
    int32_t record_count,
):
    """Fills the first 61 bytes of `batch`, whose payload is in place already: its header with length and checksum."""
    cdef Py_buffer view
    cdef uint8_t *at
    cdef uint32_t crc
    PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
    try:
        if view.len < HEADER_BYTES:
            raise BadBatch(f"a batch header needs {HEADER_BYTES} bytes")
        at = <uint8_t *>view.buf
        put64(at, <uint64_t>base_offset)
        put32(at + 8, <uint32_t>(view.len - 12))
        put32(at + 12, <uint32_t>leader_epoch)
        at[16] = 2
        at[21] = <uint8_t>(<uint32_t>attributes >> 8)
        at[22] = <uint8_t>attributes
        put32(at + 23, <uint32_t>last_offset_delta)
        put64(at + 27, <uint64_t>base_timestamp)
        put64(at + 35, <uint64_t>max_timestamp)
        put64(at + 43, <uint64_t>producer_id)
        at[51] = <uint8_t>(<uint32_t>producer_epoch >> 8)
        at[52] = <uint8_t>producer_epoch
        put32(at + 53, <uint32_t>base_sequence)
        put32(at + 57, <uint32_t>record_count)
        if view.len < UNLOCKED_BYTES:
            crc = crc32c_continue(0, at + 21, view.len - 21)
        else:
            with nogil:
                crc = crc32c_continue(0, at + 21, view.len - 21)
        put32(at + 17, crc)
    finally:
        PyBuffer_Release(&view)


cdef inline int64_t moment(object timestamp) except? -1:
    """A timestamp; the language would cut off what a number has after the point."""
    return timestamp if PyLong_Check(timestamp) else PyNumber_Index(timestamp)


@cython.final
cdef class RecordsBuilder:
    """Grows the payload of one batch; offset deltas count up from 0, the first timestamp is the base.

    `limit_bytes` bounds the payload, without the header of the batch; a first record is taken whatever its size.
    The memory begins with room for the header, so that a batch that is not compressed is never copied.
    """

    cdef bytearray memory  # as long as there is room; `used` bytes of it are written
    cdef Py_ssize_t used
    cdef bint closed
    cdef readonly int64_t limit_bytes
    cdef readonly Py_ssize_t count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp

    def __cinit__(self, int64_t limit_bytes):
        if limit_bytes < 0:
            raise ValueError(f"a limit of {limit_bytes} bytes")
        self.limit_bytes = min(limit_bytes, <int64_t>PAYLOAD_TOP)
        self.base_timestamp = self.max_timestamp = -1
        self.memory = PyByteArray_FromStringAndSize(NULL, HEADER_BYTES)
        memset(PyByteArray_AS_STRING(self.memory), 0, HEADER_BYTES)
        self.used = HEADER_BYTES

    @property
    def size(self):
        """Bytes of the payload so far."""
        return self.used - HEADER_BYTES

    cdef int begin(self, int64_t timestamp, int64_t rest, uint8_t **out) except -1:
        """Makes room for a record whose key, value and headers take `rest` bytes, and writes what stands before them.

        1 with where to go on, which must be done to the last byte; 0 when it is not taken.
        """
        cdef int64_t base, delta, body, whole
        cdef Py_ssize_t room
        cdef uint8_t *at
        if self.closed:
            raise ValueError("the builder is closed")
        base = self.base_timestamp if self.count else timestamp
        delta = <int64_t>(<uint64_t>timestamp - <uint64_t>base)
        if ((timestamp ^ base) & (timestamp ^ delta)) < 0:
            raise ValueError("a timestamp delta needs more than 64 bits")
        body = 1 + varint_size(delta) + varint_size(self.count) + rest
        whole = varint_size(body) + body
        if self.used - HEADER_BYTES + whole > self.limit_bytes:
            if self.count:
                return 0
            if whole > PAYLOAD_TOP:
                raise ValueError("the record is larger than a batch can be")
        # The bytearray itself is asked each time: a caller may have reached it through a view.
        if PyByteArray_GET_SIZE(self.memory) - self.used < whole:
            room = self.used + max(whole, FIRST_ROOM, self.used)
            if room > self.limit_bytes + HEADER_BYTES:
                room = max(self.used + whole, self.limit_bytes + HEADER_BYTES)
            PyByteArray_Resize(self.memory, room)
        at = put_varint(<uint8_t *>PyByteArray_AS_STRING(self.memory) + self.used, body)
        at[0] = 0
        out[0] = put_varint(put_varint(at + 1, delta), self.count)
        self.used += whole
        if self.count == 0:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        return 1

    cdef int add(self, int64_t timestamp, object key, object value, object headers) except -1:
        cdef Piece key_piece, value_piece
        cdef uint8_t *at = NULL
        cdef int taken
        look(key, &key_piece)
        try:
            look(value, &value_piece)
            try:
                if headers is not None and headers:
                    return self.add_with_headers(timestamp, &key_piece, &value_piece, headers)
                taken = self.begin(timestamp, piece_size(key_piece.size) + piece_size(value_piece.size) + 1, &at)
                if taken:
                    at = put_piece(put_piece(at, key_piece.at, key_piece.size), value_piece.at, value_piece.size)
                    at[0] = 0
                return taken
            finally:
                let_go(&value_piece)
        finally:
            let_go(&key_piece)

    cdef int add_with_headers(self, int64_t timestamp, Piece *key, Piece *value, object headers) except -1:
        cdef list packed = []
        cdef bytes name, data
        cdef uint8_t *at = NULL
        cdef int64_t rest = piece_size(key.size) + piece_size(value.size)
        # Who is not taken here is handed in once more, so what can be gone through only once would have no headers then.
        if PyDict_Check(headers) or PyIter_Check(headers):
            raise TypeError(f"headers are {PAIRS}")
        for raw_name, raw_data in headers:
            if not PyUnicode_Check(raw_name):
                raise TypeError("the name of a header is text")
            name = raw_name.encode("utf-8", "surrogateescape")
            data = None if raw_data is None else bytes_of(raw_data)
            packed.append((name, data))
            rest += piece_size(PyBytes_GET_SIZE(name)) + (1 if data is None else piece_size(PyBytes_GET_SIZE(data)))
        rest += varint_size(len(packed))
        if not self.begin(timestamp, rest, &at):
            return 0
        at = put_piece(put_piece(at, key.at, key.size), value.at, value.size)
        at = put_varint(at, len(packed))
        for name, data in packed:
            at = put_piece(at, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
            if data is None:
                at = put_piece(at, NULL, -1)
            else:
                at = put_piece(at, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        return 1

    def append(self, timestamp, key, value, headers=()):
        """Whether the record was taken; not when it would pass the limit and is not the first."""
        return True if self.add(moment(timestamp), key, value, headers) else False

    def append_many(
        self,
        int64_t timestamp,
        values,
        keys=None,
        Py_ssize_t start=0,
        stop=None,
        rows=None,
        *,
        timestamps=None,
        headers=None,
    ):
        """Takes rows [start, stop) of lists, or of those that `rows` names; the first index that was not taken.

        `timestamp` is every record's, unless `timestamps` has one for each. Lists that are too short are a ValueError.
        """
        cdef Py_ssize_t count = len(values), index, row, end
        cdef RowNumbers picked = None if rows is None else RowNumbers(rows)
        for given in (keys, timestamps, headers):
            if given is not None and len(given) < count:
                raise ValueError("the lists have different lengths")
        end = checked_range(start, stop, count if picked is None else picked.count)
        for index in range(start, end):
            row = index if picked is None else picked.number(index)
            if row < 0 or row >= count:
                raise ValueError(f"row {row} of {count}")
            if not self.add(
                timestamp if timestamps is None else moment(item_of(timestamps, row)),
                None if keys is None else item_of(keys, row),
                item_of(values, row),
                None if headers is None else item_of(headers, row),
            ):
                return index
        return end

    def append_columns(
        self, Columns columns not None, Py_ssize_t start, Py_ssize_t stop, rows=None, int64_t timestamp=-1
    ):
        """Takes rows [start, stop) of Arrow columns, or of those that `rows` names; the first index not taken.

        `timestamp` stands in where the columns have none.
        """
        cdef RowNumbers picked = None if rows is None else RowNumbers(rows)
        cdef Py_ssize_t index, row, end
        end = checked_range(start, stop, columns.rows if picked is None else picked.count)
        for index in range(start, end):
            row = index if picked is None else picked.number(index)
            if row < 0 or row >= columns.rows:
                raise ValueError(f"row {row} of {columns.rows}")
            if not self.add_row(columns, row, timestamp):
                return index
        return end

    cdef int add_row(self, Columns columns, Py_ssize_t row, int64_t timestamp) except -1:
        cdef const uint8_t *key = NULL
        cdef const uint8_t *value = NULL
        cdef const uint8_t *name = NULL
        cdef const uint8_t *data = NULL
        cdef int64_t key_size = -1, value_size = -1, name_size = -1, data_size = -1
        cdef int64_t first = 0, last = 0, index, rest
        cdef uint8_t *at = NULL
        item_at(&columns.key, row, &key, &key_size)
        item_at(&columns.value, row, &value, &value_size)
        if columns.timestamp.there and bit_at(columns.timestamp.valid, columns.timestamp.first + row):
            timestamp = number_at(columns.timestamp.values, columns.timestamp.first + row)
        if columns.headers.there and bit_at(columns.headers.valid, columns.headers.first + row):
            span_of(&columns.headers, row, &first, &last)
        rest = piece_size(key_size) + piece_size(value_size) + varint_size(last - first)
        for index in range(first, last):
            item_at(&columns.names, index, &name, &name_size)
            if name_size < 0:
                raise ValueError(f"row {row} has a header without a name")
            item_at(&columns.values, index, &data, &data_size)
            rest += piece_size(name_size) + piece_size(data_size)
        if not self.begin(timestamp, rest, &at):
            return 0
        at = put_varint(put_piece(put_piece(at, key, key_size), value, value_size), last - first)
        for index in range(first, last):
            item_at(&columns.names, index, &name, &name_size)
            item_at(&columns.values, index, &data, &data_size)
            at = put_piece(put_piece(at, name, name_size), data, data_size)
        return 1

    def payload(self):
        """The records so far. While the view lives, a record that needs more memory raises BufferError."""
        return memoryview(self.memory)[HEADER_BYTES : self.used]

    def frame(self):
        """The memory itself: 61 bytes for `write_header`, then the payload. Nothing can be appended afterwards."""
        if not self.closed:
            PyByteArray_Resize(self.memory, self.used)
            self.closed = True
        return self.memory


cdef bytes bytes_of(object data):
    cdef Piece piece
    look(data, &piece)
    cdef bytes found = PyBytes_FromStringAndSize(<const char *>piece.at, piece.size)
    let_go(&piece)
    return found


cdef inline object item_of(object items, Py_ssize_t row):
    # Its length was checked before, and a tuple keeps it; a list may have shrunk while a caller's object was asked.
    if type(items) is list:
        if row >= len(<list>items):
            raise ValueError("the list shrank")
        return (<list>items)[row]
    return items[row]


cdef Py_ssize_t checked_range(Py_ssize_t start, object stop, Py_ssize_t length) except -1:
    cdef Py_ssize_t end = length if stop is None else stop
    if start < 0 or start > end or end > length:
        raise ValueError(f"[{start}, {end}) lies outside {length} rows")
    return end
