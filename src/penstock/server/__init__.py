"""A node: listeners, request lifecycle, handlers, and the drivers in which decisions meet the world. Floor 5.

Imports every floor below; nobody but `testing` and `cli` imports it. `node.py` is the composition root. A request
walks `listener` → `connection` → `dispatch` → `handlers/<api>` → a door of `context.Services` → a driver.

Invariants: one event loop, one core; replies leave in request order; a request starts when the previous one has left
`do`; one bad connection never harms another; what a handler may touch is named in `context.py`, the file to read
first.
"""
