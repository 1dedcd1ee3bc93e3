# Arrow columns as the kernels take them, and the partition that a key belongs to. Included by _compiled_client.pyx.

# --- what a user may give as key or value ---

cdef struct Piece:
    const uint8_t *at
    Py_ssize_t size  # -1 for None
    bint held
    Py_buffer view


cdef inline int look(object data, Piece *piece) except -1:
    """Where the bytes of `data` lie; `let_go` ends it. TypeError for what is no bytes, text or None."""
    cdef const char *text
    piece.held = False
    if data is None:
        piece.at = NULL
        piece.size = -1
    elif PyBytes_Check(data):
        piece.at = <const uint8_t *>PyBytes_AS_STRING(data)
        piece.size = PyBytes_GET_SIZE(data)
    elif PyUnicode_Check(data):
        text = PyUnicode_AsUTF8AndSize(data, &piece.size)
        piece.at = <const uint8_t *>text
    else:
        PyObject_GetBuffer(data, &piece.view, PyBUF_SIMPLE)
        piece.held = True
        piece.at = <const uint8_t *>piece.view.buf
        piece.size = piece.view.len
    return 0


cdef inline void let_go(Piece *piece) noexcept:
    if piece.held:
        PyBuffer_Release(&piece.view)


# --- columns ---

cdef struct Binary:
    bint there
    const uint8_t *valid  # NULL when all are
    const uint8_t *offsets
    int width
    int64_t first
    const uint8_t *data
    int64_t size


cdef struct Numbers:
    bint there
    const uint8_t *valid
    const uint8_t *values
    int64_t first


cdef inline bint bit_at(const uint8_t *bits, int64_t at) noexcept nogil:
    return bits == NULL or (bits[at >> 3] >> (at & 7)) & 1


cdef inline int64_t offset_at(const uint8_t *offsets, int width, int64_t at) noexcept nogil:
    # Copied, because nothing promises that the buffer is aligned.
    cdef int32_t narrow
    cdef int64_t wide
    if width == 4:
        memcpy(&narrow, offsets + 4 * at, 4)
        return narrow
    memcpy(&wide, offsets + 8 * at, 8)
    return wide


cdef inline int64_t number_at(const uint8_t *values, int64_t at) noexcept nogil:
    cdef int64_t found
    memcpy(&found, values + 8 * at, 8)
    return found


cdef int span_of(Binary *column, int64_t row, int64_t *start, int64_t *end) except -1:
    """Checked at every use: a caller who changes the buffers must not make us read outside."""
    start[0] = offset_at(column.offsets, column.width, column.first + row)
    end[0] = offset_at(column.offsets, column.width, column.first + row + 1)
    if start[0] < 0 or start[0] > end[0] or end[0] > column.size:
        raise ValueError(f"a column: row {row} lies at [{start[0]}, {end[0]}) of {column.size}")
    return 0


cdef inline int item_at(Binary *column, int64_t row, const uint8_t **at, int64_t *size) except -1:
    """The bytes of one row; size -1 when it is null or there is no column."""
    cdef int64_t start = 0, end = 0
    if not column.there or not bit_at(column.valid, column.first + row):
        size[0] = -1
        return 0
    span_of(column, row, &start, &end)
    at[0] = column.data + start
    size[0] = end - start
    return 0


cdef int64_t first_row(tuple column, Py_ssize_t fields, int64_t rows, str what) except -1:
    if len(column) != fields and len(column) != fields + 1:
        raise ValueError(f"{what}: it has {len(column)} parts")
    first = column[fields] if len(column) > fields else 0
    if not 0 <= first < (1 << 62) - rows:
        raise ValueError(f"{what}: its slice begins at {first}")
    return first


@cython.final
cdef class Columns:
    """`rows` records as columns, all of which may be missing: a missing one is null in every row.

    key, value: (validity, offsets, data[, first row]) with offsets of 4 or 8 bytes, told by the item size of their
    buffer, so cast it: `memoryview(buffer).cast("i")`.
    timestamp: an int64 buffer of milliseconds, or (validity, values[, first row]).
    headers: (validity, offsets, names, values[, first row]); names and values are columns like key and value, whose
    first row counts the struct's slice in.
    ValueError when a buffer is too short or an offset points outside. The buffers must not change afterwards; they
    are held until the object goes.
    """

    cdef readonly Py_ssize_t rows
    cdef Binary key
    cdef Binary value
    cdef Numbers timestamp
    cdef Binary headers  # its data are the rows of `names` and `values`
    cdef Binary names
    cdef Binary values
    cdef Py_buffer held[16]
    cdef int held_count

    def __cinit__(self, rows, *, key=None, value=None, timestamp=None, headers=None):
        if not 0 <= rows < 2147483648:
            raise ValueError(f"{rows} rows are too few or too many")
        self.rows = rows
        if key is not None:
            self.take_binary(&self.key, key, self.rows, "the keys")
        if value is not None:
            self.take_binary(&self.value, value, self.rows, "the values")
        if timestamp is not None:
            self.take_numbers(timestamp if isinstance(timestamp, tuple) else (None, timestamp))
        if headers is not None:
            self.take_headers(headers)

    def __dealloc__(self):
        cdef int index
        for index in range(self.held_count):
            PyBuffer_Release(&self.held[index])

    cdef Py_buffer *hold(self, object data) except NULL:
        cdef Py_buffer *view = &self.held[self.held_count]
        PyObject_GetBuffer(data, view, PyBUF_ND | PyBUF_FORMAT)
        self.held_count += 1
        return view

    cdef const uint8_t *hold_bits(self, object data, int64_t first, int64_t rows, str what) except? NULL:
        cdef Py_buffer *view
        if data is None:
            return NULL
        view = self.hold(data)
        if view.len * 8 < first + rows:
            raise ValueError(f"{what}: its validity bitmap ends before its rows do")
        return <const uint8_t *>view.buf

    cdef int hold_offsets(self, Binary *column, object data, int64_t rows, str what) except -1:
        cdef Py_buffer *view = self.hold(data)
        cdef int64_t start, end, row
        if view.itemsize != 4 and view.itemsize != 8:
            raise ValueError(f"{what}: its offsets are neither 4 nor 8 bytes wide")
        column.width = view.itemsize
        column.offsets = <const uint8_t *>view.buf
        if rows and view.len // view.itemsize < column.first + rows + 1:
            raise ValueError(f"{what}: its offsets end before its rows do")
        for row in range(rows):
            start = offset_at(column.offsets, column.width, column.first + row)
            end = offset_at(column.offsets, column.width, column.first + row + 1)
            if start < 0 or start > end or end > column.size:
                raise ValueError(f"{what}: row {row} lies at [{start}, {end}) of {column.size}")
        column.there = True
        return 0

    cdef int take_binary(self, Binary *column, tuple given, int64_t rows, str what) except -1:
        cdef Py_buffer *view
        column.first = first_row(given, 3, rows, what)
        view = self.hold(b"" if given[2] is None else given[2])
        column.data = <const uint8_t *>view.buf
        column.size = view.len
        column.valid = self.hold_bits(given[0], column.first, rows, what)
        return self.hold_offsets(column, given[1], rows, what)

    cdef int take_numbers(self, tuple given) except -1:
        cdef Py_buffer *view
        self.timestamp.first = first_row(given, 2, self.rows, "the timestamps")
        self.timestamp.valid = self.hold_bits(given[0], self.timestamp.first, self.rows, "the timestamps")
        view = self.hold(given[1])
        if view.len // 8 < self.timestamp.first + self.rows:
            raise ValueError("the timestamps: its values end before its rows do")
        self.timestamp.values = <const uint8_t *>view.buf
        self.timestamp.there = True
        return 0

    cdef int take_headers(self, tuple given) except -1:
        cdef Binary *lists = &self.headers
        cdef int64_t end = 0
        lists.first = first_row(given, 4, self.rows, "the headers")
        lists.size = (<int64_t>1 << 62) - 1
        lists.valid = self.hold_bits(given[0], lists.first, self.rows, "the headers")
        self.hold_offsets(lists, given[1], self.rows, "the headers")
        # The children are read exactly as far as the lists reach; the ends rise, so the last one is the farthest.
        if self.rows:
            end = offset_at(lists.offsets, lists.width, lists.first + self.rows)
        self.take_binary(&self.names, given[2], end, "the header names")
        self.take_binary(&self.values, given[3], end, "the header values")
        lists.size = end
        return 0


# --- rows and partitions ---

cdef uint32_t hash_of(const uint8_t *at, Py_ssize_t size) noexcept nogil:
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t mixed = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t word
    while size >= 4:
        word = <uint32_t>at[0] | (<uint32_t>at[1] << 8) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 24)
        word *= m
        word = (word ^ (word >> 24)) * m
        mixed = (mixed * m) ^ word
        at += 4
        size -= 4
    if size == 3:
        mixed ^= <uint32_t>at[2] << 16
    if size >= 2:
        mixed ^= <uint32_t>at[1] << 8
    if size >= 1:
        mixed = (mixed ^ at[0]) * m
    mixed = (mixed ^ (mixed >> 13)) * m
    return mixed ^ (mixed >> 15)


cdef int some(object partitions) except -1:
    if not 0 < partitions < 2147483648:
        raise ValueError("a topic has at least one partition")
    return partitions


cdef uint32_t hash_object(object key) except? 0:
    cdef Piece piece
    look(key, &piece)
    if piece.size < 0:
        raise TypeError("a key is bytes or text")
    cdef uint32_t found = hash_of(piece.at, piece.size)
    let_go(&piece)
    return found


def murmur2(key):
    """The hash with which Kafka's clients spread keys, as an unsigned number of 32 bits."""
    return hash_object(key)


def partition_of(key, partitions):
    """The partition of a key among `partitions`, as Kafka's clients choose it."""
    return <int>((hash_object(key) & 0x7FFFFFFF) % <uint32_t>some(partitions))


def partition_keys(keys, partitions):
    """The partition of each key, -1 for None."""
    cdef uint32_t count = some(partitions)
    cdef array found = clone(NO_ROWS, len(keys), False)
    cdef int *out = found.data.as_ints
    cdef Py_ssize_t index = 0, rows = len(keys)
    for key in keys:
        if index >= rows:
            raise ValueError("the list of keys grew")
        out[index] = -1 if key is None else <int>((hash_object(key) & 0x7FFFFFFF) % count)
        index += 1
    if index != rows:
        raise ValueError("the list of keys shrank")
    return found


def partition_rows(Columns columns not None, partitions):
    """The partition of each row by its key, -1 where the key is null."""
    cdef uint32_t count = some(partitions)
    cdef array found = clone(NO_ROWS, columns.rows, False)
    cdef int *out = found.data.as_ints
    cdef const uint8_t *at = NULL
    cdef int64_t size = 0
    cdef Py_ssize_t row
    for row in range(columns.rows):
        item_at(&columns.key, row, &at, &size)
        out[row] = -1 if size < 0 else <int>((hash_of(at, size) & 0x7FFFFFFF) % count)
    return found


cdef class RowNumbers:
    """A caller's array of int32, held while it is read."""

    cdef Py_buffer view
    cdef bint held
    cdef const uint8_t *at
    cdef Py_ssize_t count

    def __cinit__(self, data):
        PyObject_GetBuffer(data, &self.view, PyBUF_ND | PyBUF_FORMAT)
        self.held = True
        if self.view.itemsize != 4:
            raise ValueError("row numbers are 4 bytes wide")
        self.at = <const uint8_t *>self.view.buf
        self.count = self.view.len // 4

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef inline int64_t number(self, Py_ssize_t index) noexcept:
        return offset_at(self.at, 4, index)


def group_rows(chosen, partitions):
    """The rows of each partition in their order, from what `partition_rows` gave; the last list has those of -1."""
    cdef int count = some(partitions)
    cdef RowNumbers numbers = RowNumbers(chosen)
    cdef list found = []
    cdef array sizes = clone(NO_ROWS, <Py_ssize_t>count + 1, True)
    cdef array group
    cdef int64_t partition
    cdef Py_ssize_t row
    for row in range(numbers.count):
        partition = numbers.number(row)
        if partition < -1 or partition >= count:
            raise ValueError(f"row {row} names partition {partition} of {count}")
        sizes.data.as_ints[count if partition < 0 else partition] += 1
    for partition in range(<int64_t>count + 1):
        found.append(clone(NO_ROWS, sizes.data.as_ints[partition], False))
        sizes.data.as_ints[partition] = 0
    for row in range(numbers.count):
        partition = numbers.number(row)
        if partition < -1 or partition >= count:
            raise ValueError("the array was changed while it was read")
        if partition < 0:
            partition = count
        group = <array>found[partition]
        if sizes.data.as_ints[partition] >= len(group):
            raise ValueError("the array was changed while it was read")
        group.data.as_ints[sizes.data.as_ints[partition]] = row
        sizes.data.as_ints[partition] += 1
    return found
