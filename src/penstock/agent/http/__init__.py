"""A small HTTP/1.1 server on h11, for what agents take in and for their admin port.

    server = HttpServer(handle, Limits(body_bytes_max=1 << 20))
    port = await server.start("127.0.0.1", 0)

One request at a time on a connection, keep-alive, chunked bodies, gzip and zstd. Imports `listening` and h11.

Invariants: everything a peer can make grow is bounded (head, body, inflated body, connections, bytes of all bodies
together, unread answers); a peer that sends slowly is given a deadline that moves only with what it sends; a peer that
breaks the protocol costs its own connection; a handler that raises is a 500 and a line in the log.

`messages.py` has what handlers see, `connection.py` is the protocol, `inflating.py` undoes content encodings.
"""

from penstock.agent.http.messages import Limits, Request, Response
from penstock.agent.http.server import HttpServer

__all__ = ["HttpServer", "Limits", "Request", "Response"]
