# The straight way of one record into the open batch of its partition. Included by _compiled_client.pyx.

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object seen)
    Py_ssize_t PyNumber_AsSsize_t(object number, PyObject *overflow) except? -1

cdef tuple NO_ARGUMENTS = ()


cdef class Place:
    """Where a record is: the batch that holds it and its index there. What callers hold on to extends this."""

    cdef public object _home
    cdef public Py_ssize_t _index
    cdef public int64_t _timestamp

    def __init__(self, home, Py_ssize_t index, int64_t timestamp):
        self._home = home
        self._index = index
        self._timestamp = timestamp


cdef class OpenBatch:
    """A batch that may take records: `builder` until it is sealed, and `callbacks` of (index, timestamp, call)."""

    cdef public RecordsBuilder builder
    cdef public list callbacks


cdef class OpenLane:
    """A partition; `open` is its batch that takes records, or None."""

    cdef public OpenBatch open


cdef class OpenTopic:
    """The `lanes` of a topic. `sticky` takes records without a key; `choose` is None, or the caller's own way."""

    cdef public list lanes
    cdef public OpenLane sticky
    cdef public object choose


cdef class Desk:
    """Where records are handed in: `topics` by name, and `waiting`, those who stand in line before everybody else.

    The collector does not look into the places that are given here. A batch that is settled must hold nothing that
    could lead back to one.
    """

    cdef public dict topics
    cdef public object waiting
    cdef readonly object kind
    cdef object now_ns

    def __cinit__(self):
        self.topics = {}
        self.waiting = ()
        self.kind = Place

    def deliver_as(self, kind):
        """What is given for a record: a kind of `Place`."""
        if not issubclass(kind, Place):
            raise TypeError(f"{kind!r} is no place")
        self.kind = kind

    def stamp_by(self, now_ns):
        """The clock of records that bring no timestamp: a function that tells nanoseconds since 1970."""
        self.now_ns = now_ns

    cdef object put(self, object topic, object value, object key, object partition, object timestamp, object headers,
                    object callback):
        cdef OpenTopic held
        cdef OpenLane lane
        cdef OpenBatch batch
        cdef Py_ssize_t index
        cdef int64_t at
        cdef Place place
        cdef PyObject *found = PyDict_GetItemWithError(self.topics, topic)
        if found == NULL or self.waiting:
            return None
        held = <OpenTopic?><object>found
        if held.choose is not None:
            return None
        if partition is not None:
            index = PyNumber_AsSsize_t(partition, NULL)
            if index < 0 or index >= PyList_GET_SIZE(held.lanes):
                return None
            lane = <OpenLane?>held.lanes[index]
        elif key is None:
            lane = held.sticky
        else:
            index = PyList_GET_SIZE(held.lanes)
            if not index:
                return None
            lane = <OpenLane?>held.lanes[(hash_object(key) & 0x7FFFFFFF) % <uint32_t>index]
        if lane is None or lane.open is None or lane.open.builder is None:
            return None
        batch = lane.open
        at = <int64_t>self.now_ns() // 1000000 if timestamp is None else moment(timestamp)
        place = <Place>(<PyTypeObject *>Place).tp_new(self.kind, <PyObject *>NO_ARGUMENTS, NULL)
        # Holding a million of them must not keep the collector busy; see the promise of `Desk`.
        PyObject_GC_UnTrack(place)
        index = batch.builder.count
        if not batch.builder.add(at, key, value, headers):
            return None
        place._home = batch
        place._index = index
        place._timestamp = at
        if callback is not None:
            batch.callbacks.append((index, at, callback))
        return place

    def hand_in(self, topic, value, key, partition, timestamp, headers, callback):
        """A record into the open batch of its partition, and its place there.

        None when the way is not straight: an unknown topic or partition, a partitioner of the caller's own, no open
        batch or a full one, others who wait. Then nothing has happened.
        """
        return self.put(topic, value, key, partition, timestamp, headers, callback)


cdef class SendFront:
    """The `send` of producers. A front has a `_desk` while it is open, and the `_lock` of it when threads share it."""

    cdef public Desk _desk
    cdef object acquire
    cdef object release

    @classmethod
    def __class_getitem__(cls, _kinds):
        return cls

    def _share(self, lock):
        """Records come from several threads, one at a time."""
        self.acquire, self.release = lock.acquire, lock.release

    def send(self, topic, value=None, *, key=None, partition=None, timestamp=None, headers=(), on_delivery=None):
        """Puts a record into its batch and answers its delivery, which tells the `Report` when it is asked to.

        Key and value are bytes or text, which is sent as UTF-8. `timestamp` is in milliseconds, now if None. When the
        buffer is full, or the topic not known yet, the record waits its turn for up to `max_block_ms`; `BufferFull`
        when too many wait already. `RecordTooLarge` when no request could carry it. `on_delivery` is called with
        (report, None) or (None, error). A TypeError says which argument cannot be sent.
        """
        cdef Desk desk = self._desk
        try:
            if desk is not None:
                if self.acquire is None:
                    place = desk.put(topic, value, key, partition, timestamp, headers, on_delivery)
                else:
                    self.acquire()
                    try:
                        place = desk.put(topic, value, key, partition, timestamp, headers, on_delivery)
                    finally:
                        self.release()
                if place is not None:
                    return place
            return self._send_slowly(topic, value, key, partition, timestamp, headers, on_delivery)
        except (TypeError, ValueError):
            words = unsendable(topic, value, key, partition, timestamp, headers)
            if not words:
                raise
        raise TypeError(words)
