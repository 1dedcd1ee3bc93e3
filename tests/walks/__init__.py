"""One request through real rooms on files in memory. `control_plane.py` is the part of a node that walks start."""
