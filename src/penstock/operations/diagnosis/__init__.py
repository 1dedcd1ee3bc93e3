"""What `penstock doctor` finds out: what is wrong, why it matters, what to try.

`probe.py` knocks at an address with plain sockets and says who answers; `examine.py` asks a cluster that can be
reached; `findings.py` has the words, as pure functions of what was found. Read `findings.py` first.
"""
