"""Files that are dropped into a folder, complete and never changed again: each is read once, then moved out of the way.

A file is begun when it has not changed for a while. How far it is safe is checkpointed, so a restart goes on in the
middle; when everything of it is acknowledged it is renamed, moved or deleted. A file that changes after it was begun
broke the promise that this input rests on: it is moved to the errors and told loudly. Begin with `input.py`.
"""
