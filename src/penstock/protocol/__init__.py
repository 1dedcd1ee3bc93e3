"""Bytes to messages and back: the Kafka wire, its framing, and what Kafka writes to disk. Floor 1, pure.

May import: `model`, `kernels`. Touches no clock, file or socket.

Invariants: decoding raises only `Malformed` whatever the bytes, and never makes more than the bytes can hold; encoding
raises only `Unencodable`; a message is byte-equal to Apache Kafka's in every version; unknown tagged fields survive.

Read `wire.py` first (how a message is declared), then `codec.py` (encode, decode), `registry.py` (which APIs there are)
and `frame.py` (headers and sizes). `messages/` has one module per API key, `disk/` the records that are stored.
"""
