"""Looks at a cluster again and again, once for all viewers, and no more often than it can afford.

`picture.py` is what was seen, one frozen value that is replaced; `asking.py` asks for its parts; `schedule.py` says
which part is due (pure); `rings.py` keeps the past of numbers in bounded memory, `past.py` decides whose; `changes.py`
says in words what differs between two pictures (pure); `sampler.py` is the thread that does it in turn. The thread has
a loop of its own, so that decoding what ten thousand topics are takes no time from those who serve browsers.
"""
