"""Words of the domain: ids, error codes, units, ports, configuration. Floor 0, pure; imports nothing of ours.

Read `ids.py` first, then `errors.py` (what a peer can be told) and `ports.py` (how a node reaches the world).
`inflating.py` undoes compression for all who read what strangers sent, in bounded memory.
"""
