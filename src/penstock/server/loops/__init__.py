"""The two loops of a node, the threads and processes beside them, and who watches whether they are held up.

`crossing.py` lies between the loops, `ports.py` has the real clock and the work off the loop, `duty.py` says what
becomes of an exception that nobody foresaw.
"""
