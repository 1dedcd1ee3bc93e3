"""Sockets that agents listen on: addresses and certificates as users write them, and connections that are counted.

Used by the network inputs and by the HTTP server. Imports `declared` and the standard library.

Invariants: a connection counts from the moment it is accepted, also while it shakes hands, so that no sender can open
more than `connections_max`; running out of file descriptors is a pause, not an end; a listener that is closed leaves no
connection and no task behind. Begin with `streams.py`.
"""
