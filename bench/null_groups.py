"""What a consumer in a group asks of the null broker: a group of one that is its own leader and has never committed.

One version of each API with fixed-width lengths is served, the newest that has them.
"""

from __future__ import annotations

import struct

from tests.compat.wire import Cursor, blob, text

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
GROUP_APIS = {
    OFFSET_COMMIT: (7, 7),
    OFFSET_FETCH: (5, 5),
    FIND_COORDINATOR: (2, 2),
    JOIN_GROUP: (5, 5),
    HEARTBEAT: (3, 3),
    LEAVE_GROUP: (2, 2),
    SYNC_GROUP: (3, 3),
}
MEMBER = "member-1"
NO_OFFSET = -1


class GroupAnswers:
    """The replies of a coordinator that knows one member and forgets all it is told."""

    def __init__(self, host: str, port: int) -> None:
        self._coordinator = struct.pack(">ih", 0, 0) + text(None) + struct.pack(">i", 1) + text(host)
        self._coordinator += struct.pack(">i", port)

    def reply(self, key: int, cursor: Cursor) -> bytes:
        if key == FIND_COORDINATOR:
            return self._coordinator
        if key == JOIN_GROUP:
            return _join(cursor)
        if key == SYNC_GROUP:
            return _sync(cursor)
        if key == OFFSET_FETCH:
            return _offsets(cursor)
        if key == OFFSET_COMMIT:
            return _commit(cursor)
        return struct.pack(">ih", 0, 0)


def _join(cursor: Cursor) -> bytes:
    _group, _timeouts = cursor.text(), cursor.take("ii")
    _member, _instance, _kind = cursor.text(), cursor.text(), cursor.text()
    cursor.one("i")
    protocol, subscription = cursor.text(), bytes(cursor.blob() or b"")
    head = struct.pack(">ihi", 0, 0, 1) + text(protocol) + text(MEMBER) + text(MEMBER)
    return head + struct.pack(">i", 1) + text(MEMBER) + text(None) + blob(subscription)


def _sync(cursor: Cursor) -> bytes:
    _group, _generation, _member, _instance = cursor.text(), cursor.one("i"), cursor.text(), cursor.text()
    # The member leads, so its request carries what it has assigned to itself.
    assignment = b""
    for _ in range(cursor.one("i")):
        cursor.text()
        assignment = bytes(cursor.blob() or b"")
    return struct.pack(">ih", 0, 0) + blob(assignment)


def _offsets(cursor: Cursor) -> bytes:
    cursor.text()
    topics = cursor.one("i")
    out = [struct.pack(">ii", 0, topics)]
    for _ in range(topics):
        name, count = cursor.text(), cursor.one("i")
        out.append(text(name) + struct.pack(">i", count))
        nothing = struct.pack(">qi", NO_OFFSET, -1) + text("") + struct.pack(">h", 0)
        out += [struct.pack(">i", cursor.one("i")) + nothing for _ in range(count)]
    return b"".join(out) + struct.pack(">h", 0)


def _commit(cursor: Cursor) -> bytes:
    _group, _generation, _member, _instance = cursor.text(), cursor.one("i"), cursor.text(), cursor.text()
    topics = cursor.one("i")
    out = [struct.pack(">ii", 0, topics)]
    for _ in range(topics):
        name, count = cursor.text(), cursor.one("i")
        out.append(text(name) + struct.pack(">i", count))
        for _ in range(count):
            index, _offset, _epoch = cursor.take("iqi")
            cursor.text()
            out.append(struct.pack(">ih", index, 0))
    return b"".join(out)
