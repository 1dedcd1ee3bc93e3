"""Length-prefixed frames over byte streams, for servers and clients alike. Floor 4; asyncio lives from here upwards.

May import `protocol` and `model` and the floors between (`security` reads certificates); knows no handler, no log and
no metadata.

Invariants: a frame is handed on in a buffer of its own; memory follows bytes that arrived, not sizes that were
announced; a peer that reads slowly costs its unread reply at most one chunk beyond what the reply itself holds; one
bad peer closes one connection.

Read `stream.py` first (frames in, parts out), then `intake.py` (what all connections of a loop share), `outbox.py`
(replies that do not fit the socket, and files that need not be read), `idle.py`, `net.py` (listening and dialling),
`dial.py` (the asking side) and `deadline.py` (timers that listen before they act). A dial that has to be safe is
described by `dial_security.py`, made by `tls_dialling.py` over `tls/`, and logged in by `login.py`; a plaintext dial
imports none of these.
"""
