"""mask: what must not go on is replaced, by a fixed text or by a keyed hash so that equal values stay equal.

`finders.py` knows what to look for, `mask.py` is the step. Begin with the latter.
"""
