"""Events on disk while brokers are away: one folder for each input, files of frames in it, first in first out.

Invariants: what `append` has returned for survives kill -9 and a power cut; the bytes on disk never exceed the cap;
frames come back in the order they went in; a file is deleted when all that was in it is acknowledged, which gives its
space back at once; a frame that cannot be read costs itself and is told, never what is beside it. Knows nothing of
inputs or brokers. Begin with `segments.py`, then `spool.py`.
"""
