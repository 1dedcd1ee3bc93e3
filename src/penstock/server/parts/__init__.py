"""What a node is made of: the metadata side that every node has, and the broker that some have.

A part builds its drivers, wires them to each other, and knows the order in which they start, stop and are abandoned.
Only here and in `node.py` are concrete drivers named. Parts import anything of the server but each other's insides:
`broker` is given the `control` part, never the other way round.

Invariants: a part's `close` may be called in any state after its constructor; `crash` is synchronous, writes nothing
and leaves no timer behind. Read `control.py` first, then `broker.py`; `node.py` says who comes when.
"""
