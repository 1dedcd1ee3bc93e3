"""Lines of standard input, and of commands that the agent runs.

Both are pipes: reading stops when there is no room, and then whoever writes waits. Neither can be asked again: what was
read and is not yet acknowledged is gone when the agent is killed, so `exec` is told to be lossy in its status.

Invariants: a command runs in a process group of its own, and no process of it outlives the input; the end of standard
input is the end of the input, and `run` returns. `reading.py` reads descriptors, `pumping.py` makes portions,
`stdin.py` and `command.py` are the inputs.
"""
