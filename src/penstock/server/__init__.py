"""The broker process: listeners, connections, handlers, drivers, and the node that ties them together.

Floor 5, asyncio. Imports everything below; never `client`. A node reaches the world through the ports it is given.
Read `node.py` first (who comes when), then `parts/` (what a node is made of), `reception/connection.py` (the life of a
request) and `handlers/produce.py`. How nodes reach each other: `peers.py`, `controller/channel.py`,
`controller/forwarding.py`. A node has two loops; between them lies `loops/crossing.py`.

In `partitions/`, `quorum/`, `controller/` and `coordinating/` decisions meet the world: drivers own logs, waits, timers
and tasks; they decide nothing. Every driver asks a pure room, does what it says on the log, and tells the pure room
what became true, with no `await` in between.
"""
