"""TLS on every listener and every dial: our own layer over OpenSSL's memory buffers.

Duty: turn `ssl.*` settings into contexts, bytes of a socket into bytes of a FrameStream and back, and failures into
sentences. A FrameStream does not notice: `TlsStream` is the protocol of the socket and the transport of the stream.

May import `penstock.transport.intake` and what `transport` may; nothing of `transport` outside of here but `net`,
`dial`, `dial_security` and `tls_dialling` may import it, and they do so only when somebody asks for TLS.
`cryptography` is imported inside functions: a trust store of PEM text and a context need nothing but `ssl`.

Invariants: nothing but a whole first record of a handshake costs a peer's connection more than those bytes; handshakes
are bounded in time and bytes, and a turn of the loop makes only a few steps of them; all connections of a loop share
their scratch; a context is never changed once it is used, a new one takes its place; no secret has a `repr`; keys in
the clear touch no disk.

Read `layer.py` first (bytes in, bytes out), then `stream.py` (between socket and frames) with `greeting.py` and
`turns.py`, `settings.py`, `stores.py` with `jks.py` (what files and texts hold; `security/der.py` reads DER),
`contexts.py` with `ciphers.py`, `failures.py` (why it did not work, in words), `advice.py` (what to try), `reload.py`
(may this certificate take that one's place) and `source.py` (the newest context for every dial).
"""
