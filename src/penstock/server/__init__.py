"""The broker process: listeners, connections, handlers, drivers, and the node that ties them together.

Floor 5, asyncio. Imports everything below; never `client`. A node reaches the world through the ports it is given.
Read `node.py` first (who comes when), then `parts/` (what a node is made of), `connection.py` (the life of a request)
and `handlers/produce.py`. How nodes reach each other: `peers.py`, `controller_channel.py`, `forwarding.py`. A node has
two loops; between them lies `crossing.py`.
"""
