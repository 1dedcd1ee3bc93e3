"""The suite `scale`: what one node costs as it holds more, and what one more costs.

Read `__main__.py` first: it says which parts there are. Each part (`partitions.py`, `connections.py`, `groups.py`,
`logs.py`) grows one thing and takes the same readings at each size (`subject.py`); `fit.py` says whether a reading is
flat or linear and how steep, `page.py` writes it down.
"""
