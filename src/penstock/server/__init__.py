"""The broker process: listeners, connections, handlers, drivers, and the node that ties them together.

Floor 5, asyncio. Imports everything below; never `client`. A node reaches the world through the ports it is given.
Read `node.py` first (the composition root), then `connection.py` (the life of a request) and `handlers/produce.py`.
"""
