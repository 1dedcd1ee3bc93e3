# Payloads into growing Arrow columns. Included by _compiled_client.pyx.

cdef struct Memory:
    uint8_t *at
    Py_ssize_t used
    Py_ssize_t room


cdef int make_room(Memory *memory, Py_ssize_t more) except -1:
    cdef Py_ssize_t room = max(memory.room * 2, memory.used + more, 256)
    cdef uint8_t *moved = <uint8_t *>PyMem_Realloc(memory.at, room)
    if moved == NULL:
        raise MemoryError
    memory.at = moved
    memory.room = room
    return 0


cdef inline int need(Memory *memory, Py_ssize_t more) except -1:
    if memory.room - memory.used < more:
        make_room(memory, more)
    return 0


cdef int mark_null(Memory *bits, Py_ssize_t row) except -1:
    """Clears the bit of `row`. The bitmap comes into being with the first null; what it gains is all ones."""
    cdef Py_ssize_t before = bits.room
    if row >> 3 >= bits.room:
        make_room(bits, (row >> 3) + 64)
        memset(bits.at + before, 0xFF, bits.room - before)
    bits.at[row >> 3] &= <uint8_t>~(1 << (row & 7))
    return 0


@cython.final
cdef class ArrowBuffer:
    """Memory of one column, given away: it lives as long as somebody looks at it."""

    cdef Memory memory

    def __dealloc__(self):
        PyMem_Free(self.memory.at)

    def __len__(self):
        return self.memory.used

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.memory.at, self.memory.used, True, flags)


cdef struct Column:
    Memory offsets
    Memory data
    Memory valid
    Py_ssize_t nulls


cdef enum:
    KEYS = 0
    VALUES = 1
    NAMES = 2
    HEADER_VALUES = 3


# How far the columns had come.
cdef struct Mark:
    Py_ssize_t rows
    Py_ssize_t headers
    Py_ssize_t nulls[4]


cdef bint is_ascii(const uint8_t *at, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t index
    for index in range(size):
        if at[index] >= 0x80:
            return False
    return True


@cython.final
cdef class ColumnSink:
    """Decodes payloads into the columns of one Arrow table: every `take` adds rows, `buffers` ends it.

    No data buffer passes `data_bytes_max`: a record that would is not taken, unless it is the first of the sink.
    `expected_bytes` is a hint of how many bytes of values will come: room for them may be made at once.
    """

    cdef Column columns[4]
    cdef Memory offsets
    cdef Memory timestamps
    cdef Memory lists
    cdef Py_ssize_t header_rows
    cdef Py_ssize_t limit
    cdef dict given
    cdef readonly Py_ssize_t rows
    cdef readonly bint finished
    cdef readonly bint full

    def __cinit__(self, Py_ssize_t data_bytes_max=INT32_TOP, Py_ssize_t expected_bytes=0):
        cdef int index
        if not 0 < data_bytes_max <= INT32_TOP:
            raise ValueError(f"{data_bytes_max} bytes are too few or too many for a column")
        self.limit = data_bytes_max
        self.finished = True
        for index in range(4):
            need(&self.columns[index].offsets, 4)
            memset(self.columns[index].offsets.at, 0, 4)
        need(&self.lists, 4)
        memset(self.lists.at, 0, 4)
        need(&self.columns[VALUES].data, max(0, min(expected_bytes, data_bytes_max)))
        self.settle()

    def __dealloc__(self):
        cdef int index
        for index in range(4):
            PyMem_Free(self.columns[index].offsets.at)
            PyMem_Free(self.columns[index].data.at)
            PyMem_Free(self.columns[index].valid.at)
        PyMem_Free(self.offsets.at)
        PyMem_Free(self.timestamps.at)
        PyMem_Free(self.lists.at)

    @property
    def last_offset(self):
        """The offset of the newest row, -1 when there is none."""
        cdef Py_ssize_t at = 8 * (self.rows - 1)
        if self.given is not None:
            return memoryview(self.given["offset"]).cast("q")[self.rows - 1] if self.rows else -1
        return number_at(self.offsets.at + at, 0) if self.rows else -1

    @property
    def data_bytes(self):
        """Bytes of keys, values and headers so far."""
        cdef Py_ssize_t total = 0
        for index in range(4):
            total += self.columns[index].data.used
        return total

    def take(
        self,
        payload,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        append_time,
        int64_t first_offset,
        int64_t limit,
    ):
        """Adds at most `limit` records from `first_offset` on and tells how many.

        Afterwards `finished` tells whether the end of the payload was reached, and `full` whether a data buffer has no
        room for the next record. A record that does not parse raises BadRecord and leaves the sink as it was.
        """
        cdef Py_buffer view
        cdef Mark before
        cdef int index
        if self.given is not None:
            raise ValueError("the columns have been given away")
        before.rows = self.rows
        before.headers = self.header_rows
        for index in range(4):
            before.nulls[index] = self.columns[index].nulls
        self.finished = self.full = False
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            self.take_all(&view, count, base_offset, base_timestamp, append_time, first_offset, limit)
        except BaseException:
            self.cut(&before)
            raise
        finally:
            self.settle()
            PyBuffer_Release(&view)
        return self.rows - before.rows

    cdef int take_all(
        self,
        Py_buffer *view,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        object append_time,
        int64_t first_offset,
        int64_t left,
    ) except -1:
        cdef Parts parts
        cdef const uint8_t *at = <const uint8_t *>view.buf
        cdef const uint8_t *end = at + view.len
        cdef bint appended = append_time is not None
        cdef int64_t index, offset, stamped = append_time if appended else 0
        cdef int reason
        cdef Column *keys = &self.columns[KEYS]
        cdef Column *values = &self.columns[VALUES]
        # The smallest record has seven bytes, so that a count that lies reserves no more than its bytes are worth.
        cdef Py_ssize_t expected = max(0, min(count, left, view.len // 7 + 1))
        if count < 0:
            raise BadRecord(0, REASONS[COUNT])
        need(&self.offsets, 8 * expected)
        need(&self.timestamps, 8 * expected)
        need(&self.lists, 4 * expected)
        need(&keys.offsets, 4 * expected)
        need(&values.offsets, 4 * expected)
        # Kept in registers: the compiler must assume that copied bytes may lie on the fields of `self`.
        cdef Py_ssize_t row = self.rows
        cdef Py_ssize_t key_end = keys.data.used, value_end = values.data.used
        cdef int64_t *offsets = <int64_t *>self.offsets.at
        cdef int64_t *timestamps = <int64_t *>self.timestamps.at
        cdef int32_t *lists = <int32_t *>self.lists.at
        cdef int32_t *key_ends = <int32_t *>keys.offsets.at
        cdef int32_t *value_ends = <int32_t *>values.offsets.at
        for index in range(count):
            if left <= 0:
                return 0
            reason = read_record(at, end, &parts)
            if reason != FINE:
                raise BadRecord(index, REASONS[reason])
            at = parts.end
            # Unsigned, because a hostile delta may overflow and signed overflow is undefined.
            offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>parts.offset_delta)
            if offset < first_offset:
                continue
            if row and (
                (parts.key_size > 0 and parts.key_size > self.limit - key_end)
                or (parts.value_size > 0 and parts.value_size > self.limit - value_end)
            ):
                self.full = True
                return 0
            if parts.header_count and not self.add_headers(&parts):
                self.full = True
                return 0
            self.add_item(keys, row, &key_end, parts.key, parts.key_size)
            self.add_item(values, row, &value_end, parts.value, parts.value_size)
            offsets[row] = offset
            if appended:
                timestamps[row] = stamped
            else:
                timestamps[row] = <int64_t>(<uint64_t>base_timestamp + <uint64_t>parts.timestamp_delta)
            row += 1
            key_ends[row] = <int32_t>key_end
            value_ends[row] = <int32_t>value_end
            lists[row] = <int32_t>self.header_rows
            self.rows = row
            left -= 1
        if at != end:
            raise BadRecord(count, REASONS[LEFT_AFTER])
        self.finished = True
        return 0

    cdef inline void settle(self) noexcept:
        """Tells the memories how far `rows` and the ends of the items reach."""
        cdef int which
        self.offsets.used = self.timestamps.used = 8 * self.rows
        self.lists.used = 4 * (self.rows + 1)
        for which in range(4):
            self.columns[which].offsets.used = 4 * ((self.rows if which < NAMES else self.header_rows) + 1)
            self.columns[which].data.used = (<int32_t *>self.columns[which].offsets.at)[
                self.rows if which < NAMES else self.header_rows
            ]

    cdef inline int add_item(
        self, Column *column, Py_ssize_t row, Py_ssize_t *data_end, const uint8_t *data, Py_ssize_t size
    ) except -1:
        """The bytes of one item, or its being null; its end is the caller's to write."""
        if size < 0:
            mark_null(&column.valid, row)
            column.nulls += 1
        elif size > 0:
            if column.data.room - data_end[0] < size:
                column.data.used = data_end[0]
                make_room(&column.data, size)
            memcpy(column.data.at + data_end[0], data, size)
            data_end[0] += size
        return 0

    cdef bint add_headers(self, Parts *parts) except -1:
        """False, and nothing added, when a column of headers has no room."""
        cdef Mark before
        cdef const uint8_t *at = parts.headers
        cdef int32_t size = 0
        cdef bytes name
        cdef bint fits = True
        cdef int32_t index
        cdef int which
        before.headers = self.header_rows
        for which in range(4):
            before.nulls[which] = self.columns[which].nulls
        for index in range(parts.header_count):
            fits = fits and self.header_rows < INT32_TOP
            at = get_varint(at, parts.end, &size)
            if is_ascii(at, size):
                fits = fits and self.add_header_part(NAMES, at, size)
            else:
                # A name that is not UTF-8 would make a column that Arrow must not hold.
                name = PyUnicode_DecodeUTF8(<char *>at, size, "replace").encode("utf-8")
                fits = fits and self.add_header_part(
                    NAMES, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)
                )
            at = get_varint(at + size, parts.end, &size)
            fits = fits and self.add_header_part(HEADER_VALUES, at, size)
            if not fits:
                self.cut_headers(&before)
                return False
            if size > 0:
                at += size
            self.header_rows += 1
        return True

    cdef bint add_header_part(self, int which, const uint8_t *data, Py_ssize_t size) except -1:
        cdef Column *column = &self.columns[which]
        cdef Py_ssize_t used = (<int32_t *>column.offsets.at)[self.header_rows]
        if self.rows and size > 0 and size > self.limit - used:
            return False
        if size > INT32_TOP - used:
            raise OverflowError("the headers of one record do not fit a column")
        column.offsets.used = 4 * (self.header_rows + 1)
        need(&column.offsets, 4)
        self.add_item(column, self.header_rows, &used, data, size)
        (<int32_t *>column.offsets.at)[self.header_rows + 1] = <int32_t>used
        return True

    cdef void cut(self, Mark *before) noexcept:
        # A row may have got its key when its value failed for want of memory, so one more bit is put back.
        self.cut_nulls(KEYS, before.rows, self.rows + 1, before.nulls[KEYS])
        self.cut_nulls(VALUES, before.rows, self.rows + 1, before.nulls[VALUES])
        self.rows = before.rows
        self.cut_headers(before)

    cdef void cut_headers(self, Mark *before) noexcept:
        self.cut_nulls(NAMES, before.headers, self.header_rows + 1, before.nulls[NAMES])
        self.cut_nulls(HEADER_VALUES, before.headers, self.header_rows + 1, before.nulls[HEADER_VALUES])
        self.header_rows = before.headers

    cdef void cut_nulls(self, int which, Py_ssize_t rows, Py_ssize_t reached, Py_ssize_t nulls) noexcept:
        cdef Column *column = &self.columns[which]
        cdef Py_ssize_t row
        column.nulls = nulls
        for row in range(rows, min(reached, 8 * column.valid.room)):
            column.valid.at[row >> 3] |= <uint8_t>(1 << (row & 7))

    def buffers(self):
        """The columns as Arrow buffers by name; a validity bitmap is None when nothing is null.

        The buffers own their memory from now on, and the sink takes no more.
        """
        if self.given is None:
            self.given = {
                "offset": given_away(&self.offsets),
                "timestamp": given_away(&self.timestamps),
                "key_validity": self.validity(KEYS, self.rows),
                "key_offsets": given_away(&self.columns[KEYS].offsets),
                "key_data": given_away(&self.columns[KEYS].data),
                "value_validity": self.validity(VALUES, self.rows),
                "value_offsets": given_away(&self.columns[VALUES].offsets),
                "value_data": given_away(&self.columns[VALUES].data),
                "headers_offsets": given_away(&self.lists),
                "header_key_offsets": given_away(&self.columns[NAMES].offsets),
                "header_key_data": given_away(&self.columns[NAMES].data),
                "header_value_validity": self.validity(HEADER_VALUES, self.header_rows),
                "header_value_offsets": given_away(&self.columns[HEADER_VALUES].offsets),
                "header_value_data": given_away(&self.columns[HEADER_VALUES].data),
            }
        return self.given

    cdef object validity(self, int which, Py_ssize_t rows):
        cdef Column *column = &self.columns[which]
        if column.nulls == 0:
            return None
        if (rows + 7) >> 3 > column.valid.room:
            mark_null(&column.valid, rows)  # grows it; the bit itself lies behind the last row
        column.valid.used = (rows + 7) >> 3
        return given_away(&column.valid)


cdef ArrowBuffer given_away(Memory *memory):
    """Moves memory into an object of its own; what was reserved too much goes back."""
    cdef ArrowBuffer buffer = ArrowBuffer.__new__(ArrowBuffer)
    cdef uint8_t *moved
    moved = <uint8_t *>PyMem_Realloc(memory.at, max(memory.used, 1))
    if moved != NULL:
        memory.at = moved
    buffer.memory = memory[0]
    memory.at = NULL
    memory.room = 0
    return buffer
