# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=True
"""The kernels of clients, compiled. `_pure_client.py` gathers what says what each promises; the same tests run both.

As in `_compiled`, nothing is believed: every read goes through a pointer that was compared with the end of its buffer
first, whether the buffer came from the network or from a caller.
"""

cimport cython
from cpython.array cimport array, clone
from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytearray cimport (
    PyByteArray_AS_STRING,
    PyByteArray_FromStringAndSize,
    PyByteArray_GET_SIZE,
    PyByteArray_Resize,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Check, PyDict_GetItemWithError
from cpython.iterator cimport PyIter_Check
from cpython.list cimport PyList_GET_SIZE
from cpython.long cimport PyLong_Check
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject, PyTypeObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_Check, PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from array import array as _array

from penstock.kernels.shapes import (
    PAIRS,
    REASONS,
    BadBatch as _BadBatch,
    BadRecord as _BadRecord,
    restored_record as _restored_record,
    unsendable as _unsendable,
)

cdef extern from "crc32c.h" nogil:
    const char *crc32c_prepare(int fastest_allowed)
    uint32_t crc32c_continue(uint32_t crc, const uint8_t *at, size_t size)

IMPLEMENTATION = "compiled"
crc32c_prepare(2)

cdef object BadBatch = _BadBatch
cdef object BadRecord = _BadRecord
cdef object restored_record = _restored_record
cdef object unsendable = _unsendable
cdef array NO_ROWS = _array("i")

cdef enum:
    HEADER_BYTES = 61
    # From here on a checksum takes long enough for another thread to gain from the lock.
    UNLOCKED_BYTES = 65536
    INT32_TOP = 2147483647

include "_walk.pxi"
include "_columns.pxi"
include "_builder.pxi"
include "_sending.pxi"
include "_consumer_records.pxi"
include "_sink.pxi"
