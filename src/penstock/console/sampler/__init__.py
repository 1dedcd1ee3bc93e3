"""Looks at a cluster again and again, once for all viewers, and no more often than it can afford.

`picture.py` is what was seen, one frozen value that is replaced; `asking.py` asks for its parts; `schedule.py` says
which part is due (pure); `lags.py` how far groups are behind (pure); `rings.py` keeps the past of numbers in bounded
memory, `past.py` decides whose; `minutes.py` and `keeping.py` keep it in a topic, so that it outlives the console, and
whatever goes wrong there costs charts their past and nothing else; `changes.py` says in words what differs between two
pictures (pure), `happened.py` is the log of it; `sampler.py` is the thread that does it in turn. The thread has a loop
of its own, so that decoding what ten thousand topics are takes no time from those who serve browsers.
"""
